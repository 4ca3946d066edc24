package memory

import (
	"math"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/table"
)

// NoHead is the first of a queue without waiting jobs: it is never due.
var NoHead = table.Key{Due: math.MaxInt64}

// A Queue is one lane in memory. Only the writer touches it.
type Queue struct {
	Id         int64
	Name       job.Queue
	Topic      *Topic
	LaneConfig *LaneConfig // the lane's settings; nil: those of the topic apply
	Owners     leaseOwners
	QueueNumbers
	Saved   QueueNumbers // as at the beginning of the transaction SavedIn
	SavedIn uint64
	IdleIn  uint64 // SavedIn + 1 when it was last seen idle; 0: it was not
	// a claim has found jobs of it that it has not taken yet; after a failed claim it may still be set
	InClaim      bool
	DueSlot      Slot
	RenotifySlot Slot
	notified     string // the group of Wakeups in which it is, whose lock guards it; empty: none
}

// QueueNumbers is what a transaction changes of a queue.
type QueueNumbers struct {
	Waiting, Running, Rows int64 // jobs: unfinished without a lease, leased, all
	// Ready counts the waiting jobs up to Mark: those that were due when they came, or were counted as due since.
	// Silent is set when no wake-up was sent for the first of them.
	Ready  int64
	Mark   table.Key
	Silent bool
	// Head is the first waiting job if HeadKnown. Of an ordered queue it is the job whose turn it is, if that is due,
	// else the moment at which there may be one.
	Head       table.Key
	HeadKnown  bool
	Order      Order
	NotifiedAt int64     // time of its last wake-up, monotonic; clock.Past: no wake-up
	Throttle   *Throttle // nil: no throttle
	Health     *policy.Health
}

// An Order says how far the waiting jobs of an ordered queue are in order in the database. It is zero while the queue
// is not ordered, and when it was read from there.
type Order struct {
	On    bool      // the queue's head was found in order
	Done  bool      // all are
	After table.Key // while not: those up to this one
}

// Due reports whether a waiting job is due. Head must be known.
func (q *Queue) Due(now clock.Instant) bool { return q.Waiting > 0 && q.Head.Due <= now.Millis }

// A LaneConfig is the part of a lane's settings that a queue keeps in memory. Their document is read for a caller who
// does not know it yet.
type LaneConfig struct {
	Revision int64
	Own      policy.Limits
	limits   policy.Limits // over those of the topic
}

// NewLaneConfig returns the configuration of a lane of a topic, with the limits that it sets; nil if revision is 0.
func NewLaneConfig(t *Topic, revision int64, own policy.Limits) *LaneConfig {
	if revision == 0 {
		return nil
	}
	return &LaneConfig{Revision: revision, Own: own, limits: own.Over(*t.Limits)}
}

// Limits are what the policies of a queue's topic and lane say.
func (q *Queue) Limits() *policy.Limits {
	if q.LaneConfig != nil {
		return &q.LaneConfig.limits
	}
	return q.Topic.Limits
}

// Group is the group whose claim loops are woken.
func (q *Queue) Group() string {
	return store.GroupOf(q.Name.Namespace, q.Name.Topic, q.Topic.Limits.Deliver)
}

// Room is how many more jobs of the queue may be claimed now, if the caller may hold ahead jobs beyond the lane's
// concurrency.
func (q *Queue) Room(now clock.Instant, ahead int64) int64 {
	limits := q.Limits()
	if limits.Paused {
		return 0
	}
	if limits.Ordered {
		ahead = 0
	}
	room := max(0, int64(limits.Concurrency)+ahead-q.Running)
	if q.Throttle == nil {
		if limits.Rate.Limited() {
			room = min(room, int64(limits.Rate.Starts))
		}
		return room
	}
	if q.Throttle.Until > now.Mono {
		return 0
	}
	if q.BreakerOpen(now) {
		room = min(room, max(0, 1-q.Running))
	}
	return min(room, q.Throttle.Starts.Room(limits.Rate, now))
}

// Blocked reports whether no job of the queue may be claimed now.
func (q *Queue) Blocked(now clock.Instant) bool { return q.Room(now, 0) == 0 }

// FreeAt returns the monotonic time from which on no throttle blocks the queue; ever is false if something else blocks
// it.
func (q *Queue) FreeAt(now clock.Instant) (at int64, ever bool) {
	limits := q.Limits()
	if limits.Paused || q.Running >= int64(limits.Concurrency) {
		return clock.Past, false
	}
	if q.Throttle == nil {
		return clock.Past, true
	}
	return max(q.Throttle.Until, q.Throttle.Starts.Free(limits.Rate, now)), !q.BreakerOpen(now) || q.Running == 0
}

// BreakerOpen reports whether the lane's breaker is open, or waits for its probe. It is forgotten
// store.BreakerRetention after its cooldown, unless a job is running.
func (q *Queue) BreakerOpen(now clock.Instant) bool {
	g := q.Throttle
	return g != nil && g.Open && (q.Running > 0 || now.Mono <= g.Until+int64(store.BreakerRetention))
}

// ThrottleExpired reports whether nothing of a queue's throttle applies any more.
func (q *Queue) ThrottleExpired(now clock.Instant) bool {
	rate := q.Limits().Rate
	return q.Throttle.Until <= now.Mono && !q.BreakerOpen(now) &&
		(!rate.Limited() || len(q.Throttle.Starts.Counting(rate, now)) == 0)
}

// Cooldown returns the end of a queue's cooldown by the wall clock, or zero, and its cause.
func (q *Queue) Cooldown(now clock.Instant) (until time.Time, cause store.CooldownCause) {
	if q.Throttle == nil {
		return time.Time{}, 0
	}
	if until = now.TimeAt(q.Throttle.Until); until.IsZero() {
		return until, 0
	}
	return until, q.Throttle.Cause
}

// NextStart returns when the lane's rate allows the next start, by the wall clock; zero: now.
func (q *Queue) NextStart(now clock.Instant) time.Time {
	if q.Throttle == nil {
		return time.Time{}
	}
	return now.TimeAt(q.Throttle.Starts.Free(q.Limits().Rate, now))
}
