package client

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// History is what became of attempts, in order of time. Minutes and hours without an attempt are missing.
type History struct {
	Answer
	Buckets

	Items []TopicBuckets `json:"items"` // of the topics that were asked for
}

// Buckets are those of the last hour, by minutes, and of the last two days, by hours.
type Buckets struct {
	Minutes []HistoryBucket `json:"minutes"`
	Hours   []HistoryBucket `json:"hours"`
}

// TopicBuckets are the Buckets of a topic.
type TopicBuckets struct {
	Topic string `json:"topic"`
	Buckets
}

// TopicHistory is what became of the attempts of a topic.
type TopicHistory struct {
	Answer
	TopicBuckets

	Lanes []WorstLane `json:"lanes"` // those with the most failed attempts, at most 20
}

// WorstLane is a lane of which attempts failed.
type WorstLane struct {
	Lane string `json:"lane"`
	Receiver
	Buckets // of up to 20 lanes of a topic that fail; others have none
}

// HistoryBucket counts what became of attempts in a minute or an hour.
type HistoryBucket struct {
	At        time.Time `json:"at"`
	Delivered int64     `json:"delivered"`
	Failed    int64     `json:"failed"`
	Dead      int64     `json:"dead"`     // jobs that died
	Released  int64     `json:"released"` // jobs that were given back without an attempt that counts
	// LateP50MS and LateP99MS are estimates of the lateness of its attempts. Nil: there was none.
	LateP50MS *float64 `json:"late_p50_ms"`
	LateP99MS *float64 `json:"late_p99_ms"`
}

// SumBuckets adds up the buckets that begin at a time or later. The sum has no lateness.
func SumBuckets(buckets []HistoryBucket, from time.Time) (sum HistoryBucket) {
	for i := range buckets {
		if b := &buckets[i]; !b.At.Before(from) {
			sum.Delivered += b.Delivered
			sum.Failed += b.Failed
			sum.Dead += b.Dead
			sum.Released += b.Released
		}
	}
	return sum
}

// HistoryQuery selects histories. The zero value selects that of all topics together.
type HistoryQuery struct {
	Topics []string // those whose histories are the Items, at most 100
	By     string   // minutes or hours: the other is empty; empty: both
}

// History returns what became of attempts in all topics, and in those that are named.
func (c *Client) History(ctx context.Context, q HistoryQuery) (*History, error) {
	query := make(url.Values)
	if len(q.Topics) > 0 {
		query.Set("topics", strings.Join(q.Topics, ","))
	}
	if q.By != "" {
		query.Set("by", q.By)
	}
	return answer[History](ctx, c, call{method: http.MethodGet, query: query}, nil, "/v1/history")
}

// TopicHistory returns what became of the attempts of a topic.
func (c *Client) TopicHistory(ctx context.Context, topic string) (*TopicHistory, error) {
	return answer[TopicHistory](ctx, c, get(), nil, "/v1/topics/", topic, "/history")
}
