package storetest

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// record is one job.
type record struct {
	job         job.Job // with its history
	fingerprint []byte
	queue       *queue
	place       *sortedRecords // the one set that has it
	seq         uint64
	registered  uint64 // its number in the order of registration
	// lease and deadline are set while it is running.
	lease    store.Token
	deadline time.Time
	claimed  time.Time
	// maxAge is NewJob.MaxAge; aged reports that ClaimExpired returned the job for it.
	maxAge time.Duration
	aged   bool
	// late, rated and probe are fields of its ClaimedJob.
	late         time.Duration
	rated, probe bool
}

// sortedRecords is a set of records in the order of a key.
type sortedRecords struct {
	items []*record
	key   func(*record) time.Time
	bytes int64
}

func due(r *record) time.Time      { return r.job.DueAt }
func deadline(r *record) time.Time { return r.deadline }
func finished(r *record) time.Time { return r.job.FinishedAt }

// size is the size of a record for retention by bytes.
func size(r *record) int64 { return int64(len(r.job.Body) + len(r.job.URL)) }

func (l *sortedRecords) find(r *record) (int, bool) {
	return slices.BinarySearchFunc(l.items, r, func(a, b *record) int {
		return cmp.Or(l.key(a).Compare(l.key(b)), cmp.Compare(a.seq, b.seq))
	})
}

func (l *sortedRecords) first() *record {
	if len(l.items) == 0 {
		return nil
	}
	return l.items[0]
}

// placeIn moves a record to a set, behind records with an equal key.
func (s *modelShard) placeIn(r *record, to *sortedRecords) {
	s.remove(r)
	s.seq++
	r.seq, r.place = s.seq, to
	at, _ := to.find(r)
	to.items = slices.Insert(to.items, at, r)
	to.bytes += size(r)
}

// remove removes a record from its set. Its key must not have changed since it was placed.
func (s *modelShard) remove(r *record) {
	l := r.place
	if l == nil {
		return
	}
	at, ok := l.find(r)
	if !ok {
		panic("storetest: a record is missing in its set")
	}
	if at == 0 {
		l.items[0] = nil
		l.items = l.items[1:]
	} else {
		l.items = slices.Delete(l.items, at, at+1)
	}
	l.bytes -= size(r)
	r.place = nil
}

// queue is the unfinished jobs and the throttles of a lane.
type queue struct {
	shard               *modelShard
	name                job.Queue
	topic               *topic
	due, ready, claimed sortedRecords
	notifiedAt          time.Time // the last wake-up
	// open reports an open breaker; window is the starts that its rate counts.
	cooldownUntil time.Time
	cooldownCause store.CooldownCause
	open          bool
	window        window
	health        *policy.Health
	nextAt        time.Time // next visit of the carrier; zero: none
	index         int       // in the agenda, when nextAt is set
}

func (s *modelShard) queue(name job.Queue) *queue {
	q := s.queues[name]
	if q == nil {
		t := s.topic(topicName{name.Namespace, name.Topic})
		q = &queue{
			shard: s, name: name, topic: t, due: sortedRecords{key: due}, ready: sortedRecords{key: due},
			claimed: sortedRecords{key: deadline},
		}
		s.queues[name] = q
		t.lanes = append(t.lanes, q)
	}
	return q
}

// isOrdered reports whether the jobs of the queue are claimed in the order of their registration.
func (q *queue) isOrdered() bool { return q.shard.limits(q.name).Ordered }

// turn returns the job of an ordered queue whose turn it is, due or not; nil: there is none. next is when the next of
// the other jobs takes its turn; zero: none does.
func (q *queue) turn(now time.Time) (first *record, next time.Time) {
	for _, l := range []*sortedRecords{&q.ready, &q.due} {
		for _, r := range l.items {
			switch at := r.job.FirstDueAt; {
			case at.After(now):
				if next.IsZero() || at.Before(next) {
					next = at
				}
			case first == nil || r.registered < first.registered:
				first = r
			}
		}
	}
	return first, next
}

