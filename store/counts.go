package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
)

// Counts is the part of a shard that counts jobs.
type Counts interface {
	// TopicStats counts the jobs of the topics that the filter selects, in order of name. Topics that the shard does
	// not know have no row. A page leaves out the topics of GroupInternal, whose jobs are Ringback's own.
	TopicStats(ctx context.Context, filter StatsFilter) ([]TopicStats, error)

	// Totals sums the counts of all topics of a namespace but those of GroupInternal, including the topics that Sweep
	// has removed. Its Topic is empty.
	Totals(ctx context.Context, namespace string) (TopicStats, error)

	// Usage sums what the jobs of a namespace use, of all topics but those of GroupInternal. It reads counters only:
	// its cost grows with the topics, not with jobs or lanes.
	Usage(ctx context.Context, namespace string) (Usage, error)

	// LaneStats counts the unfinished jobs of a topic's lanes, in order of name, at most limit lanes after the name
	// after.
	LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]LaneStats, error)

	// QueueState returns what delays the due jobs of a queue. That of a queue without unfinished jobs may be zero.
	QueueState(ctx context.Context, queue job.Queue) (QueueState, error)

	// TopicState returns what delays the due jobs of a topic's lanes on the shard, under a rate of the topic.
	TopicState(ctx context.Context, namespace, topic string, rate policy.Rate) (TopicState, error)

	// ListHealth returns lanes that have health, in order of its Since. Its cost grows with the lanes of the namespace
	// that have some; of many it looks at the first MaxHealthScan.
	ListHealth(ctx context.Context, filter HealthFilter) ([]LaneHealth, error)

	// ReadHistory returns the history of each of some topics of a namespace, in their order, at most MaxBatch. The name
	// AllTopics is the sum of the namespace, and LaneHistory that of a lane: of MaxLaneHistories of a topic that have
	// health, and without lateness. Settlements count in the minute and the hour in which they were written.
	ReadHistory(ctx context.Context, namespace string, topics []string) ([]History, error)
}

// StatsFilter selects topics of a namespace: those listed, or a page of all.
type StatsFilter struct {
	Namespace string
	Topics    []string // at most MaxBatch; empty: a page of all topics but those of GroupInternal
	After     string   // the page begins after this name
	Limit     int      // of the page, 1 to MaxBatch
	// NamesOnly says that the rows have no counts but Registered. Counting the others costs a look at each lane with
	// unfinished jobs.
	NamesOnly bool
}

// TopicStats counts the jobs of a topic on a shard. Registered = Scheduled + Ready + Running + Delivered + Dead +
// Cancelled. The last three count all jobs that ended so and were not revived, including those that retention removed.
// A job without a lease counts as Scheduled until it is due and as Ready from then on, as in Get and List, even while
// its queue is throttled.
type TopicStats struct {
	Namespace  string
	Topic      string
	Registered int64 `api:"registered,always"`
	Scheduled  int64 `api:"scheduled,always"`
	Ready      int64 `api:"ready,always"`
	Running    int64 `api:"running,always"`
	Delivered  int64 `api:"delivered,always"`
	Dead       int64 `api:"dead,always"`
	Cancelled  int64 `api:"cancelled,always"`
	// OldestDue is the earliest due time of jobs that are not running. Null: there are no such jobs.
	//
	// It is exact for up to 1,000 lanes, else that of the lanes that were read.
	OldestDue time.Time `api:"oldest_due_at"`
	// OpenBreakers is the number of breakers that are open or half open, one per lane.
	OpenBreakers int64 `api:"breakers_open,always"`
	// LanesFailing is the number of lanes whose receiver fails, up to 512.
	//
	// Shards do not count them: see ListHealth.
	LanesFailing int64 `api:"lanes_failing,always"`
	// Bytes is the size of the scheduled, ready and running jobs: bodies, URLs, headers and labels.
	//
	// See Usage.
	Bytes int64 `api:"unfinished_bytes,always"`
}

// Add returns the sum of the counts, with the name of o.
func (t TopicStats) Add(o TopicStats) TopicStats {
	t.Namespace, t.Topic = o.Namespace, o.Topic
	t.Registered += o.Registered
	t.Scheduled += o.Scheduled
	t.Ready += o.Ready
	t.Running += o.Running
	t.Delivered += o.Delivered
	t.Dead += o.Dead
	t.Cancelled += o.Cancelled
	t.OpenBreakers += o.OpenBreakers
	t.LanesFailing += o.LanesFailing
	t.Bytes += o.Bytes
	if t.OldestDue.IsZero() || (!o.OldestDue.IsZero() && o.OldestDue.Before(t.OldestDue)) {
		t.OldestDue = o.OldestDue
	}
	return t
}

// Usage is what unfinished jobs use.
type Usage struct {
	Jobs int64
	// Bytes is the size of their bodies and of what is stored of the rest of their Spec. A job counts for no more than
	// JobBytes. What an engine needs beside it, such as indexes, and the history do not count.
	Bytes int64
	// KeptBytes is the size, counted the same way, of the ended jobs that are kept beside them.
	KeptBytes int64
}

// Add returns the sum of both.
func (u Usage) Add(o Usage) Usage {
	return Usage{u.Jobs + o.Jobs, u.Bytes + o.Bytes, u.KeptBytes + o.KeptBytes}
}

// Sub returns the difference of both.
func (u Usage) Sub(o Usage) Usage {
	return Usage{u.Jobs - o.Jobs, u.Bytes - o.Bytes, u.KeptBytes - o.KeptBytes}
}

// jobOverhead is the largest size of what an engine adds to the record of a job.
const jobOverhead = 64

// JobBytes returns the most that a job counts for in Usage.Bytes.
func JobBytes(s *job.Spec) int64 {
	var fields [512]byte
	return int64(jobOverhead + len(s.Body) + len(s.URL) + len(codec.AppendSpecWithoutURL(fields[:0], s)))
}

// LaneStats counts the unfinished jobs of a lane, as TopicStats does.
type LaneStats struct {
	Lane      string
	Scheduled int64
	Ready     int64
	Running   int64
	// CooldownUntil is the end of the lane's cooldown; zero: it has none.
	CooldownUntil time.Time
	CooldownCause CooldownCause // of a lane with CooldownUntil
	// BreakerOpen is set while the lane's breaker is open, also while it waits for its probe.
	BreakerOpen bool
	// Health is that of the lane's attempts; nil: none failed.
	Health *policy.Health
}

// QueueState is the state of one queue: the counts and the throttles of its lane.
type QueueState struct {
	LaneStats

	// NextStart is when the lane's rate allows the next start; zero: it allows one now, or the lane has no rate.
	NextStart time.Time
	// Next is the job of an ordered queue that no other passes: the claimed one, else the one whose turn it is. Zero:
	// there is none, or the queue is not ordered.
	Next job.Ref
	// Led is set while a process holds the shard's carrier lock: a process that delivers is alive, or was within
	// LeadershipTTL.
	Led bool
}

// TopicState is the state of a topic on one shard.
type TopicState struct {
	// Running is the number of leased jobs on the shard.
	Running int64
	// NextStart is when the topic's rate grants the next start, on the shard that ShardOfTopic names; zero: it grants
	// one now, the topic has no rate, or the shard is another.
	NextStart time.Time
}
