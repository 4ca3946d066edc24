package sqlite

import (
	"container/heap"
	"math"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// agenda says when the carrier has something to do. It has three heaps, because two clocks rule it:
//
//	heap             of                                    by          at
//	dues             queues that wait for their first job  wall        its due time
//	renotifications  queues that have something to claim   monotonic   their last wake-up + store.RenotifyAfter, or the end
//	                                                                   of what keeps them back
//	leases           claimed jobs                          monotonic   the expiry of their lease
//
// A queue is in one of the first two, or, when it is blocked or nothing waits in it, in none.
type agenda struct {
	dues, renotifications, leases moments
}

// A slot is a place in one part of the agenda. Of one moment the slot with the lower number comes first, that of the queue's
// first job or of the leased one: jobs that were registered one after the other lie side by side in the database.
type slot struct {
	at, n int64
	pos   int // -1: nowhere
	queue *queue
	lease *lease
}

// moments is a heap of slots, earliest first.
type moments []*slot

// set puts a slot at a moment, with a number.
func (m *moments) set(s *slot, at, n int64) {
	s.at, s.n = at, n
	if s.pos >= 0 {
		heap.Fix(m, s.pos)
		return
	}
	heap.Push(m, s)
}

// drop takes a slot out, if it is in.
func (m *moments) drop(s *slot) {
	if s.pos >= 0 {
		heap.Remove(m, s.pos)
	}
}

// head is the earliest slot that is not later than at; nil when there is none.
func (m moments) head(at int64) *slot {
	if len(m) == 0 || m[0].at > at {
		return nil
	}
	return m[0]
}

func (m moments) Len() int      { return len(m) }
func (m moments) Swap(i, j int) { m[i], m[j] = m[j], m[i]; m[i].pos, m[j].pos = i, j }
func (m moments) Less(i, j int) bool {
	return m[i].at < m[j].at || (m[i].at == m[j].at && m[i].n < m[j].n)
}

// Push is for container/heap.
func (m *moments) Push(x any) {
	s, _ := x.(*slot)
	s.pos = len(*m)
	*m = append(*m, s)
}

// Pop is for container/heap.
func (m *moments) Pop() any {
	last := (*m)[len(*m)-1]
	(*m)[len(*m)-1] = nil
	*m = (*m)[:len(*m)-1]
	last.pos = -1
	return last
}

// plan puts a queue where it belongs now. Its head must be known.
func (a *agenda) plan(q *queue, now clock.Instant) {
	free, ever := q.free(now)
	switch {
	case q.waiting == 0 || !ever:
		a.dues.drop(&q.dueSlot)
		a.renotifications.drop(&q.renotifySlot)
	case free > now.Mono && now.MonoAt(q.head.Due) <= free:
		a.dues.drop(&q.dueSlot)
		a.renotifications.set(&q.renotifySlot, free, q.head.N)
	case q.due(now) && q.dueSlot.pos >= 0:
		// Its first job has come due and no wake-up was sent for it yet: the last was for others.
		a.dues.set(&q.dueSlot, q.head.Due, q.head.N)
	case q.due(now):
		a.renotifications.set(&q.renotifySlot, q.notifiedAt+int64(store.RenotifyAfter), q.head.N)
	default:
		a.renotifications.drop(&q.renotifySlot)
		a.dues.set(&q.dueSlot, q.head.Due, q.head.N)
	}
}

// never is the wait for an empty agenda.
const never = time.Duration(math.MaxInt64)

// next is the wait until the head of the agenda; zero when it has come, never when there is none. expired says whether
// leases that are over count.
func (a *agenda) next(now clock.Instant, expired bool) time.Duration {
	wait := never
	if len(a.dues) > 0 {
		ms := max(0, a.dues[0].at-now.Millis)
		until := time.Duration(min(ms, int64(never/time.Millisecond)))*time.Millisecond - time.Duration(now.Sub)
		wait = min(wait, max(0, until))
	}
	if len(a.renotifications) > 0 {
		wait = min(wait, time.Duration(max(0, a.renotifications[0].at-now.Mono)))
	}
	if len(a.leases) > 0 && (expired || a.leases[0].at > now.Mono) {
		wait = min(wait, time.Duration(max(0, a.leases[0].at-now.Mono)))
	}
	return wait
}
