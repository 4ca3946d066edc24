package dispatcher

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxRemembered bounds how many lanes, and how many taken slots with free ones before them, a pacer remembers.
const maxRemembered = 1 << 16

// maxAhead is job.MaxAhead in milliseconds.
const maxAhead = int64(job.MaxAhead / time.Millisecond)

// A pacer spreads the starts of a revival evenly. In any window no more begin than its rate allows, and in each lane no
// more than the lanes' rate allows. Moments are whole milliseconds from the revival's beginning.
//
// With a rate time is divided into slots. Each start takes one: the first free one that is far enough from its lane's
// last. So lanes at their rate leave slots free, which the starts of others take, in whatever order they come.
type pacer struct {
	rate, laneRate spread
	after          int64 // narrowTo the first start
	// step is how many slots the starts of a lane are apart at least; zero: one.
	step  int64
	slots slots
	lanes map[job.Queue]laneState
	floor int64 // the slot, or moment, before which no lane that is not among lanes begins
}

// A laneState is where a lane has come.
type laneState struct {
	slot  int64 // its next start's, at least
	first int64 // without slots: the moment from which its starts are counted
	given int64 // and how many there were
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

// limited reports whether there is anything to spread.
func (p *pacer) limited() bool { return p.rate.limited() || p.laneRate.limited() }

// nextDelay is the moment of the next start of a queue, not before the earliest that is possible.
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
		lane.first, lane.given = earliest, 0 // it could not come as early as it might have
	}
	at := lane.first + p.laneRate.at(lane.given)
	lane.given++
	p.lanes[q] = lane
	return p.moment(at)
}

// end is the moment from which on a start disturbs none before it, whichever lane it is of. Zero when nothing is spread.
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

// forget lets what comes begin behind all that was given.
func (p *pacer) forget() {
	if p.rate.limited() {
		p.floor = p.endOfSlots()
	} else {
		p.floor = p.endOfLanes()
	}
	p.slots.forget()
	clear(p.lanes)
}

// timestamp counts from the revival's beginning. No wait is longer than a job may have.
func (p *pacer) moment(at int64) int64 { return min(p.after+at, maxAhead) }

// A spread is a rate as even intervals; the zero one is none.
type spread struct{ starts, per int64 } // per in milliseconds

func spreadOf(r policy.Rate) spread {
	if !r.Limited() {
		return spread{}
	}
	return spread{starts: int64(r.Starts), per: millisUp(r.Per)}
}

func (s spread) limited() bool { return s.starts > 0 }

// at is the moment of a start, counted from 0. Rounded up all alike: any window of s.per milliseconds has s.starts.
func (s spread) at(n int64) int64 { return ceil(min(n, s.from(maxAhead))*s.per, s.starts) }

// from is the first start at or after a moment.
func (s spread) from(at int64) int64 { return ceil(min(at, maxAhead)*s.starts, s.per) }

// ceil is a/b, rounded up; neither is negative.
func ceil(a, b int64) int64 { return (a + b - 1) / b }

// millisUp is a duration in whole milliseconds, rounded up.
func millisUp(d time.Duration) int64 { return ceil(int64(max(d, 0)), int64(time.Millisecond)) }

// slots are numbered from 0, and taken once each.
type slots struct {
	free  int64           // all before it are taken
	end   int64           // none from it on is taken
	taken map[int64]int64 // taken ones from free on, each with a later slot before which none is free
}

// take takes the first free slot from one on.
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

// forget takes every slot before the end.
func (s *slots) forget() {
	s.free = s.end
	clear(s.taken)
}

// A storeClock estimates the store's time from an answer of the store.
type storeClock struct {
	at, read time.Time     // the store's time in that answer, and ours when it came
	slowest  time.Duration // of the calls that were answered
}

// observe takes in the store's time at a call, and how long the call took.
func (c *storeClock) observe(at time.Time, took time.Duration) {
	if !c.known() {
		c.at, c.read = at, time.Now()
	}
	c.slowest = max(c.slowest, took)
}

func (c *storeClock) known() bool { return !c.at.IsZero() }

// elapsed is how long ago the answer came: the store's clock has advanced by at least that much since.
func (c *storeClock) elapsed() time.Duration { return time.Since(c.read) }

// earliest is the earliest instant, counted from at, that will not have passed when a call made now gets to the store.
func (c *storeClock) earliest() time.Duration { return c.elapsed() + 10*time.Millisecond + 4*c.slowest }
