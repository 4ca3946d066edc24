package client

import (
	"context"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// Counts are numbers of jobs: Registered is the sum of the six states.
type Counts struct {
	Registered      int64     `json:"registered"`
	Scheduled       int64     `json:"scheduled"`
	Ready           int64     `json:"ready"`
	Running         int64     `json:"running"`
	Delivered       int64     `json:"delivered"`
	Dead            int64     `json:"dead"`
	Cancelled       int64     `json:"cancelled"`
	OldestDueAt     time.Time `json:"oldest_due_at"` // of jobs that are not running; zero: there are none
	BreakersOpen    int64     `json:"breakers_open"`
	LanesFailing    int64     `json:"lanes_failing"` // of which the receiver fails, up to 512
	UnfinishedBytes int64     `json:"unfinished_bytes"`
}

// Stats are the counts of all jobs, and of a page of topics: see StatsByTopic for all of them.
type Stats struct {
	Answer

	Totals     Counts        `json:"totals"`
	Items      []TopicCounts `json:"items"` // in order of name
	NextCursor string        `json:"next_cursor"`
}

// TopicCounts are the counts of a topic.
type TopicCounts struct {
	Topic string `json:"topic"`
	Counts
}

// TopicStats are the counts of a topic, and of a page of its lanes with unfinished jobs: see LaneStats for all of them.
type TopicStats struct {
	Answer
	Counts

	Topic      string       `json:"topic"`
	Items      []LaneCounts `json:"items"` // in order of name
	NextCursor string       `json:"next_cursor"`
}

// LaneCounts are the counts of a lane.
type LaneCounts struct {
	Lane          string    `json:"lane"`
	Scheduled     int64     `json:"scheduled"`
	Ready         int64     `json:"ready"`
	Running       int64     `json:"running"`
	Breaker       string    `json:"breaker"`        // closed, open, half_open
	CooldownUntil time.Time `json:"cooldown_until"` // zero: none
	Receiver
}

// Stats counts all jobs, and those of the first topics.
func (c *Client) Stats(ctx context.Context) (*Stats, error) {
	return answer[Stats](ctx, c, get(), nil, "/v1/stats")
}

// StatsByTopic returns the counts of all topics in order of name.
func (c *Client) StatsByTopic(ctx context.Context) iter.Seq2[*TopicCounts, error] {
	return list[TopicCounts](ctx, c, nil, "/v1/stats")
}

// StatsPage returns Stats with a page of StatsByTopic.
func (c *Client) StatsPage(ctx context.Context, o PageOptions) (*Stats, error) {
	return readPage[Stats](ctx, c, o, "/v1/stats")
}

// TopicStats counts the jobs of a topic, and the unfinished ones of its first lanes.
func (c *Client) TopicStats(ctx context.Context, topic string) (*TopicStats, error) {
	return answer[TopicStats](ctx, c, get(), nil, "/v1/topics/", topic, "/stats")
}

// LaneStats returns the counts of a topic's lanes with unfinished jobs in order of name.
func (c *Client) LaneStats(ctx context.Context, topic string) iter.Seq2[*LaneCounts, error] {
	return list[LaneCounts](ctx, c, nil, "/v1/topics/", topic, "/stats")
}

// TopicStatsPage returns TopicStats with a page of LaneStats.
func (c *Client) TopicStatsPage(ctx context.Context, topic string, o PageOptions) (*TopicStats, error) {
	return readPage[TopicStats](ctx, c, o, "/v1/topics/", topic, "/stats")
}

// LaneCounts counts the unfinished jobs of a lane. Those of an unknown lane are zero.
func (c *Client) LaneCounts(ctx context.Context, topic, lane string) (*LaneCounts, error) {
	return answer[LaneCounts](ctx, c, call{method: http.MethodGet, query: url.Values{"lane": {lane}}}, nil,
		"/v1/topics/", topic, "/stats")
}

// Version is what the server's process is.
type Version struct {
	Answer

	Version   string `json:"version"`
	Commit    string `json:"commit"`
	GoVersion string `json:"go_version"`
	Process   string `json:"process"` // its name in attempts; empty: it does not deliver
}

// Version returns the version of the server.
func (c *Client) Version(ctx context.Context) (*Version, error) {
	return answer[Version](ctx, c, get(), nil, "/v1/version")
}

// Readiness says whether a process accepts and delivers jobs.
type Readiness struct {
	Answer

	Status string `json:"status"`
	// Version is that of the server; empty if it runs on another machine.
	Version string           `json:"version"`
	Stores  []StoreReadiness `json:"stores"`
}

// StoreReadiness says whether a store does.
type StoreReadiness struct {
	Name   string `json:"name"`
	Ready  bool   `json:"ready"`
	Detail string `json:"detail"` // why not
}

// Ready returns whether the server's process accepts and delivers jobs. It makes one request; the error is
// ErrUnavailable if it does not.
func (c *Client) Ready(ctx context.Context) (*Readiness, error) {
	r := new(Readiness)
	if err := c.try(ctx, call{method: http.MethodGet, path: "/readyz", into: r}); err != nil {
		return nil, err
	}
	return r, nil
}

// Alive returns an error if the server's process does not answer. It makes one request.
func (c *Client) Alive(ctx context.Context) error {
	return c.try(ctx, call{method: http.MethodGet, path: "/healthz"})
}
