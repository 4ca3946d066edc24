package dispatcher

import (
	"maps"
	"slices"

	"github.com/ringback/ringback/job"
)

// What is said of a secret header of a job that would go to another origin, where the job is edited and where it is
// revived.
const (
	notForEdit = "must be said again, in headers that replace all of the job's, or headers be null: " +
		"its stored value was not for the host that the URL leads to now"
	notForRevival = "was not for the host that url leads to: revive the job without url, while its lane is paused, " +
		"and change its url and headers together"
)

// checkSecretsStayOnOrigin refuses to send a job to another origin together with the headers of its own that carry secrets: who can change
// a URL must not learn them that way. Nothing would be sent there in any case; this says so before the job is changed.
func (d *Dispatcher) checkSecretsStayOnOrigin(j *job.Job, target, detail string) error {
	var faults []job.FieldError
	for _, name := range slices.Sorted(maps.Keys(j.Header)) {
		if job.SecretHeader(name) && d.isForOtherOrigin(j, name, target) {
			faults = append(faults, job.FieldError{Field: job.JSONPointer("/headers", name), Detail: detail})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &job.InvalidError{Errors: faults}
}

// isForOtherOrigin reports whether a secret header of a job is for another origin than a URL's. One that cannot be opened, or
// that an older program stored, is for that of the job's URL; without one it had been for wherever its topic or lane led.
func (d *Dispatcher) isForOtherOrigin(j *job.Job, name, target string) bool {
	if sealed, ok := job.Sealed(j.Header[name]); ok {
		if secret, err := d.openHeader(name, sealed); err == nil && secret.Origin != "" {
			return secret.Origin != job.Origin(target)
		}
	}
	return job.ChangesOrigin(j.URL, target)
}
