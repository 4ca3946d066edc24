package client

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// NewEvent is an event for the lanes of a topic that subscribe to it: each gets the job.
type NewEvent struct {
	// Type is what happened, such as order.paid.
	Type string `json:"type"`
	// Job is what the lanes get. Its ID is the event's, 1 to 40 of A-Z a-z 0-9 _ and -; empty: a new one. Sending an
	// event again under its id changes nothing, and a different event under it is ErrConflict. Lanes can subscribe to
	// Labels. URL, Lane, Method and Headers are those of the lanes, and must be empty.
	Job
}

// MarshalJSON returns the JSON that the API reads.
func (e NewEvent) MarshalJSON() ([]byte, error) { return wire.Encode(e) }

// UnmarshalJSON reads what MarshalJSON returned.
func (e *NewEvent) UnmarshalJSON(data []byte) error { return wire.Decode(data, e) }

// SentEvent is an event with its jobs.
type SentEvent struct {
	Answer

	ID        string            `json:"id"`
	Topic     string            `json:"topic"`
	Type      string            `json:"type"`
	Labels    map[string]string `json:"labels"`
	DueAt     time.Time         `json:"due_at"`
	CreatedAt time.Time         `json:"created_at"`
	CreatedBy string            `json:"created_by"`
	Expanded  bool              `json:"expanded"` // all jobs are registered, or will be in a moment
	// WaitingFor is why the rest of its jobs wait; empty: for nothing but its due time or its turn.
	WaitingFor string         `json:"waiting_for"`
	Jobs       int64          `json:"jobs"`    // so far
	Lanes      []EventLane    `json:"lanes"`   // up to 1,000; lists leave them and Refused out
	Refused    []EventRefusal `json:"refused"` // the first
	Counts     *EventCounts   `json:"counts"`  // of GetEvent only

	Body       json.RawMessage `json:"body"` // of GetEvent only, like BodyText and BodyBase64
	BodyText   *string         `json:"body_text"`
	BodyBase64 []byte          `json:"body_base64"`
}

// EventLane is a lane that got a job.
type EventLane struct {
	Lane  string `json:"lane"`
	JobID string `json:"job_id"`
}

// EventRefusal is a lane without a job.
type EventRefusal struct {
	Lane   string `json:"lane"`
	Reason string `json:"reason"`
}

// EventCounts are the jobs of an event by state.
type EventCounts struct {
	Delivered int64 `json:"delivered"`
	Dead      int64 `json:"dead"`
	Cancelled int64 `json:"cancelled"`
	Waiting   int64 `json:"waiting"`   // they have not ended
	Forgotten int64 `json:"forgotten"` // nothing is known of them any more
	Exact     bool  `json:"exact"`     // false: only those of the first 1,000 lanes were counted
}

// SendEvent sends an event. Without an ID it gets one, so that a repetition of the call's request sends it once.
func (c *Client) SendEvent(ctx context.Context, e NewEvent) (*SentEvent, error) {
	return c.SendEventAndWait(ctx, e, 0)
}

// PreviewEvent returns an event as it would be sent now, with its lanes, and sends nothing.
func (c *Client) PreviewEvent(ctx context.Context, e NewEvent) (*SentEvent, error) {
	r := call{method: http.MethodPost, query: url.Values{"dry_run": {"true"}}}
	return answer[SentEvent](ctx, c, r, e, "/v1/events")
}

// EventResult is what became of an event of SendEvents.
type EventResult struct {
	Index    int      `json:"index"`
	ID       string   `json:"id"`
	Status   int      `json:"status"` // 201, 202 or 200, or that of Error
	Jobs     int64    `json:"jobs"`   // so far
	Expanded bool     `json:"expanded"`
	Error    *Problem `json:"error"`
}

// eventBatch is the request of SendEvents, eventResults its answer.
type eventBatch struct {
	Events []NewEvent `json:"events"`
}

type eventResults struct {
	Answer

	Results []EventResult `json:"results"`
}

// SendEvents sends up to 1,000 events, and returns a result for each, in order.
func (c *Client) SendEvents(ctx context.Context, all []NewEvent) ([]EventResult, error) {
	sent, err := answer[eventResults](ctx, c, onceOf(nil), eventBatch{all}, "/v1/events/batch")
	if err != nil {
		return nil, err
	}
	return sent.Results, nil
}

// EventFilter selects events.
type EventFilter struct {
	Topic         string    `json:"topic"`
	Type          string    `json:"type"`
	Label         []string  `json:"label"` // key:value, all of them
	CreatedAfter  time.Time `json:"created_after"`
	CreatedBefore time.Time `json:"created_before"`
	Order         string    `json:"order"` // newest or oldest

	PageOptions // of EventsPage
}

// Events returns events, those that are not expanded first, then the newest.
func (c *Client) Events(ctx context.Context, f EventFilter) iter.Seq2[*SentEvent, error] {
	return list[SentEvent](ctx, c, wire.Values(f), "/v1/events")
}

// EventsPage returns a page of Events.
func (c *Client) EventsPage(ctx context.Context, f EventFilter) (*Page[SentEvent], error) {
	return answer[Page[SentEvent]](ctx, c, call{method: http.MethodGet, query: wire.Values(f)}, nil, "/v1/events")
}

// GetEvent returns an event with its body and the states of its jobs.
func (c *Client) GetEvent(ctx context.Context, id string) (*SentEvent, error) {
	return c.WaitEvent(ctx, id, 0)
}

// WaitEvent is GetEvent once all jobs have ended, up to 100, or after the wait of up to 60 s.
func (c *Client) WaitEvent(ctx context.Context, id string, wait time.Duration) (*SentEvent, error) {
	r := call{method: http.MethodGet, query: waitQuery(wait), wait: wait}
	return answer[SentEvent](ctx, c, r, nil, "/v1/events/", id)
}

// SendEventAndWait sends an event and returns it when all its jobs have ended, up to 100, or after the wait of up to 60
// s as it is then.
func (c *Client) SendEventAndWait(ctx context.Context, e NewEvent, wait time.Duration) (*SentEvent, error) {
	if e.ID == "" {
		e.ID = NewID()
	}
	r := call{method: http.MethodPost, query: waitQuery(wait), wait: wait}
	return answer[SentEvent](ctx, c, r, e, "/v1/events")
}

// TestLane sends a test event of a type, or of the type test, to a lane, and returns its job with the receiver's
// answer.
func (c *Client) TestLane(ctx context.Context, topic, lane, eventType string) (*JobInfo, error) {
	r := onceOf(nil)
	if r.wait = longestJobWait; eventType != "" {
		r.query = url.Values{"type": {eventType}}
	}
	return answer[JobInfo](ctx, c, r, nil, "/v1/topics/", topic, "/lanes/", lane, "/test")
}
