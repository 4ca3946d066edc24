package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// Register registers a job and returns it in its current state. It repeats the request under the job's id until ctx
// ends, so that the job is registered once. A job that was registered before is no error, and a different one under its
// id is ErrConflict. One that was registered before may have ended, and is not sent again: see its State.
func (c *Client) Register(ctx context.Context, j Job) (*JobInfo, error) {
	return c.register(ctx, j, 0)
}

// RegisterAndWait registers a job and returns it when it has ended, with its attempts, or after the wait of up to 60 s
// as it is then.
func (c *Client) RegisterAndWait(ctx context.Context, j Job, wait time.Duration) (*JobInfo, error) {
	return c.register(ctx, j, wait)
}

func (c *Client) register(ctx context.Context, j Job, wait time.Duration) (*JobInfo, error) {
	if j.ID == "" {
		j.ID = NewID()
	}
	r := call{method: http.MethodPost, query: waitQuery(wait), wait: wait}
	return answer[JobInfo](ctx, c, r, j, "/v1/jobs")
}

func waitQuery(wait time.Duration) url.Values {
	if wait <= 0 {
		return nil
	}
	return url.Values{"wait": {wire.FormatDuration(wait)}}
}

// Get returns a job with its newest attempts and events, and what it waits for.
func (c *Client) Get(ctx context.Context, id string) (*JobInfo, error) { return c.get(ctx, id, 0) }

func (c *Client) get(ctx context.Context, id string, wait time.Duration) (*JobInfo, error) {
	r := call{method: http.MethodGet, query: waitQuery(wait), wait: wait}
	return answer[JobInfo](ctx, c, r, nil, "/v1/jobs/", id)
}

// longestJobWait is the longest wait that a server accepts.
const longestJobWait = time.Minute

// Wait returns a job when it has ended. If ctx ends before, it returns the job as it was last seen, if it was, and the
// error.
func (c *Client) Wait(ctx context.Context, id string) (*JobInfo, error) {
	var last *JobInfo
	for {
		began := time.Now()
		info, err := c.get(ctx, id, longestJobWait)
		if err != nil {
			return last, err
		}
		if last = info; info.State.Ended() {
			return info, nil
		}
		// a server that stops does not wait
		if err := stream.Sleep(ctx, stream.FirstWait-time.Since(began)); err != nil {
			return last, err
		}
	}
}

// Edit changes a scheduled or ready job.
func (c *Client) Edit(ctx context.Context, id string, e Change, conditions ...Condition) (*JobInfo, error) {
	return answer[JobInfo](ctx, c, change(http.MethodPatch, conditions), e, "/v1/jobs/", id)
}

// Cancel cancels a job. A running one has CancelRequested then, and is delivered if its attempt succeeds.
func (c *Client) Cancel(ctx context.Context, id string, conditions ...Condition) (*JobInfo, error) {
	return answer[JobInfo](ctx, c, change(http.MethodDelete, conditions), nil, "/v1/jobs/", id)
}

// Run makes a scheduled job due now.
func (c *Client) Run(ctx context.Context, id string, conditions ...Condition) (*JobInfo, error) {
	return answer[JobInfo](ctx, c, onceOf(conditions), nil, "/v1/jobs/", id, "/run")
}

// Revive sends a job that has ended again.
func (c *Client) Revive(ctx context.Context, id string, r Revival, conditions ...Condition) (*JobInfo, error) {
	return answer[JobInfo](ctx, c, onceOf(conditions), r, "/v1/jobs/", id, "/revive")
}

// onceOf is a call that does something once more when it is repeated.
func onceOf(conditions []Condition) call {
	return call{method: http.MethodPost, header: conditionHeader(conditions), once: true}
}

