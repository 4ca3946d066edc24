package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// Policy are the settings of a topic. Fields that are zero have the default in PutTopic, and stay in PatchTopic.
type Policy struct {
	Ladder          []time.Duration `json:"ladder,omitzero"`
	Retries         *int            `json:"retries,omitzero"`
	Jitter          *float64        `json:"jitter,omitzero"`
	Timeout         time.Duration   `json:"timeout,omitzero"`
	MaxAge          time.Duration   `json:"max_age,omitzero"`
	Workers         int             `json:"workers,omitzero"`
	LaneConcurrency int             `json:"lane_concurrency,omitzero"`
	Rate            string          `json:"rate,omitzero"`      // such as 100/s
	LaneRate        string          `json:"lane_rate,omitzero"` // such as 5/90s
	Ordered         *bool           `json:"ordered,omitzero"`
	Deliver         string          `json:"deliver,omitzero"` // push, pull or handler
	URL             string          `json:"url,omitzero"`     // for jobs without one
	Headers         Headers         `json:"headers,omitzero"`
	Success         *Success        `json:"success,omitzero"`
	Breaker         *Breaker        `json:"breaker,omitzero"`
	OnDelivered     *Callback       `json:"on_delivered,omitzero"`
	OnDead          *Callback       `json:"on_dead,omitzero"`
	OnBacklog       *Backlog        `json:"on_backlog,omitzero"`
	ClientCert      *Certificate    `json:"client_cert,omitzero"`
	GiveUpOn        []string        `json:"give_up_on,omitzero"` // statuses such as 410 and 4xx
	KeepDelivered   *Retention      `json:"keep_delivered,omitzero"`
	KeepDead        *Retention      `json:"keep_dead,omitzero"`
	IDWindow        *time.Duration  `json:"id_window,omitzero"` // 0: ids are not remembered
	// ManagedBy are the files that set it. PutTopic keeps it if it is empty.
	ManagedBy string `json:"managed_by,omitzero"`
	// Null are the names of members that get their default in PatchTopic.
	Null []string `json:"-" wire:"nulls"`
}

// MarshalJSON returns the JSON that the API reads.
func (p Policy) MarshalJSON() ([]byte, error) { return wire.Encode(p) }

// UnmarshalJSON reads what MarshalJSON returned.
func (p *Policy) UnmarshalJSON(data []byte) error { return wire.Decode(data, p) }

// Success says which answers count as delivered.
type Success struct {
	Status       []string `json:"status,omitzero"` // such as 200 and 2xx
	BodyEquals   string   `json:"body_equals,omitzero"`
	BodyContains string   `json:"body_contains,omitzero"`
	// Null are the names of members that get their default in PatchTopic.
	Null []string `json:"-" wire:"nulls"`
}

// Breaker says when the breaker of a lane opens, and for how long.
type Breaker struct {
	Failures *int          `json:"failures,omitzero"` // in a row; 0: never
	Open     time.Duration `json:"open,omitzero"`
	// Null are the names of members that get their default in PatchTopic.
	Null []string `json:"-" wire:"nulls"`
}

// Backlog is a callback about a topic whose jobs pile up.
type Backlog struct {
	URL       string        `json:"url,omitzero"`
	Method    string        `json:"method,omitzero"`
	Headers   Headers       `json:"headers,omitzero"`
	Retries   *int          `json:"retries,omitzero"`
	Timeout   time.Duration `json:"timeout,omitzero"`
	Include   []string      `json:"include,omitzero"`
	OlderThan time.Duration `json:"older_than,omitzero"`
	MoreThan  int64         `json:"more_than,omitzero"`
	// Null are the names of members that get their default in PatchTopic.
	Null []string `json:"-" wire:"nulls"`
}

// Certificate is a client certificate, which receivers see.
type Certificate struct {
	Chain string `json:"chain,omitzero"` // PEM
	Key   string `json:"key,omitzero"`   // PEM; [redacted] in responses, where it may be sent back
}

// Retention says how long ended jobs are kept. The first limit that is reached removes the oldest.
type Retention struct {
	For      *time.Duration `json:"for,omitzero"`
	Max      *int64         `json:"max,omitzero"`
	MaxBytes string         `json:"max_bytes,omitzero"` // such as 256MiB
	// Null are the names of members that get their default in PatchTopic.
	Null []string `json:"-" wire:"nulls"`
}

