package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// HeldLanes are lanes that hold jobs back, the worst first.
type HeldLanes struct {
	Answer

	Items    []HeldLane `json:"items"`
	Total    int        `json:"total"`     // the number of lanes that were found, also beyond Items
	LookedAt int        `json:"looked_at"` // the number of lanes that were looked at
	Exact    bool       `json:"exact"`     // false: the server's budget ended before all lanes were looked at
}

// HeldLane is a lane with unfinished jobs that are held back.
type HeldLane struct {
	Topic       string       `json:"topic"`
	Lane        string       `json:"lane"`
	Reasons     []Obstacle   `json:"reasons"` // one or more
	Scheduled   int64        `json:"scheduled"`
	Ready       int64        `json:"ready"`
	Running     int64        `json:"running"`
	OldestDueAt time.Time    `json:"oldest_due_at"` // of jobs that are not running; zero: not known
	LastFailure *LaneFailure `json:"last_failure"`  // the newest known failed attempt; nil: none is known
}

// LaneFailure is a failed attempt of a job of a lane.
type LaneFailure struct {
	JobID      string    `json:"job_id"`
	At         time.Time `json:"at"`
	Status     int       `json:"status"` // zero: there was no answer
	Error      string    `json:"error"`
	ErrorClass string    `json:"error_class"`
}

// HeldQuery selects lanes that hold jobs back. The zero value selects those of all topics.
type HeldQuery struct {
	Topic string `json:"topic"`
	Lane  string `json:"lane"`  // of the topic, which is required; the server answers without a search
	Limit int    `json:"limit"` // 1 to 500; zero: 20
}

// HeldLanes returns the lanes that hold jobs back now, the worst first. Topics and lanes that do not exist hold none
// back.
func (c *Client) HeldLanes(ctx context.Context, q HeldQuery) (*HeldLanes, error) {
	query := make(url.Values)
	if q.Topic != "" {
		query.Set("topic", q.Topic)
	}
	if q.Lane != "" {
		query.Set("lane", q.Lane)
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return answer[HeldLanes](ctx, c, call{method: http.MethodGet, query: query}, nil, "/v1/lanes/held")
}
