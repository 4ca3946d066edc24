package dispatcher

import (
	"maps"
	"slices"

	"github.com/ringback/ringback/job"
)

// Details of the error for a secret header that would be sent to another origin, after an edit and after a revival.
const (
	notForEdit = "must be resent, in headers that replace all of the job's, or headers must be null: " +
		"the URL now points to a different origin"
	notForRevival = "is for a different origin than url: revive the job without url while its lane is paused, " +
		"then change its url and headers together"
)

// checkSecretsStayOnOrigin returns a *job.InvalidError if a job has secret headers for another origin than the
// target's. An attempt would not send them; this reports it before the job is changed.
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

// isForOtherOrigin reports whether a secret header of a job is for another origin than a URL's. A header that cannot be
// opened, or has no origin, counts for the origin of the job's URL; without a URL, for any origin.
func (d *Dispatcher) isForOtherOrigin(j *job.Job, name, target string) bool {
	if sealed, ok := job.Sealed(j.Header[name]); ok {
		if secret, err := d.sealer.OpenHeader(name, sealed); err == nil && secret.Origin != "" {
			return secret.Origin != job.Origin(target)
		}
	}
	return job.ChangesOrigin(j.URL, target)
}
