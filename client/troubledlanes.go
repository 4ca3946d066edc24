package client

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// TroubledLanes are lanes whose receiver fails or that hold jobs back, the worst first.
type TroubledLanes struct {
	Answer

	Items    []TroubledLane `json:"items"`
	Total    int            `json:"total"`     // the number of lanes that were found, also beyond Items
	LookedAt int            `json:"looked_at"` // the number of lanes that were looked at
	Exact    bool           `json:"exact"`     // false: the server's budget ended before all lanes were looked at
}

// TroubledLane is a lane whose receiver fails, or with unfinished jobs that are held back.
type TroubledLane struct {
	Topic       string     `json:"topic"`
	Lane        string     `json:"lane"`
	Reasons     []Obstacle `json:"reasons"` // one or more
	Scheduled   int64      `json:"scheduled"`
	Ready       int64      `json:"ready"`
	Running     int64      `json:"running"`
	OldestDueAt time.Time  `json:"oldest_due_at"` // of jobs that are not running; zero: not known
	Receiver
}

// Receiver is what the attempts of a lane tell of its receiver. Nil: none failed since it is known to be well.
type Receiver struct {
	Health      *ReceiverHealth `json:"health"`
	LastFailure *LaneFailure    `json:"last_failure"` // the newest failed attempt
}

// ReceiverHealth says whether a receiver fails.
type ReceiverHealth struct {
	State         string    `json:"state"`          // ok, failing, unknown
	Since         time.Time `json:"since"`          // the first failure of those that follow one another
	Attempts      int64     `json:"attempts"`       // since then
	Failed        int64     `json:"failed"`         // of these
	FailedPercent int64     `json:"failed_percent"` // of the last five minutes; of few attempts, since Since
}

// LaneFailure is a failed attempt of a job of a lane.
type LaneFailure struct {
	JobID      string    `json:"job_id"`
	At         time.Time `json:"at"`     // when it started, or when its failure was recorded
	Status     int       `json:"status"` // zero: there was no answer
	Error      string    `json:"error"`
	ErrorClass string    `json:"error_class"`
}

// TroubledQuery selects lanes in trouble. The zero value selects those of all topics.
type TroubledQuery struct {
	Topic string `json:"topic"`
	Lane  string `json:"lane"`  // of the topic, which is required; the server answers without a search
	Code  string `json:"code"`  // of a reason, such as failing; empty: any
	Limit int    `json:"limit"` // 1 to 500; zero: 20
}

// TroubledLanes returns the lanes whose receiver fails or that hold jobs back now, the worst first. Topics and lanes
// that do not exist are in no trouble.
func (c *Client) TroubledLanes(ctx context.Context, q TroubledQuery) (*TroubledLanes, error) {
	query := make(url.Values)
	if q.Topic != "" {
		query.Set("topic", q.Topic)
	}
	if q.Lane != "" {
		query.Set("lane", q.Lane)
	}
	if q.Code != "" {
		query.Set("code", q.Code)
	}
	if q.Limit != 0 {
		query.Set("limit", strconv.Itoa(q.Limit))
	}
	return answer[TroubledLanes](ctx, c, call{method: http.MethodGet, query: query}, nil, "/v1/lanes/troubled")
}
