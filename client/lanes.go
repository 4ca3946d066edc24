package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// LaneSettings override those of the lane's topic. Fields that are zero are the topic's in PutLane, and stay in
// PatchLane.
type LaneSettings struct {
	URL             string  `json:"url,omitzero"`
	Headers         Headers `json:"headers,omitzero"`
	LaneConcurrency int     `json:"lane_concurrency,omitzero"`
	LaneRate        string  `json:"lane_rate,omitzero"`
	Ordered         *bool   `json:"ordered,omitzero"`
	// Subscribe are patterns of types of events that the lane gets, SubscribeLabels labels that they must have.
	Subscribe       []string          `json:"subscribe,omitzero"`
	SubscribeLabels map[string]string `json:"subscribe_labels,omitzero"`
	ManagedBy       string            `json:"managed_by,omitzero"` // as that of Policy
	// Null are the names of members that get the topic's settings in PatchLane.
	Null []string `json:"-" wire:"nulls"`
}

// MarshalJSON returns the JSON that the API reads.
func (s LaneSettings) MarshalJSON() ([]byte, error) { return wire.Encode(s) }

// UnmarshalJSON reads what MarshalJSON returned.
func (s *LaneSettings) UnmarshalJSON(data []byte) error { return wire.Decode(data, s) }

// Lane is a lane with its settings. PutLane accepts the LaneSettings of what GetLane returned.
type Lane struct {
	Answer
	LaneSettings

	Topic      string      `json:"topic"`
	Name       string      `json:"lane"`
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
func (l Lane) MarshalJSON() ([]byte, error) { return l.Answer.MarshalJSON() }

// UnmarshalJSON reads a lane as responses have it.
func (l *Lane) UnmarshalJSON(data []byte) error { return wire.Decode(data, l) }

// Lanes returns the lanes of a topic that have settings, in order of name.
func (c *Client) Lanes(ctx context.Context, topic string) iter.Seq2[*Lane, error] {
	return list[Lane](ctx, c, nil, "/v1/topics/", topic, "/lanes")
}

// SubscribedLanes returns the lanes of a topic that subscribe to events of a type, in order of name.
func (c *Client) SubscribedLanes(ctx context.Context, topic, eventType string) iter.Seq2[*Lane, error] {
	return list[Lane](ctx, c, url.Values{"type": {eventType}}, "/v1/topics/", topic, "/lanes")
}

// LanesPage returns a page of Lanes.
func (c *Client) LanesPage(ctx context.Context, topic string, o PageOptions) (*Page[Lane], error) {
	return readPage[Page[Lane]](ctx, c, o, "/v1/topics/", topic, "/lanes")
}

func (c *Client) lane(ctx context.Context, r call, body any, topic, lane, action string) (*Lane, error) {
	return answer[Lane](ctx, c, r, body, "/v1/topics/", topic, "/lanes/", lane, action)
}

// GetLane returns a lane that has settings.
func (c *Client) GetLane(ctx context.Context, topic, lane string) (*Lane, error) {
	return c.lane(ctx, get(), nil, topic, lane, "")
}

// PutLane sets all of a lane's settings.
func (c *Client) PutLane(
	ctx context.Context, topic, lane string, s LaneSettings, conditions ...Condition,
) (*Lane, error) {
	return c.lane(ctx, change(http.MethodPut, conditions), s, topic, lane, "")
}

// PatchLane changes some of a lane's settings.
func (c *Client) PatchLane(
	ctx context.Context, topic, lane string, s LaneSettings, conditions ...Condition,
) (*Lane, error) {
	return c.lane(ctx, change(http.MethodPatch, conditions), s, topic, lane, "")
}

// DeleteLane removes a lane's settings and secrets. Its jobs stay.
func (c *Client) DeleteLane(ctx context.Context, topic, lane string, conditions ...Condition) error {
	return c.send(ctx, remove(conditions), nil, "/v1/topics/", topic, "/lanes/", lane)
}

// PauseLane pauses a lane. The note says why, for those who find the pause.
func (c *Client) PauseLane(ctx context.Context, topic, lane, note string, conditions ...Condition) (*Lane, error) {
	return c.lane(ctx, change(http.MethodPost, conditions), pauseRequest{note}, topic, lane, "/pause")
}

// ResumeLane resumes a lane.
func (c *Client) ResumeLane(ctx context.Context, topic, lane string, conditions ...Condition) (*Lane, error) {
	return c.lane(ctx, change(http.MethodPost, conditions), nil, topic, lane, "/resume")
}
