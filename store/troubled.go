package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// TroubledFilter selects lanes in trouble.
type TroubledFilter struct {
	Namespace string
	// Topic selects the lanes of a topic, and Lane a single one of them; empty: all.
	Topic, Lane string
	// Code selects lanes that have a reason with it; empty: all.
	Code job.ObstacleCode
	// Shown reports whether lanes of a topic are selected; nil: those of all topics are.
	Shown func(topic string) bool
	Limit int // of the lanes that are returned
}

// TroubledLanes are lanes whose receiver fails or that hold jobs back, the worst first: those of failing receivers,
// then paused ones, then those at a limit.
type TroubledLanes struct {
	Lanes []TroubledLane
	// Total is the number of lanes that were found, also beyond the limit.
	Total int
	// LookedAt is the number of lanes that were looked at.
	LookedAt int
	// Exact is false if the budget ended before all lanes were looked at.
	Exact bool
}

// TroubledLane is a lane whose receiver fails, or with unfinished jobs that are held back.
type TroubledLane struct {
	Queue     job.Queue
	Reasons   []job.Obstacle // one or more
	Scheduled int64          `api:"scheduled,always"`
	Ready     int64          `api:"ready,always"`
	Running   int64          `api:"running,always"`
	// OldestDue is the earliest due time of its jobs that are not running. Null: it is not known.
	OldestDue time.Time `api:"oldest_due_at"`
	Receiver
}

// WorstLane is a lane of which attempts failed.
type WorstLane struct {
	Lane string `api:"lane,always"`
	Receiver
	History History
}

// Receiver is what the attempts of a lane tell of its receiver.
type Receiver struct {
	// Health is that of the receiver. Null: no attempt failed, or an hour of deliveries or two days have passed since.
	Health *ReceiverHealth `api:"health"`
	// LastFailure is the newest failed attempt. Null: as `health`.
	LastFailure *LaneFailure `api:"last_failure"`
}

// ReceiverHealth is a policy.Health at a time.
type ReceiverHealth struct {
	// State is `failing` if at least half of five or more attempts of the last five minutes failed, or three or more
	// failed and none was delivered since; `unknown` if no attempt was made for an hour; else `ok`.
	State policy.HealthState `api:"state,always"`
	// Since is the first failure of those that follow one another.
	Since time.Time `api:"since,always"`
	// Attempts is the number of attempts since then.
	Attempts int64 `api:"attempts,always"`
	// Failed is the number of failed attempts since then.
	Failed int64 `api:"failed,always"`
	// FailedPercent is the share of failed attempts of the last five minutes, 0 to 100; of few, of those since `since`.
	FailedPercent int64 `api:"failed_percent,always"`
}

// NewReceiver returns what the health of a lane tells now.
func NewReceiver(h *policy.Health, now time.Time) Receiver {
	if h == nil || h.Expired(now) {
		return Receiver{}
	}
	f := h.Failure
	return Receiver{&ReceiverHealth{
		State: h.State(now), Since: h.Since, Attempts: h.Attempts, Failed: h.Failed,
		FailedPercent: int64(100 * h.Share(now)),
	}, &LaneFailure{JobID: f.JobID, At: f.At, Status: f.Status, ErrorClass: f.Class}}
}

// LaneFailure is a failed attempt of a job of a lane.
type LaneFailure struct {
	JobID string `api:"job_id,always"`
	// At is when the attempt started, or when its failure was recorded.
	At time.Time `api:"at,always"`
	// Status is the status of the answer. Null: there was none.
	Status int `api:"status"`
	// Error is why there was no answer. Null: it is not known, or there was one.
	Error string `api:"error"`
	// ErrorClass is why there was no answer, as in attempts.
	ErrorClass policy.ErrorClass `api:"error_class"`
}
