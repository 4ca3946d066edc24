package dispatcher

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxRemembered bounds the lanes, and the taken slots behind free ones, that a pacer remembers.
const maxRemembered = 1 << 16

// maxAhead is job.MaxAhead in milliseconds.
const maxAhead = int64(job.MaxAhead / time.Millisecond)

// pacer spreads the starts of a revival evenly: in any window at most its rate, and per lane at most the lanes' rate. Times
// are whole milliseconds since the start of the revival.
//
// A rate divides time into slots. Each start takes the first free slot far enough from its lane's last. So lanes at their
// rate leave slots free for other lanes, in any order of calls.
type pacer struct {
	rate, laneRate spread
	after          int64 // before the first start
	// step is the least distance of a lane's starts, in slots; zero: one.
	step  int64
	slots slots
	lanes map[job.Queue]laneState
	floor int64 // the first slot, or time, of a lane that is not in lanes
}

// laneState is the progress of a lane.
type laneState struct {
	slot  int64 // the first slot of its next start
	first int64 // without slots: the time from which its starts are counted
	given int64 // starts since first
}

func newPacer(how store.RevivePlan) *pacer {
	p := &pacer{
		rate: spreadOf(how.Rate), laneRate: spreadOf(how.LaneRate), after: millisUp(how.Delay),
		slots: slots{taken: make(map[int64]int64)}, lanes: make(map[job.Queue]laneState),
	}
	if p.rate.limited() && p.laneRate.limited() {
		p.step = ceil(p.laneRate.per*p.rate.starts, p.laneRate.starts*p.rate.per)
	}
	return p
}

// limited reports whether there is a rate.
func (p *pacer) limited() bool { return p.rate.limited() || p.laneRate.limited() }

// nextDelay returns the time of a queue's next start, at least earliest.
func (p *pacer) nextDelay(q job.Queue, earliest int64) int64 {
	earliest = max(earliest-p.after, 0)
	if len(p.lanes) >= maxRemembered || len(p.slots.taken) >= maxRemembered {
		p.forget()
	}
	lane, known := p.lanes[q]
	if p.rate.limited() {
		from := max(p.rate.from(earliest), p.floor)
		if known {
			from = max(from, lane.slot)
		}
		slot := p.slots.take(min(from, p.rate.from(maxAhead)))
		if p.step > 0 {
			p.lanes[q] = laneState{slot: slot + p.step}
		}
		return p.moment(p.rate.at(slot))
	}
	if !p.laneRate.limited() {
		return p.moment(0)
	}
	if !known {
		lane.first = max(earliest, p.floor)
	} else if p.laneRate.at(lane.given) < earliest-lane.first {
		lane.first, lane.given = earliest, 0 // counted anew, since the start was delayed
	}
	at := lane.first + p.laneRate.at(lane.given)
	lane.given++
	p.lanes[q] = lane
	return p.moment(at)
}

// end returns the first time at which a start of any lane conflicts with no earlier one; zero without a rate.
func (p *pacer) end() int64 {
	switch {
	case p.rate.limited():
		return p.moment(p.rate.at(p.endOfSlots()))
	case p.laneRate.limited():
		return p.moment(p.endOfLanes())
	default:
		return 0
	}
}

func (p *pacer) endOfSlots() int64 {
	slot := max(p.slots.end, p.floor)
	for _, lane := range p.lanes {
		slot = max(slot, lane.slot)
	}
	return slot
}

func (p *pacer) endOfLanes() int64 {
	at := p.floor
	for _, lane := range p.lanes {
		at = max(at, lane.first+p.laneRate.at(lane.given))
	}
	return at
}

// forget makes later starts follow all given ones.
func (p *pacer) forget() {
	if p.rate.limited() {
		p.floor = p.endOfSlots()
	} else {
		p.floor = p.endOfLanes()
	}
	p.slots.forget()
	clear(p.lanes)
}

// moment returns the time since the start of the revival, at most maxAhead.
func (p *pacer) moment(at int64) int64 { return min(p.after+at, maxAhead) }

// spread is a rate with even intervals; zero: no rate.
type spread struct{ starts, per int64 } // per in milliseconds

func spreadOf(r policy.Rate) spread {
	if !r.Limited() {
		return spread{}
	}
	return spread{starts: int64(r.Starts), per: millisUp(r.Per)}
}

func (s spread) limited() bool { return s.starts > 0 }

// at returns the time of the n-th start, from 0. All are rounded up, so that any window of s.per ms has s.starts.
func (s spread) at(n int64) int64 { return ceil(min(n, s.from(maxAhead))*s.per, s.starts) }

// from returns the first start at or after a time.
func (s spread) from(at int64) int64 { return ceil(min(at, maxAhead)*s.starts, s.per) }

// ceil returns a/b, rounded up, for values that are not negative.
func ceil(a, b int64) int64 { return (a + b - 1) / b }

// millisUp returns a duration in milliseconds, rounded up.
func millisUp(d time.Duration) int64 { return ceil(int64(max(d, 0)), int64(time.Millisecond)) }

// slots are numbered from 0, each taken once.
type slots struct {
	free  int64           // all slots before it are taken
	end   int64           // no slot from here on is taken
	taken map[int64]int64 // taken slots after free, each with a later slot; all between are taken
}

// take takes the first free slot at or after one.
func (s *slots) take(from int64) int64 {
	slot := max(from, s.free)
	for next, ok := s.taken[slot]; ok; next, ok = s.taken[slot] {
		slot = next
	}
	for at := max(from, s.free); at < slot; {
		at, s.taken[at] = s.taken[at], slot+1
	}
	s.end = max(s.end, slot+1)
	if slot > s.free {
		s.taken[slot] = slot + 1
		return slot
	}
	s.free++
	for s.taken[s.free] > 0 {
		delete(s.taken, s.free)
		s.free++
	}
	return slot
}

// forget takes all slots before end.
func (s *slots) forget() {
	s.free = s.end
	clear(s.taken)
}

// storeClock estimates the store's time from a reply of the store.
type storeClock struct {
	at, read time.Time     // the store's time in that reply, and ours at its receipt
	slowest  time.Duration // duration of a call
}

// observe records the store's time in a reply, and the duration of the call.
func (c *storeClock) observe(at time.Time, took time.Duration) {
	if !c.known() {
		c.at, c.read = at, time.Now()
	}
	c.slowest = max(c.slowest, took)
}

func (c *storeClock) known() bool { return !c.at.IsZero() }

// elapsed returns the time since the reply. The store's clock has advanced at least as much.
func (c *storeClock) elapsed() time.Duration { return time.Since(c.read) }

// earliest returns the earliest time, relative to at, that has not passed when a call made now reaches the store.
func (c *storeClock) earliest() time.Duration { return c.elapsed() + 10*time.Millisecond + 4*c.slowest }
