package memory

import (
	"container/heap"
	"math"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// An Agenda is when the carrier has something to do. It has three heaps, because two clocks rule it:
//
//	heap             of                                    by         at
//	dues             queues that wait for their first job  wall       its due time
//	renotifications  queues that have something to claim   monotonic  their last wake-up + store.RenotifyAfter,
//	                                                                  or the end of what blocks them
//	leases           claimed jobs                          monotonic  the expiry of their lease
//
// A queue is in at most one of the first two: in neither while it is blocked or nothing waits in it.
type Agenda struct {
	Dues, Renotifications, Leases Moments
}

// A Slot is an entry of one heap. Slots of the same time are ordered by number, which is that of the queue's first job
// or of the leased one: jobs that were registered one after the other lie side by side in the database.
type Slot struct {
	At, N int64
	Pos   int // -1: nowhere
	Queue *Queue
	Lease *Lease
}

// Moments is a heap of slots, the earliest first.
type Moments []*Slot

// Set puts a slot at a time, with a number.
func (m *Moments) Set(s *Slot, at, n int64) {
	s.At, s.N = at, n
	if s.Pos >= 0 {
		heap.Fix(m, s.Pos)
		return
	}
	heap.Push(m, s)
}

// Drop removes a slot, if it is in the heap.
func (m *Moments) Drop(s *Slot) {
	if s.Pos >= 0 {
		heap.Remove(m, s.Pos)
	}
}

// Head returns the earliest slot that is not later than at, or nil.
func (m Moments) Head(at int64) *Slot {
	if len(m) == 0 || m[0].At > at {
		return nil
	}
	return m[0]
}

func (m Moments) Len() int      { return len(m) }
func (m Moments) Swap(i, j int) { m[i], m[j] = m[j], m[i]; m[i].Pos, m[j].Pos = i, j }
func (m Moments) Less(i, j int) bool {
	return m[i].At < m[j].At || (m[i].At == m[j].At && m[i].N < m[j].N)
}

// Push is for container/heap.
func (m *Moments) Push(x any) {
	s, _ := x.(*Slot)
	s.Pos = len(*m)
	*m = append(*m, s)
}

// Pop is for container/heap.
func (m *Moments) Pop() any {
	last := (*m)[len(*m)-1]
	(*m)[len(*m)-1] = nil
	*m = (*m)[:len(*m)-1]
	last.Pos = -1
	return last
}

// Plan puts a queue into the heap in which it belongs now. Its head must be known.
func (a *Agenda) Plan(q *Queue, now clock.Instant) {
	free, ever := q.FreeAt(now)
	switch {
	case q.Waiting == 0 || !ever:
		a.Dues.Drop(&q.DueSlot)
		a.Renotifications.Drop(&q.RenotifySlot)
	case free > now.Mono && now.MonoAt(q.Head.Due) <= free:
		a.Dues.Drop(&q.DueSlot)
		a.Renotifications.Set(&q.RenotifySlot, free, q.Head.N)
	case q.Due(now) && q.DueSlot.Pos >= 0:
		// Its first job has come due and no wake-up was sent for it yet: the last was for others.
		a.Dues.Set(&q.DueSlot, q.Head.Due, q.Head.N)
	case q.Due(now):
		a.Renotifications.Set(&q.RenotifySlot, q.NotifiedAt+int64(store.RenotifyAfter), q.Head.N)
	default:
		a.Renotifications.Drop(&q.RenotifySlot)
		a.Dues.Set(&q.DueSlot, q.Head.Due, q.Head.N)
	}
}

// Never is the wait of an empty agenda.
const Never = time.Duration(math.MaxInt64)

// Next returns the wait until the first entry, 0 if its time has come, Never if the agenda is empty. expired is whether
// leases that have expired count.
func (a *Agenda) Next(now clock.Instant, expired bool) time.Duration {
	wait := Never
	if len(a.Dues) > 0 {
		ms := max(0, a.Dues[0].At-now.Millis)
		until := time.Duration(min(ms, int64(Never/time.Millisecond)))*time.Millisecond - time.Duration(now.Sub)
		wait = min(wait, max(0, until))
	}
	if len(a.Renotifications) > 0 {
		wait = min(wait, time.Duration(max(0, a.Renotifications[0].At-now.Mono)))
	}
	if len(a.Leases) > 0 && (expired || a.Leases[0].At > now.Mono) {
		wait = min(wait, time.Duration(max(0, a.Leases[0].At-now.Mono)))
	}
	return wait
}
