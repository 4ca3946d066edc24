package storetest

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A record is one job.
type record struct {
	job   job.Job // with the newest of its record
	print []byte
	queue *queue
	place *line // where it stands; I1: exactly one
	seq   uint64
	// lease and deadline hold while it is running.
	lease    store.Token
	deadline time.Time
	claimed  time.Time
	// maxAge is that of its entry; aged says that it was handed out for it.
	maxAge time.Duration
	aged   bool
	// late, rated and probe are what its claim said of it.
	late         time.Duration
	rated, probe bool
}

// A line is an ordered set of records.
type line struct {
	items []*record
	key   func(*record) time.Time
	bytes int64
}

func due(r *record) time.Time      { return r.job.DueAt }
func deadline(r *record) time.Time { return r.deadline }
func finished(r *record) time.Time { return r.job.FinishedAt }

// size is what a record counts for retention by bytes.
func size(r *record) int64 { return int64(len(r.job.Body) + len(r.job.URL)) }

func (l *line) find(r *record) (int, bool) {
	return slices.BinarySearchFunc(l.items, r, func(a, b *record) int {
		return cmp.Or(l.key(a).Compare(l.key(b)), cmp.Compare(a.seq, b.seq))
	})
}

func (l *line) first() *record {
	if len(l.items) == 0 {
		return nil
	}
	return l.items[0]
}

// put moves a record into a line; among equal keys it is the last.
func (s *modelShard) put(r *record, to *line) {
	s.take(r)
	s.seq++
	r.seq, r.place = s.seq, to
	at, _ := to.find(r)
	to.items = slices.Insert(to.items, at, r)
	to.bytes += size(r)
}

// take removes a record from where it stands. Its key must still be the one it was put with.
func (s *modelShard) take(r *record) {
	l := r.place
	if l == nil {
		return
	}
	at, ok := l.find(r)
	if !ok {
		panic("storetest: a record is not where it says")
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

// A queue has the sets of one lane.
type queue struct {
	name             job.Queue
	topic            *topic
	due, ready, held line
	rung             time.Time // when it last rang
	// until holds the queue back; open is its breaker, window its claims as far as its rate counts them.
	until  time.Time
	open   bool
	window window
	at     time.Time // when someone must look; zero: never
	index  int       // in the agenda, when at is set
}

func (s *modelShard) queue(name job.Queue) *queue {
	q := s.queues[name]
	if q == nil {
		t := s.topic(topicName{name.Namespace, name.Topic})
		q = &queue{name: name, topic: t, due: line{key: due}, ready: line{key: due}, held: line{key: deadline}}
		s.queues[name] = q
		t.lanes = append(t.lanes, q)
	}
	return q
}

// claimable is the next job to claim, nil when none is due.
func (q *queue) claimable(now time.Time) *record {
	if r := q.ready.first(); r != nil {
		return r
	}
	if r := q.due.first(); r != nil && !r.job.DueAt.After(now) {
		return r
	}
	return nil
}

// wait puts a job that nobody holds where it belongs: straight to ready, with the bell, when it is due and nothing of
// its queue is due before it; else among the due.
func (s *modelShard) wait(r *record, now time.Time) {
	q := r.queue
	s.take(r)
	r.job.State = job.Scheduled
	if r.job.DueAt.After(now) || q.claimable(now) != nil || s.blocked(q, now) {
		s.put(r, &q.due)
	} else {
		s.put(r, &q.ready)
		s.ring(q, now)
	}
	s.plan(q, now, true)
}

// plan notes the next moment at which someone must look at a queue. With wake, Wait is told when that is before
// everything else.
func (s *modelShard) plan(q *queue, now time.Time, wake bool) {
	if free, _ := s.free(q, now); free.After(now) {
		q.rung = time.Time{} // it rings as soon as its hold or its rate lets it
	}
	head, found := s.agenda.head()
	at := s.nextLook(q, now, func(*record) bool { return false })
	if !q.at.IsZero() {
		heap.Remove(&s.agenda, q.index)
	}
	q.at = at
	if at.IsZero() {
		return
	}
	heap.Push(&s.agenda, q)
	if wake && (!found || at.Before(head)) {
		s.wake = true
		s.signal()
	}
}

// nextLook is the earliest of the first lapse and, unless the queue is blocked, of the time to ring again or the first
// due time, once time keeps nothing back; zero when there is none. Leases for which stays holds are left out.
func (s *modelShard) nextLook(q *queue, now time.Time, stays func(*record) bool) time.Time {
	var at time.Time
	earlier := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	for _, r := range q.held.items {
		if !stays(r) {
			earlier(r.deadline)
			break
		}
	}
	free, ever := s.free(q, now)
	if !ever {
		return at
	}
	later := func(t time.Time) time.Time {
		if t.Before(free) {
			return free
		}
		return t
	}
	if q.ready.first() != nil {
		earlier(later(q.rung.Add(store.RenotifyAfter)))
	} else if r := q.due.first(); r != nil {
		earlier(later(r.job.DueAt))
	}
	return at
}

// An agenda holds the queues that someone must look at, earliest first.
type agenda []*queue

func (a agenda) head() (time.Time, bool) {
	if len(a) == 0 {
		return time.Time{}, false
	}
	return a[0].at, true
}

func (a agenda) Len() int           { return len(a) }
func (a agenda) Less(i, j int) bool { return a[i].at.Before(a[j].at) }
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
