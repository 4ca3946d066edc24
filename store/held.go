package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// HeldFilter selects lanes that hold jobs back.
type HeldFilter struct {
	Namespace string
	// Topic selects the lanes of a topic, and Lane a single one of them; empty: all.
	Topic, Lane string
	// Shown reports whether lanes of a topic are selected; nil: those of all topics are.
	Shown func(topic string) bool
	Limit int // of the lanes that are returned
}

// HeldLanes are lanes that hold jobs back, the worst first: those of failing receivers, then paused ones, then those at
// a limit.
type HeldLanes struct {
	Lanes []HeldLane
	// Total is the number of lanes that were found, also beyond the limit.
	Total int
	// LookedAt is the number of lanes that were looked at.
	LookedAt int
	// Exact is false if the budget ended before all lanes were looked at.
	Exact bool
}

// HeldLane is a lane with unfinished jobs that are held back.
type HeldLane struct {
	Queue     job.Queue
	Reasons   []job.Obstacle // one or more
	Scheduled int64          `api:"scheduled,always"`
	Ready     int64          `api:"ready,always"`
	Running   int64          `api:"running,always"`
	// OldestDue is the earliest due time of its jobs that are not running. Null: it is not known.
	OldestDue time.Time `api:"oldest_due_at"`
	// LastFailure is the newest known failed attempt of its unfinished jobs. Those that wait for the latest retries are
	// looked at.
	LastFailure *LaneFailure `api:"last_failure"`
}

// LaneFailure is a failed attempt of a job of a lane.
type LaneFailure struct {
	JobID string `api:"job_id,always"`
	// At is when the attempt started.
	At time.Time `api:"at,always"`
	// Status is the status of the answer. Null: there was none.
	Status int    `api:"status"`
	Error  string `api:"error"`
	// ErrorClass is why there was no answer, as in attempts.
	ErrorClass policy.ErrorClass `api:"error_class"`
}