// claimable returns the next job to claim; nil: none is due.
func (q *queue) claimable(now time.Time) *record {
	if q.isOrdered() {
		if r, _ := q.turn(now); r != nil && !r.job.DueAt.After(now) {
			return r
		}
		return nil
	}
	if r := q.ready.first(); r != nil {
		return r
	}
	if r := q.due.first(); r != nil && !r.job.DueAt.After(now) {
		return r
	}
	return nil
}

// schedule places a job without a lease: in ready, with a wake-up, when it is due and no job of its queue is due before
// it, else in due.
func (s *modelShard) schedule(r *record, now time.Time) {
	q := r.queue
	s.remove(r)
	r.job.State = job.Scheduled
	if ordered := q.isOrdered(); ordered || r.job.DueAt.After(now) || q.claimable(now) != nil || s.blocked(q, now) {
		s.placeIn(r, &q.due)
		if ordered && q.claimable(now) == r && !s.blocked(q, now) {
			s.notify(q, now)
		}
	} else {
		s.placeIn(r, &q.ready)
		s.notify(q, now)
	}
	s.reschedule(q, now, true)
}

// reschedule updates a queue's time on the agenda. With wake, it wakes Wait when the queue becomes the new head.
func (s *modelShard) reschedule(q *queue, now time.Time, wake bool) {
	if free, _ := s.freeAt(q, 0, now); free.After(now) {
		q.notifiedAt = time.Time{} // notified as soon as cooldown and rate allow
	}
	head, found := s.agenda.head()
	at := s.nextTime(q, now, func(*record) bool { return false })
	if !q.nextAt.IsZero() {
		heap.Remove(&s.agenda, q.index)
	}
	q.nextAt = at
	if at.IsZero() {
		return
	}
	heap.Push(&s.agenda, q)
	if wake && (!found || at.Before(head)) {
		s.agendaMoved = true
		s.wakeWaiters()
	}
}

// nextTime returns when the carrier must visit a queue; zero: never. It is the end of the first lease that is not kept,
// or, when the queue is not blocked, the next wake-up or the first due time, but not before the queue is free.
func (s *modelShard) nextTime(q *queue, now time.Time, keepLease func(*record) bool) time.Time {
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, r := range q.claimed.items {
		if !keepLease(r) {
			earlier(r.deadline)
			break
		}
	}
	free, ever := s.freeAt(q, 0, now)
	if !ever {
		return at
	}
	later := func(t time.Time) time.Time {
		if t.Before(free) {
			return free
		}
		return t
	}
	if q.isOrdered() {
		r, next := q.turn(now)
		switch {
		case r == nil:
		case r.job.DueAt.After(now):
			earlier(later(r.job.DueAt))
		default:
			earlier(later(q.notifiedAt.Add(store.RenotifyAfter)))
		}
		if !next.IsZero() {
			earlier(later(next))
		}
	} else if q.ready.first() != nil {
		earlier(later(q.notifiedAt.Add(store.RenotifyAfter)))
	} else if r := q.due.first(); r != nil {
		earlier(later(r.job.DueAt))
	}
	return at
}

// agenda is the queues with a nextAt, the earliest first.
type agenda []*queue

func (a agenda) head() (time.Time, bool) {
	if len(a) == 0 {
		return time.Time{}, false
	}
	return a[0].nextAt, true
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].nextAt.Before(a[j].nextAt) }
func (a agenda) Swap(i, j int)      { a[i], a[j] = a[j], a[i]; a[i].index, a[j].index = i, j }

// Push is for container/heap.
func (a *agenda) Push(x any) {
	q, _ := x.(*queue)
	q.index = len(*a)
	*a = append(*a, q)
}

// Pop is for container/heap.
func (a *agenda) Pop() any {
	last := (*a)[len(*a)-1]
	(*a)[len(*a)-1] = nil
	*a = (*a)[:len(*a)-1]
	return last
}
