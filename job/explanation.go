package job

import "github.com/ringback/ringback/policy"

// Explanation describes an unfinished job as things are now: what applies to its next attempt, and what the job waits
// for.
type Explanation struct {
	// Effective is nil if the settings of the topic or the lane are not readable.
	Effective *Effective
	// WaitingFor is nil while the job is running, and if the store did not return what is needed.
	WaitingFor *Obstacle
}

// Effective holds the settings of a job's next attempt: those of the job, else of its lane, else of its topic, else
// built in.
type Effective struct {
	URL   string // empty: none
	Terms policy.Terms
	// RetriesLeft is the number of retries after the next attempt.
	RetriesLeft int
}
