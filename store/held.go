package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// HeldFilter selects lanes that hold jobs back.
type HeldFilter struct {
	Namespace string
	// Topic selects the lanes of a topic, and Lane a single one of them; empty: all.
	Topic, Lane string
	// Shown reports whether lanes of a topic are selected; nil: those of all topics are.
	Shown func(topic string) bool
	Limit int // of the lanes that are returned
}

// HeldLanes are lanes that hold jobs back, the worst first: those of failing receivers, then paused ones, then those at
// a limit.
type HeldLanes struct {
	Lanes []HeldLane
	// Total is the number of lanes that were found, also beyond the limit.
	Total int
	// LookedAt is the number of lanes that were looked at.
	LookedAt int
	// Exact is false if the budget ended before all lanes were looked at.
	Exact bool
}

// HeldLane is a lane with unfinished jobs that are held back.
type HeldLane struct {
	Queue     job.Queue
	Reasons   []HoldReason // one or more
	Scheduled int64
	Ready     int64
	Running   int64
	// OldestDue is the earliest due time of a job without a lease; zero: it is not known.
	OldestDue time.Time
	// LastFailure is the newest known failed attempt of an unfinished job; nil: none is known.
	LastFailure *LaneFailure
}

// HoldReason is why a lane holds jobs back.
type HoldReason struct {
	Code   HoldCode
	Detail string    // a sentence that names the obstacle, and what to do about it
	Until  time.Time // when it ends by itself, by the store's clock; zero: unknown
	// Since, By and Note are of a pause; zero: unknown.
	Since time.Time
	By    string
	Note  string
}

// HoldCode is the kind of a HoldReason.
type HoldCode string

// The kinds of reasons. Clients must accept unknown ones.
const (
	HoldBreakerOpen HoldCode = "breaker_open" // no attempt before the breaker's cooldown ends
	// a single attempt, the probe, decides whether the breaker closes
	HoldBreakerHalfOpen HoldCode = "breaker_half_open"
	HoldRetryAfter      HoldCode = "retry_after" // the receiver asked for a pause
	// Ringback makes a pause: the breaker opened, or an attempt was not readable
	HoldCooldown    HoldCode = "cooldown"
	HoldOrder       HoldCode = "order" // a failed job of the ordered lane comes first
	HoldTopicPaused HoldCode = "topic_paused"
	HoldLanePaused  HoldCode = "lane_paused"
	HoldLaneFull    HoldCode = "lane_full" // as many attempts in flight as the lane_concurrency
	HoldLaneRate    HoldCode = "lane_rate" // the lane_rate is used up
	HoldTopicRate   HoldCode = "topic_rate"
)

// LaneFailure is a failed attempt of a job of a lane.
type LaneFailure struct {
	JobID      string
	At         time.Time // when the attempt started
	Status     int       // zero: there was no response
	Error      string
	ErrorClass policy.ErrorClass
}
