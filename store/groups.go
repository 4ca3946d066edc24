package store

import (
	"cmp"
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Bounds of GroupBy.Within and Filter.Within.
const (
	MinGroupTime = time.Millisecond
	MaxGroupTime = 10 * time.Second
)

// GroupBy selects the fields by which jobs are grouped, and bounds the time.
type GroupBy struct {
	Topic      bool
	Lane       bool
	Reason     bool
	Status     bool
	ErrorClass bool
	// Within is the time after which no more jobs are counted; zero: 2 s.
	Within time.Duration
	// AcquireTurn, if set, is called before each read of at most MaxListLimit jobs, and release after it, so that a
	// long count lets others read. Within begins with the first turn. Its error is that of the count, but a later
	// *capacity.FullError ends the count.
	AcquireTurn func(ctx context.Context) (release func(), err error)
}

// Key returns the key of a job's group.
func (b GroupBy) Key(j *job.Job) GroupKey {
	var k GroupKey
	if b.Topic {
		k.Topic = j.Topic
	}
	if b.Lane {
		k.Lane = j.Lane
	}
	if b.Reason {
		k.Reason = j.Reason
	}
	if b.Status {
		k.Status = j.Status
	}
	if b.ErrorClass {
		k.ErrorClass = j.ErrorClass
	}
	return k
}

// GroupKey is the fields that the jobs of a group have in common. Fields that GroupBy does not select are zero.
type GroupKey struct {
	Topic  string
	Lane   string
	Reason policy.Reason
	Status int
	// ErrorClass is empty of jobs that have a status, and of those that UnknownAnswer selects.
	ErrorClass policy.ErrorClass
}

// Compare orders keys by topic, lane, reason, status and error class.
func (k GroupKey) Compare(o GroupKey) int {
	return cmp.Or(cmp.Compare(k.Topic, o.Topic), cmp.Compare(k.Lane, o.Lane), cmp.Compare(k.Reason, o.Reason),
		cmp.Compare(k.Status, o.Status), cmp.Compare(k.ErrorClass, o.ErrorClass))
}

// Group counts jobs that have a key, with the id and the end of one of them.
type Group struct {
	GroupKey
	Count   int64
	ID      string
	EndedAt time.Time
}

// Groups is the groups of the jobs that a filter selects, the largest first.
type Groups struct {
	Groups []Group
	// Exact is set when all jobs were counted. Else the counts are those of some of the jobs, or groups are missing.
	Exact   bool
	Scanned int // jobs looked at
}
