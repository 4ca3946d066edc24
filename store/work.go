package store

import (
	"encoding/json"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// WorkAction is the change that bulk work makes to each of the selected jobs.
type WorkAction string

// The actions of bulk work.
const (
	WorkRevive WorkAction = "revive" // makes ended jobs due again, with a fresh retry budget
	WorkPurge  WorkAction = "purge"  // removes ended jobs
	WorkCancel WorkAction = "cancel" // ends unfinished jobs; running ones are marked
	WorkRun    WorkAction = "run"    // makes scheduled jobs due
	WorkEdit   WorkAction = "edit"   // changes scheduled and ready jobs
	WorkReplay WorkAction = "replay" // sends events again
)

// Missed selects, in a replay, the lanes that have had no job of an event.
const Missed job.State = "missed"

// WorkActions returns all actions.
func WorkActions() []WorkAction {
	return []WorkAction{WorkRevive, WorkPurge, WorkCancel, WorkRun, WorkEdit, WorkReplay}
}

// States returns the states of the jobs that the action can select; chosen are those that it selects if an order names
// none. A replay sends an event to the lanes whose job of it is in one of them; none: to all that subscribe.
func (a WorkAction) States() (all, chosen []job.State) {
	switch a {
	case WorkRevive, WorkPurge:
		return []job.State{job.Delivered, job.Dead, job.Cancelled}, []job.State{job.Dead}
	case WorkReplay:
		return []job.State{job.Delivered, job.Dead, job.Cancelled, Missed}, nil
	case WorkRun:
		all = []job.State{job.Scheduled}
	default:
		all = []job.State{job.Scheduled, job.Ready, job.Running}
	}
	return all, all
}

// HasRate reports whether the action starts attempts, whose rate can be limited.
func (a WorkAction) HasRate() bool { return a == WorkRevive || a == WorkRun || a == WorkReplay }

// WorkOrder describes a Work.
type WorkOrder struct {
	Action WorkAction `json:"action" api:"action"`
	// Filter selects jobs that were registered (ended, if they have ended) before the order. Its States are required.
	Filter Filter `json:"filter"`
	// IDs names the jobs instead: of Filter only States counts then. They are not part of a Work that is read; IDCount
	// is their number.
	IDs     []string `json:"-"`
	IDCount int      `json:"id_count,omitempty"`
	// URL, Header and ExpiresIn are as in Revival; ExpiresIn counts from the due time.
	URL       string              `json:"url,omitempty"`
	Header    map[string][]string `json:"header"`
	ExpiresIn time.Duration       `json:"expires_in,omitempty"`
	// Edit is the change of the action WorkEdit.
	Edit *job.Edit `json:"edit,omitempty"`
	// Rate spreads the attempts that the action starts. Null: at once.
	//
	// A scheduled job that is due before its turn is skipped.
	Rate policy.Rate `json:"rate" api:"rate"`
	// LaneRate spreads the attempts of each lane that the action starts. Null: at once.
	LaneRate policy.Rate `json:"lane_rate" api:"lane_rate"`
	// Delay is the time to the first of the attempts that the action starts.
	Delay time.Duration `json:"delay,omitempty"`
	// Actor is the token that ordered it. Null: unknown.
	Actor string `json:"actor,omitempty" api:"created_by"`
	// Where is the object that was sent. Of `ids` only their number: `ids_count`. Null: it cannot be read.
	Where json.RawMessage `json:"where,omitempty" api:"where"`
	// Change is the object that was sent, with headers redacted that may be secrets. Null: none was.
	Change json.RawMessage `json:"change,omitempty" api:"change"`
}

// WorkCounts are the jobs of a Work. Matched = Done + Failed + Skipped + those in progress. It grows until all are
// planned.
type WorkCounts struct {
	// Matched is the number of jobs found so far: those done, failed and skipped, and up to 2,000 in progress.
	Matched int64 `json:"matched" api:"matched,always"`
	Done    int64 `json:"done" api:"done,always"`
	// Failed is the number of jobs refused for a reason that lies in the job.
	Failed int64 `json:"failed" api:"failed,always"`
	// Skipped is the number of jobs changed, or gone, since they were found.
	Skipped int64 `json:"skipped" api:"skipped,always"`
	// Failures are the first of the failed and skipped jobs.
	Failures []WorkFailure `json:"failures,omitempty" api:"failures,always"`
}

// Treated returns the number of jobs that are not in progress.
func (c *WorkCounts) Treated() int64 { return c.Done + c.Failed + c.Skipped }

// WorkFailure is a job that was not changed, with the reason.
type WorkFailure struct {
	ID     string `json:"id" api:"id,always"`
	Reason string `json:"reason" api:"reason,always"`
}

// A Work is bulk work as it is shown.
type Work struct {
	ID string `api:"id,always"`
	WorkOrder
	WorkCounts
	// State is how far it is. `failed`: the stored work cannot be read.
	State     WorkState `api:"state,always"`
	CreatedAt time.Time `api:"created_at,always"`
	// EndedAt is when it ended. Null: it has not.
	EndedAt time.Time `api:"ended_at"`
	// WaitingFor is why jobs of a replay wait, such as a full quota. Null: for nothing but their turn.
	WaitingFor string `api:"waiting_for"`
	// Listed is whether all jobs were found.
	//
	// Matched is final then.
	Listed bool `api:"exact,always"`
	// Total is an estimate of the final Matched; -1: unknown.
	Total int64
	// ETA is when it ends at the pace that it had so far; under a rate, the last start if no more jobs are skipped.
	// Null: not known, as under a `lane_rate` before all jobs of several lanes are planned, or it has ended.
	ETA time.Time `api:"eta_at"`
}

// WorkState is the state of a Work.
type WorkState string

// The states of a Work.
const (
	WorkRunning WorkState = "running"
	WorkDone    WorkState = "done"
	WorkStopped WorkState = "stopped"
	WorkFailed  WorkState = "failed" // it cannot be read
)
