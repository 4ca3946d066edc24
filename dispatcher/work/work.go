// Package work is bulk work: one change of all jobs that a filter selects, or of a list of ids. A Work is an internal
// job whose body is its order and its progress. Each step executes the plan that the step before has stored, of up to
// 500 jobs with the version of each, and stores the next plan. So it survives crashes, may be stopped, and treats each
// job once:
//
//   - A job whose version is another by now is counted as done if its history names this Work since it was selected,
//     and skipped otherwise.
//   - A job that the filter selects again, because it was changed and then failed or was moved, is left out if its
//     history names this Work before that. Ended jobs are selected by their end, before the Work was created, so only
//     some are looked at.
//
// Both need one of the newest job.MaxEvents changes by clients. Jobs that are registered after the Work was created are
// not selected.
package work

import (
	"context"
	"encoding/json"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// maxFailures bounds Counts.Failures.
const maxFailures = 100

// status is the part of a Work's body that is shown.
type status struct {
	store.WorkOrder
	store.WorkCounts
	Listed  bool  `json:"listed"`  // all jobs are planned
	Total   int64 `json:"total"`   // jobs that are counted so far
	Counted bool  `json:"counted"` // all jobs are counted
	// StepAt is the time of the last step, by the store's clock.
	StepAt time.Time `json:"step_at"`
	// FirstStart and LastStart are those that were planned under a rate, in Unix milliseconds; zero: none was.
	FirstStart int64 `json:"first_start,omitempty"`
	LastStart  int64 `json:"last_start,omitempty"`
	// WaitingFor is why jobs of a replay wait.
	WaitingFor string `json:"waiting_for,omitempty"`
}

// progress is the body of a Work's job.
type progress struct {
	status
	// CreatedAt is that of the job.
	CreatedAt time.Time `json:"created_at"`
	Left      []string  `json:"ids,omitempty"` // ids that are not planned yet
	// Of a replay: the last lane of the first of these, which are events, that is planned; and whether all are in Left.
	LastLane   string          `json:"last_lane,omitempty"`
	Found      bool            `json:"found,omitempty"`
	After      store.Position  `json:"after"`       // of the filter's list: the jobs before are planned
	CountAfter store.Position  `json:"count_after"` // the jobs before are counted
	Plan       []target        `json:"plan,omitempty"`
	Size       int             `json:"size"` // of the next plan
	Pace       json.RawMessage `json:"pace,omitempty"`
	// Lead is the time by which a start is planned ahead. It doubles when steps come later than planned, so that some
	// come in time however long the steps of other Works take, and when a call takes half of it.
	Lead time.Duration `json:"lead,omitempty"`
}

// target is a job of a plan.
type target struct {
	ID      string `json:"i"`
	Version int64  `json:"v"`
	// Check is set if this Work may have changed the job before: its history shows it.
	Check bool `json:"c,omitempty"`
	// Under a rate: its queue, its start, and the due time of a scheduled job, the times in Unix milliseconds.
	Topic string `json:"t,omitempty"`
	Lane  string `json:"l,omitempty"`
	Start int64  `json:"s,omitempty"`
	Due   int64  `json:"d,omitempty"`
}

// fail counts a job that was not changed, with a reason for clients.
func (p *progress) fail(count *int64, id, reason string) {
	*count++
	if len(p.Failures) < maxFailures {
		p.Failures = append(p.Failures, store.WorkFailure{ID: id, Reason: reason})
	}
}

func (s *status) limited() bool { return s.Rate.Limited() || s.LaneRate.Limited() }

// ended reports whether the Work is about jobs that have ended.
func (p *progress) ended() bool { return p.Action == store.WorkRevive || p.Action == store.WorkPurge }

// pacer restores the pace, whose times count from CreatedAt.
func (p *progress) pacer() (*pacer, error) { return restore(p.Rate, p.LaneRate, p.Pace) }

// forget drops what only steps need.
func (p *progress) forget() {
	p.Left, p.Plan, p.Pace, p.After, p.CountAfter = nil, nil, nil, store.Position{}, store.Position{}
	p.Header, p.Edit = nil, nil
}

// PortableBody returns the body of a Work's job for a store of another kind or with other shards: its places in lists
// are those before the jobs of their millisecond. A body that cannot be read is returned as it is.
func PortableBody(body []byte) []byte {
	var p progress
	if err := json.Unmarshal(body, &p); err != nil {
		return body
	}
	for _, place := range []*store.Position{&p.After, &p.CountAfter} {
		place.Shard, place.Tie = 0, ""
	}
	portable, err := json.Marshal(&p)
	if err != nil {
		return body
	}
	return portable
}

// Targets is the part of the store that a Worker reads and changes the selected jobs through.
type Targets interface {
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	List(ctx context.Context, filter store.Filter) (store.Page, error)
	Replace(ctx context.Context, ref job.Ref, replacement store.Replacement) (job.Job, error)
	Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error)
	Revive(ctx context.Context, items []store.Revival) []store.ReviveResult
	Purge(ctx context.Context, items []store.Removal) []error
}

// Changes checks and makes changes of single jobs, as for a request that makes one.
type Changes interface {
	// PrepareRevival checks the URL and the headers of a job's revival, and seals secret headers for their origin.
	PrepareRevival(ctx context.Context, j *job.Job, revival *store.Revival) error
	// EditJob changes a job that was read, under its version.
	EditJob(ctx context.Context, j *job.Job, edit job.Edit) (job.Job, error)
}
