package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// The actions of bulk work.
const (
	ActionRevive = "revive"
	ActionPurge  = "purge"
	ActionCancel = "cancel"
	ActionRun    = "run"
	ActionEdit   = "edit"
	ActionReplay = "replay" // of events
)

// WorkOrder says what bulk work does to which jobs.
type WorkOrder struct {
	Action string `json:"action"`
	Where  Where  `json:"where"`
	// Change is what edit changes (all but bodies), and how revive sends jobs again (URL, Headers, ExpiresIn, Delay).
	Change   *Change `json:"change,omitzero"`
	Rate     string  `json:"rate,omitzero"`      // attempts of a revive or run, such as 50/s
	LaneRate string  `json:"lane_rate,omitzero"` // the same of each lane
	// Within is the time after which CountWork counts no more, 1ms to 10s; zero: 2s. StartWork ignores it.
	Within time.Duration `json:"-"`
}

// Missed is, in Where.State of a replay, that of lanes that have had no job of an event.
const Missed State = "missed"

// Where selects jobs: by fields, all of which a job must match, by IDs, or All.
type Where struct {
	State  []State  `json:"state,omitzero"` // of those that the action can select
	Topic  string   `json:"topic,omitzero"`
	Type   string   `json:"type,omitzero"` // of events
	Lane   string   `json:"lane,omitzero"`
	Kind   string   `json:"kind,omitzero"`
	Label  []string `json:"label,omitzero"` // key:value, all of them
	Reason string   `json:"reason,omitzero"`
	Status int      `json:"status,omitzero"` // of the last answer
	// ErrorClass is why there was no complete answer: a class, ErrorAny or ErrorUnknown.
	ErrorClass string `json:"error_class,omitzero"`
	IDPrefix   string `json:"id_prefix,omitzero"`

	CreatedAfter  time.Time `json:"created_after,omitzero"`
	CreatedBefore time.Time `json:"created_before,omitzero"`
	DueAfter      time.Time `json:"due_after,omitzero"`
	DueBefore     time.Time `json:"due_before,omitzero"`
	EndedAfter    time.Time `json:"ended_after,omitzero"`
	EndedBefore   time.Time `json:"ended_before,omitzero"`

	IDs []string `json:"ids,omitzero"` // at most 10,000
	All bool     `json:"all,omitzero"`
}

// Work is bulk work with its counts.
type Work struct {
	Answer

	ID       string          `json:"id"`
	Action   string          `json:"action"`
	Where    json.RawMessage `json:"where"`  // as it was sent; of ids only their number
	Change   json.RawMessage `json:"change"` // as it was sent
	Rate     string          `json:"rate"`
	LaneRate string          `json:"lane_rate"`
	State    string          `json:"state"`   // running, done, stopped, failed
	Total    *int64          `json:"total"`   // jobs that match, counted ahead; nil: not known yet
	Matched  int64           `json:"matched"` // jobs found so far
	Exact    bool            `json:"exact"`   // all were found
	Done     int64           `json:"done"`
	Failed   int64           `json:"failed"`
	Skipped  int64           `json:"skipped"`
	Failures []WorkFailure   `json:"failures"` // the first 100
	// WaitingFor is why jobs of a replay wait, such as a full quota; empty: for nothing but their turn.
	WaitingFor string    `json:"waiting_for"`
	CreatedAt  time.Time `json:"created_at"`
	ETAAt      time.Time `json:"eta_at"` // zero: not known
	EndedAt    time.Time `json:"ended_at"`
	CreatedBy  string    `json:"created_by"`
}

// WorkFailure is a job that bulk work has not changed.
type WorkFailure struct {
	ID     string `json:"id"`
	Reason string `json:"reason"`
}

// WorkCount is the number of jobs that bulk work would find.
type WorkCount struct {
	Answer

	DryRun  bool        `json:"dry_run"`
	Matched int64       `json:"matched"`
	Exact   bool        `json:"exact"` // false: there may be more
	Groups  []WorkGroup `json:"groups"`
}

// WorkGroup is the number of jobs of a topic and a reason.
type WorkGroup struct {
	Topic  string `json:"topic"`
	Reason string `json:"reason"`
	Count  int64  `json:"count"`
}

// StartWork starts bulk work, which goes on in the server: see WaitWork.
func (c *Client) StartWork(ctx context.Context, o WorkOrder) (*Work, error) {
	return answer[Work](ctx, c, onceOf(nil), o, "/v1/work")
}

// dryOrder is an order whose jobs are only counted.
type dryOrder struct {
	WorkOrder
	DryRun bool `json:"dry_run"`
}

// CountWork counts the jobs that StartWork would find, and changes nothing.
func (c *Client) CountWork(ctx context.Context, o WorkOrder) (*WorkCount, error) {
	r := call{method: http.MethodPost, wait: longestJobWait}
	if o.Within > 0 {
		r.query = url.Values{"within": {wire.FormatDuration(o.Within)}}
	}
	return answer[WorkCount](ctx, c, r, dryOrder{o, true}, "/v1/work")
}

// Works returns bulk work, what is running first, then the newest.
func (c *Client) Works(ctx context.Context) iter.Seq2[*Work, error] {
	return list[Work](ctx, c, nil, "/v1/work")
}

// WorkPage returns a page of Works.
func (c *Client) WorkPage(ctx context.Context, o PageOptions) (*Page[Work], error) {
	return readPage[Page[Work]](ctx, c, o, "/v1/work")
}

// GetWork returns bulk work with its counts.
func (c *Client) GetWork(ctx context.Context, id string) (*Work, error) {
	return answer[Work](ctx, c, get(), nil, "/v1/work/", id)
}

// StopWork stops bulk work after the step in progress. What was done stays.
func (c *Client) StopWork(ctx context.Context, id string) (*Work, error) {
	return answer[Work](ctx, c, call{method: http.MethodPost}, nil, "/v1/work/", id, "/stop")
}

// workInterval is how often WaitWork asks, after a few times at the beginning.
const workInterval = time.Second

// WaitWork returns bulk work when it has ended. Until then it calls progress, which may be nil, about once a second,
// and sooner at first. If ctx ends before, the work goes on, and WaitWork returns it as it was last seen, if it was,
// and the error.
func (c *Client) WaitWork(ctx context.Context, id string, progress func(*Work)) (*Work, error) {
	var last *Work
	for pause := stream.FirstWait; ; pause = min(2*pause, workInterval) {
		w, err := c.GetWork(ctx, id)
		if err != nil {
			return last, err
		}
		if last = w; progress != nil {
			progress(w)
		}
		if !w.EndedAt.IsZero() || w.State == "failed" {
			return w, nil
		}
		if err := stream.Sleep(ctx, pause); err != nil {
			return last, err
		}
	}
}
