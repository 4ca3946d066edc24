// This part of the package spreads the starts of many jobs evenly over time, under a rate of all and a rate of each
// lane. It is given all times, and knows neither a store nor a clock.

package work

import (
	"hash/fnv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// maxRemembered bounds the lanes, and the taken slots behind free ones, that a Pacer remembers.
const maxRemembered = 1 << 12

// maxAhead is job.MaxAhead in milliseconds.
const maxAhead = int64(job.MaxAhead / time.Millisecond)

// pacer chooses the times of starts, in whole milliseconds: in any window at most its rate, and per lane at most the
// lanes' rate. It is not safe for concurrent use.
//
// A rate divides time into slots. Each start takes the first free slot far enough from its lane's last. So lanes at
// their rate leave slots free for other lanes, in any order of calls.
type pacer struct {
	rate, laneRate spread
	// step is the least distance of a lane's starts, in slots; zero: one.
	step  int64
	slots slots
	lanes map[uint64]laneState // by laneKey
	floor int64                // the first slot, or time, of a lane that is not in lanes
}

// laneState is the progress of a lane.
type laneState struct {
	slot  int64 // the first slot of its next start
	first int64 // without slots: the time from which its starts are counted
	given int64 // starts since first
}

// newPacer returns a pacer for a rate of all starts and a rate of each lane's; zero: no limit.
func newPacer(rate, laneRate policy.Rate) *pacer {
	p := &pacer{
		rate: spreadOf(rate), laneRate: spreadOf(laneRate),
		slots: slots{taken: make(map[int64]int64)}, lanes: make(map[uint64]laneState),
	}
	if p.rate.limited() && p.laneRate.limited() {
		p.step = ceil(p.laneRate.per*p.rate.starts, p.laneRate.starts*p.rate.per)
	}
	return p
}

// Limited reports whether there is a rate.
func (p *pacer) Limited() bool { return p.rate.limited() || p.laneRate.limited() }

// Next returns the time of a queue's next start, from earliest on.
func (p *pacer) Next(q job.Queue, earliest time.Duration) time.Duration {
	return time.Duration(p.next(q, max(millisUp(earliest), 0))) * time.Millisecond
}

func (p *pacer) next(q job.Queue, earliest int64) int64 {
	if len(p.lanes) >= maxRemembered || len(p.slots.taken) >= maxRemembered {
		p.forget()
	}
	key := laneKey(q)
	lane, known := p.lanes[key]
	if p.rate.limited() {
		from := max(p.rate.from(earliest), p.floor)
		if known {
			from = max(from, lane.slot)
		}
		slot := p.slots.take(min(from, p.rate.from(maxAhead)))
		if p.step > 0 {
			p.lanes[key] = laneState{slot: slot + p.step}
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
	p.lanes[key] = lane
	return p.moment(at)
}

// laneKey is a hash of a queue's name, so that a Pacer's stored form is small. Two lanes with one hash share a rate.
func laneKey(q job.Queue) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(q.String()))
	return h.Sum64()
}

// End returns the first time at which a start of any lane conflicts with no earlier one; zero without a rate.
func (p *pacer) End() time.Duration {
	at := int64(0)
	switch {
	case p.rate.limited():
		at = p.moment(p.rate.at(p.endOfSlots()))
	case p.laneRate.limited():
		at = p.moment(p.endOfLanes())
	}
	return time.Duration(at) * time.Millisecond
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

// moment returns a time, at most maxAhead.
func (p *pacer) moment(at int64) int64 { return min(at, maxAhead) }
