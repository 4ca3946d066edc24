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

// astray refuses to send a job to another origin together with the headers of its own that carry secrets: who can change
// a URL must not learn them that way. A job without a URL had them for wherever its topic or lane leads.
func astray(j *job.Job, target, detail string) error {
	if !job.Elsewhere(j.URL, target) {
		return nil
	}
	var faults []job.Fault
	for _, name := range slices.Sorted(maps.Keys(j.Header)) {
		if job.SecretHeader(name) {
			faults = append(faults, job.Fault{Field: job.Pointer("/headers", name), Detail: detail})
		}
	}
	if len(faults) == 0 {
		return nil
	}
	return &job.InvalidError{Faults: faults}
}