// Query selects jobs of a list; the zero value: all that clients registered. A job must match all of its fields.
type Query struct {
	State  []State  `json:"state"` // one of them
	Topic  string   `json:"topic"`
	Lane   string   `json:"lane"`
	Kind   string   `json:"kind"`  // all, registered, callback, backlog, work, schedule
	Label  []string `json:"label"` // key:value, all of them
	Reason string   `json:"reason"`
	Status int      `json:"status"` // of the last answer
	// ErrorClass is why there was no complete answer: a class, ErrorAny or ErrorUnknown.
	ErrorClass string `json:"error_class"`
	IDPrefix   string `json:"id_prefix"`

	CreatedAfter  time.Time `json:"created_after"`
	CreatedBefore time.Time `json:"created_before"`
	DueAfter      time.Time `json:"due_after"`
	DueBefore     time.Time `json:"due_before"`
	EndedAfter    time.Time `json:"ended_after"`
	EndedBefore   time.Time `json:"ended_before"`

	Order  string `json:"order"`  // newest or oldest; empty: newest
	Limit  int    `json:"limit"`  // of a page, 1 to 500; zero: 50
	Cursor string `json:"cursor"` // where to begin; empty: at the start

	// Within is the time after which a page ends although it is not full, and DeadGroups counts no more, 1ms to 10s;
	// zero: 1s, and 2s.
	Within time.Duration `json:"within"`
}

// The values of an ErrorClass that selects jobs, beside the classes.
const (
	ErrorAny     = "any"     // the job has a class
	ErrorUnknown = "unknown" // the job has neither a class nor a status, as without an attempt
)

// JobPage is a page of a list of jobs.
type JobPage struct {
	Answer

	Items      []JobInfo `json:"items"`
	NextCursor string    `json:"next_cursor"` // empty: it is the last page
	Scanned    int64     `json:"scanned"`     // jobs that were looked at
}

// Jobs returns the jobs that match, without bodies, attempts and events.
func (c *Client) Jobs(ctx context.Context, q Query) iter.Seq2[*JobInfo, error] {
	return list[JobInfo](ctx, c, wire.Values(q), "/v1/jobs")
}

// JobPage returns one page of Jobs. It may be short, even empty, although more follow: see NextCursor.
func (c *Client) JobPage(ctx context.Context, q Query) (*JobPage, error) {
	return answer[JobPage](ctx, c, call{method: http.MethodGet, query: wire.Values(q)}, nil, "/v1/jobs")
}

// DeadJobs returns the dead jobs that match. The query has no State.
func (c *Client) DeadJobs(ctx context.Context, q Query) iter.Seq2[*JobInfo, error] {
	return list[JobInfo](ctx, c, wire.Values(q), "/v1/dead")
}

// DeadPage returns one page of DeadJobs, as JobPage does of Jobs.
func (c *Client) DeadPage(ctx context.Context, q Query) (*JobPage, error) {
	return answer[JobPage](ctx, c, call{method: http.MethodGet, query: wire.Values(q)}, nil, "/v1/dead")
}

// JobGroups are counts of dead jobs.
type JobGroups struct {
	Answer

	Items   []JobGroup `json:"items"` // the largest first
	Exact   bool       `json:"exact"` // false: not all jobs were counted
	Scanned int64      `json:"scanned"`
}

// JobGroup is a number of jobs that have the same values in the fields by which they are grouped; the others are zero.
type JobGroup struct {
	Topic  string `json:"topic"`
	Lane   string `json:"lane"`
	Reason string `json:"reason"`
	Status int    `json:"status"`
	// ErrorClass is empty of jobs that have a status, and of those that ErrorUnknown selects.
	ErrorClass string    `json:"error_class"`
	Count      int64     `json:"count"`
	Sample     JobSample `json:"sample"` // the newest of them
}

// JobSample is a job of a group.
type JobSample struct {
	ID      string    `json:"id"`
	EndedAt time.Time `json:"ended_at"`
}

// DeadGroups counts the dead jobs that match by topic, lane, reason, status or error_class, or several of them.
func (c *Client) DeadGroups(ctx context.Context, q Query, by ...string) (*JobGroups, error) {
	query := wire.Values(q)
	query.Set("by", strings.Join(by, ","))
	return answer[JobGroups](ctx, c, call{method: http.MethodGet, query: query}, nil, "/v1/dead/groups")
}
