package store

import (
	"time"

	"github.com/ringback/ringback/job"
)

// Revival makes an ended job due again, as its next generation.
type Revival struct {
	Ref job.Ref
	// Delay and RunAt set the due time of the first attempt, as in job.New; RunAt is by the store's clock.
	Delay time.Duration
	RunAt time.Time
	// ExpiresIn is the time from now to a new expiry; zero: the expiry does not change.
	ExpiresIn time.Duration
	// URL replaces that of the job; empty: the URL does not change.
	URL string
	// From is the state that the job must have; empty: any state in which a job has ended.
	From job.State
}

// ReviveResult is the result of one revival: the job, or an error. The results of a call contain bodies up to 8 MiB in
// total; jobs after that have none.
type ReviveResult struct {
	Job job.Job
	Err error
}
