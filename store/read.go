package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Filter selects jobs. Topic and State must be set.
type Filter struct {
	Namespace string
	Topic     string
	State     job.State
	Lane      string // empty: any
	Label     string // "key=value" pair split by the API; empty: any
	Value     string
	Reason    policy.Reason // of a dead job; empty: any
	Status    int           // of the last answer; 0: any
	// After and Before bound the time of the state (due, or finished), After inclusive, Before exclusive; zero: open.
	After  time.Time
	Before time.Time
	Limit  int // 1 to 500
	Cursor string
}

// Page is a part of a list. An empty Cursor means that it was the last.
type Page struct {
	Jobs   []job.Job
	Cursor string
}

// TopicStats counts one topic's jobs on a shard. Registered = Scheduled + Ready + Running + Delivered + Dead +
// Cancelled: the last three count every job that ended so and was not revived, kept or not. A job that nobody holds counts
// as Ready once it is due and as Scheduled until then, as Get and List show it, whatever keeps its queue back: a pause, a
// hold, a breaker, a rate, or its lane's limit.
type TopicStats struct {
	Namespace  string
	Topic      string
	Registered int64
	Scheduled  int64
	Ready      int64
	Running    int64
	Delivered  int64
	Dead       int64
	Cancelled  int64
	// OldestDue is the earliest due moment among the jobs that nobody holds; zero when there is none. Exact for up to
	// 1,000 lanes, else of those looked at.
	OldestDue time.Time
	// Open counts the lanes whose breaker is open, or waits for its probe.
	OpenBreakers int64
}

// StatsFilter selects topics of a namespace: those named, or a page of all.
type StatsFilter struct {
	Namespace string
	Topics    []string // these, at most MaxBatch; empty: a page of all topics
	After     string   // the page begins after this name
	Limit     int      // of the page, 1 to MaxBatch
}

// LaneStats counts one lane's unfinished jobs, as TopicStats does.
type LaneStats struct {
	Lane      string
	Scheduled int64
	Ready     int64
	Running   int64
	// CooldownUntil is when the lane's hold ends; zero when none holds.
	CooldownUntil time.Time
	// Open: the lane's breaker is open, or waits for its probe.
	BreakerOpen bool
}
