package store

import (
	"time"

	"github.com/ringback/ringback/job"
)

// NewJob is a job to insert.
type NewJob struct {
	job.New
	// Print is the registration's fingerprint when the id must stay known for its topic's id_window after the job's
	// end (ids chosen by clients, and jobs born in an outbox); nil for an id the server made.
	Fingerprint []byte
	// MaxAge is that of its topic, where the topic sets one: see Store.ClaimExpired. Zero: none.
	MaxAge time.Duration
}

// Outcome says what an insertion came to.
type Outcome uint8

// The outcomes of an insertion.
const (
	Created Outcome = iota + 1
	Existing
	Conflict
)

// InsertResult is the result of one entry. Job is as it stands now, without its record; when only its id is remembered it
// has the entry's Spec and the remembered State, FinishedAt and Reason.
type InsertResult struct {
	Outcome Outcome
	Job     job.Job
}
