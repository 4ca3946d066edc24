package store

import (
	"encoding/json"
	"time"

	"github.com/ringback/ringback/policy"
)

// WorkAction is what bulk work does to the selected jobs.
type WorkAction string

// The actions of bulk work.
const (
	WorkRevive WorkAction = "revive" // dead jobs, with a fresh retry budget
	WorkPurge  WorkAction = "purge"  // dead jobs
)

// WorkOrder describes a Work.
type WorkOrder struct {
	Action WorkAction `json:"action"`
	// Filter selects dead jobs. Without a Namespace IDs does: those that are not planned yet.
	Filter Filter   `json:"filter"`
	IDs    []string `json:"ids,omitempty"`
	// URL and ExpiresIn are as in Revival; ExpiresIn counts from the due time.
	URL       string        `json:"url,omitempty"`
	ExpiresIn time.Duration `json:"expires_in,omitempty"`
	// Rate and LaneRate spread the first attempts of revived jobs; zero: at once. Delay is the time to the first of them.
	Rate     policy.Rate   `json:"rate"`
	LaneRate policy.Rate   `json:"lane_rate"`
	Delay    time.Duration `json:"delay,omitempty"`
	// Actor is the name of the client; empty: unknown.
	Actor string `json:"actor,omitempty"`
	// Request is the request's filter as JSON, to show it.
	Request json.RawMessage `json:"request,omitempty"`
}

// WorkCounts are the jobs of a Work. Matched = Done + Failed + Skipped + those in progress. It grows until all are planned.
type WorkCounts struct {
	Matched int64 `json:"matched"`
	Done    int64 `json:"done"`
	Failed  int64 `json:"failed"`  // refused by the store
	Skipped int64 `json:"skipped"` // changed, or gone, since they were selected
	// Failures are the first of the failed and skipped jobs.
	Failures []WorkFailure `json:"failures,omitempty"`
}

// WorkFailure is a job that was not treated, with the reason.
type WorkFailure struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// A Work is bulk work as it is shown.
type Work struct {
	ID string
	WorkOrder
	WorkCounts
	State     WorkState
	CreatedAt time.Time
	EndedAt   time.Time // zero: it has not ended
	// Listed is set when Matched is final.
	Listed bool
}

// WorkState is the state of a Work.
type WorkState string

// The states of a Work.
const (
	WorkRunning WorkState = "running"
	WorkDone    WorkState = "done"
	WorkStopped WorkState = "stopped"
)