// Topic is a topic with its policy. PutTopic accepts the Policy of what GetTopic returned.
type Topic struct {
	Answer
	Policy

	Name       string      `json:"topic"`
	Revision   int64       `json:"revision"` // for IfRevision; 0: it has no settings
	Paused     bool        `json:"paused"`
	PausedAt   time.Time   `json:"paused_at"`
	PausedBy   string      `json:"paused_by"`
	PauseNote  string      `json:"pause_note"`
	UpdatedAt  time.Time   `json:"updated_at"` // the last change by a client; zero: unknown
	UpdatedBy  string      `json:"updated_by"`
	Durability *Durability `json:"durability"`
}

// MarshalJSON returns Raw.
func (t Topic) MarshalJSON() ([]byte, error) { return t.Answer.MarshalJSON() }

// UnmarshalJSON reads a topic as responses have it.
func (t *Topic) UnmarshalJSON(data []byte) error { return wire.Decode(data, t) }

// Topics returns the topics in order of name, with their effective policies.
func (c *Client) Topics(ctx context.Context) iter.Seq2[*Topic, error] {
	return list[Topic](ctx, c, nil, "/v1/topics")
}

// TopicsPage returns a page of Topics.
func (c *Client) TopicsPage(ctx context.Context, o PageOptions) (*Page[Topic], error) {
	return readPage[Page[Topic]](ctx, c, o, "/v1/topics")
}

// TopicSettings returns the topics in order of name, with only what was set.
func (c *Client) TopicSettings(ctx context.Context) iter.Seq2[*Topic, error] {
	return list[Topic](ctx, c, onlySet(), "/v1/topics")
}

func onlySet() url.Values { return url.Values{"defaults": {"false"}} }

// GetTopic returns a topic with its effective policy.
func (c *Client) GetTopic(ctx context.Context, topic string) (*Topic, error) {
	return answer[Topic](ctx, c, get(), nil, "/v1/topics/", topic)
}

// GetTopicSettings returns a topic with only what was set.
func (c *Client) GetTopicSettings(ctx context.Context, topic string) (*Topic, error) {
	return answer[Topic](ctx, c, call{method: http.MethodGet, query: onlySet()}, nil, "/v1/topics/", topic)
}

// PutTopic sets a topic's whole policy.
func (c *Client) PutTopic(ctx context.Context, topic string, p Policy, conditions ...Condition) (*Topic, error) {
	return answer[Topic](ctx, c, change(http.MethodPut, conditions), p, "/v1/topics/", topic)
}

// PatchTopic changes fields of a topic's policy.
func (c *Client) PatchTopic(ctx context.Context, topic string, p Policy, conditions ...Condition) (*Topic, error) {
	return answer[Topic](ctx, c, change(http.MethodPatch, conditions), p, "/v1/topics/", topic)
}

// DeleteTopic deletes a topic without unfinished jobs. With purge these are cancelled and the dead letters are removed
// first; ErrConflict says to call it again.
func (c *Client) DeleteTopic(ctx context.Context, topic string, purge bool, conditions ...Condition) error {
	return c.deletePurging(ctx, purge, conditions, "/v1/topics/", topic)
}

// purgeTime is the longest time for which a server purges before it answers.
const purgeTime = 25 * time.Second

func (c *Client) deletePurging(ctx context.Context, purge bool, conditions []Condition, parts ...string) error {
	r := remove(conditions)
	if purge {
		r.query, r.wait = url.Values{"purge": {"true"}}, purgeTime
	}
	return c.send(ctx, r, nil, parts...)
}

// pauseRequest is the body of a pause.
type pauseRequest struct {
	Note string `json:"note,omitzero"`
}

// PauseTopic pauses a topic. The note says why, for those who find the pause.
func (c *Client) PauseTopic(ctx context.Context, topic, note string, conditions ...Condition) (*Topic, error) {
	return answer[Topic](ctx, c, change(http.MethodPost, conditions), pauseRequest{note},
		"/v1/topics/", topic, "/pause")
}

// ResumeTopic resumes a topic.
func (c *Client) ResumeTopic(ctx context.Context, topic string, conditions ...Condition) (*Topic, error) {
	return answer[Topic](ctx, c, change(http.MethodPost, conditions), nil, "/v1/topics/", topic, "/resume")
}
