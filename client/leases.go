package client

import (
	"context"
	"net/http"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// ErrLeaseLost: a lease has ended, or was settled before. Another client may have the job, and the report changed
// nothing.
var ErrLeaseLost = stream.ErrLeaseLost

// LeaseOptions say which jobs are leased, and for how long.
type LeaseOptions struct {
	Max  int           `json:"max,omitzero"`  // 1 to 100 jobs; zero: 1
	Wait time.Duration `json:"wait,omitzero"` // for a job, up to 60 s; zero: do not wait
	// 1 s to 12 h; zero: the topic's timeout. A job with a timeout is leased for that
	Lease time.Duration `json:"lease,omitzero"`
	Lanes []string      `json:"lanes,omitzero"` // names, or beginnings of names with a * at the end; empty: all

	Request bool `json:"request,omitzero"` // return the request that a push would make
}

// LeasedJob is a job that this client has until its lease ends, or until it settles it.
type LeasedJob struct {
	Answer

	ID          string            `json:"id"`
	Topic       string            `json:"topic"`
	Lane        string            `json:"lane"`
	Attempt     int               `json:"attempt"` // from 1
	Headers     Headers           `json:"headers"`
	ContentType string            `json:"content_type"`
	Body        []byte            `json:"body" wire:"payload"` // byte for byte
	Labels      map[string]string `json:"labels"`
	CreatedAt   time.Time         `json:"created_at"`
	DueAt       time.Time         `json:"due_at"`
	ExpiresAt   time.Time         `json:"expires_at"`
	Lease       string            `json:"lease"`       // for Settlement
	LeaseUntil  time.Time         `json:"lease_until"` // by the store's clock
	Request     *LeasedRequest    `json:"request"`     // nil: not asked for, or none can be made
	// Response is what a function of Work has to say, a string or other JSON: its first 1,024 bytes are stored.
	Response any `json:"-"`
}

// LeasedRequest is the request that a push would make, signed, without secret headers.
type LeasedRequest struct {
	Method  string  `json:"method"`
	URL     string  `json:"url"`
	Headers Headers `json:"headers"`
}

// UnmarshalJSON reads a leased job as responses have it.
func (j *LeasedJob) UnmarshalJSON(data []byte) error { return wire.Decode(data, j) }

// Lease leases jobs of a pulled topic: as soon as one is due, or none when the wait is over. See Work for a loop that
// settles them.
func (c *Client) Lease(ctx context.Context, topic string, o LeaseOptions) ([]LeasedJob, error) {
	var leased Page[LeasedJob]
	r := call{method: http.MethodPost, wait: o.Wait, into: &leased}
	err := c.send(ctx, r, o, "/v1/topics/", topic, "/lease")
	return leased.Items, err
}

// Settlement reports what became of leased jobs, at most 512 of them, and leases the next.
type Settlement struct {
	Done     []LeaseDone     `json:"done,omitzero"`
	Answered []LeaseAnswered `json:"answered,omitzero"`
	Retry    []LeaseRetry    `json:"retry,omitzero"`
	Dead     []LeaseDead     `json:"dead,omitzero"`
	Release  []LeaseRelease  `json:"release,omitzero"`
	Extend   []LeaseExtend   `json:"extend,omitzero"`
	Next     *NextLeases     `json:"next,omitzero"`
}

// LeaseDone reports a job that is delivered.
type LeaseDone struct {
	Lease    string `json:"lease"`
	Response any    `json:"response,omitzero"` // a string, or other JSON: its first 1,024 bytes are stored
}

// LeaseAnswered reports what a receiver has answered, which is judged as the answer to a push.
type LeaseAnswered struct {
	Lease        string         `json:"lease"`
	Status       int            `json:"status"`
	Response     any            `json:"response,omitzero"`
	After        *time.Duration `json:"after,omitzero"`        // its Retry-After, up to 30 days
	NonRetryable bool           `json:"nonretryable,omitzero"` // it has Ringback-Nonretryable: true
}

// LeaseRelease gives back a job that was not begun or not finished: it is due at once, and no attempt is counted.
type LeaseRelease struct {
	Lease string `json:"lease"`
}

// LeaseRetry reports an attempt that failed.
type LeaseRetry struct {
	Lease string         `json:"lease"`
	After *time.Duration `json:"after,omitzero"` // nil: as the job's ladder says
	Error string         `json:"error,omitzero" wire:"lossy"`
}

// LeaseDead reports a job that cannot succeed.
type LeaseDead struct {
	Lease  string `json:"lease"`
	Reason string `json:"reason" wire:"lossy"`
}

// LeaseExtend lets a lease last longer.
type LeaseExtend struct {
	Lease string        `json:"lease"`
	For   time.Duration `json:"for"` // from now, 1 s to 12 h
}

// NextLeases says which jobs are leased beside a settlement.
type NextLeases struct {
	Topic string        `json:"topic,omitzero"` // empty: that of the leases
	Max   int           `json:"max,omitzero"`
	Wait  time.Duration `json:"wait,omitzero"`
	Lease time.Duration `json:"lease,omitzero"`
	Lanes []string      `json:"lanes,omitzero"`

	Request bool `json:"request,omitzero"`
}

// Settled has a result for each item of a Settlement, list by list in its order, and the next jobs.
type Settled struct {
	Answer

	Done     []LeaseResult `json:"done"`
	Answered []LeaseResult `json:"answered"`
	Retry    []LeaseResult `json:"retry"`
	Dead     []LeaseResult `json:"dead"`
	Release  []LeaseResult `json:"release"`
	Extend   []LeaseResult `json:"extend"`
	Items    []LeasedJob   `json:"items"`
}

// LeaseResult is what became of a report.
type LeaseResult struct {
	Index  int    `json:"index"`
	ID     string `json:"id"`     // of the job
	Result string `json:"result"` // ok, lost, unavailable (repeat the report)
	// CancelRequested of an extended lease: the job was cancelled while it was running.
	CancelRequested bool `json:"cancel_requested"`
}

// Settle settles or extends leases, and leases the next jobs.
func (c *Client) Settle(ctx context.Context, s Settlement) (*Settled, error) {
	return c.settle(ctx, s, nil)
}

func (c *Client) settle(ctx context.Context, s Settlement, date *time.Time) (*Settled, error) {
	r := call{method: http.MethodPost, date: date}
	if s.Next != nil {
		r.wait = s.Next.Wait
	}
	return answer[Settled](ctx, c, r, s, "/v1/leases")
}
