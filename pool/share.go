package pool

import (
	"sort"

	"github.com/ringback/ringback/policy"
)

// A topic may have more of the process's attempts in flight while it has fewer than a threshold, which falls with the square
// of what is free:
//
//	held < weight × (free / all)² × all
//
// This is the dynamic threshold of shared-memory switches (Choudhury and Hahne, 1998), squared: a topic that takes part of what is
// free leaves enough for the next, however many came before and give nothing back. After k topics that each took all that
// they may, about all / (weight × k) is free; with a threshold linear in what is free it would be all / (weight + 1)^k.
//
//	weight   one topic alone   nine, each          fifty, each
//	1        38 %              8 %, 28 % is free   1.7 %, 13 % is free
//	128      92 %              11 %, 3 % is free   2 %, 1.2 % is free
const (
	// unprovenWeight is for attempts of lanes that have not answered yet, or timed out: they may hang.
	unprovenWeight = 1
	// totalWeight is for all attempts: receivers that answer quickly may all begin to hang at once.
	totalWeight = 128
)

// dynamicThreshold is the bound above, which a topic stays under. The bytes of bodies are shared by it, too.
func dynamicThreshold(free, all, weight int) float64 {
	left := float64(max(0, free))
	return float64(weight) * left * left / float64(all)
}

// allowance is how many more of all attempts a topic may have that has held of them, while free are left. One that has none
// may always have one.
func allowance(held, free, all, weight int) int {
	return sort.Search(free, func(n int) bool { return float64(held+n) >= max(1, dynamicThreshold(free-n, all, weight)) })
}

// unprovenReserve is how many of the process's workers lanes never get that have not answered yet, or timed out.
func unprovenReserve(workers int) int { return workers / 128 }

// Of a topic's workers, and of the process's, lanes that time out get at most half, and together with slow ones at most
// three quarters. Of a topic's, those that have not answered yet get up to seven eighths.
func timingOutShare(workers int) int { return max(1, workers/2) }
func slowShare(workers int) int      { return max(1, workers*3/4) }
func unknownShare(workers int) int   { return workers - workers/8 }

// healthCounts counts attempts in flight by the trouble of their lanes.
type healthCounts [healthStates]int

// pickLanes picks lanes of a topic for a share of the process's attempts, while free are left: first those that time out, then
// healthSlow ones, both of which get at most half of it while others wait. Then come those that have not answered yet and those that
// answer quickly, by how many of each wait in line. It answers how many attempts were taken. p.mu is held.
func (l *topicQueue) pickLanes(p *Pool, share, free int, terms policy.Topic, c *pickState) int {
	pick := func(from health, room int) int { return l.pickHealth(p, from, room, terms, c) }
	n, all, workers := &l.topic.byHealth, &p.byHealth, p.limit.current
	silent := allowance(n[healthUnknown]+n[healthTimingOut], free-unprovenReserve(workers), workers, unprovenWeight)
	bad, fresh, others := share, l.lanes[healthUnknown].len(), l.lanes[healthUnknown].len()+l.lanes[healthOK].len()
	if others > 0 {
		l.oddSlot = 1 - l.oddSlot
		bad = (share + l.oddSlot) / 2
	}
	took := pick(healthTimingOut, min(bad, silent, timingOutShare(terms.Workers)-n[healthTimingOut], timingOutShare(workers)-all[healthTimingOut]))
	silent -= took
	took += pick(healthSlow, min(bad-took, slowShare(terms.Workers)-n[healthTimingOut]-n[healthSlow], slowShare(workers)-all[healthTimingOut]-all[healthSlow]))
	left := share - took
	silent = min(silent, unknownShare(terms.Workers)-n[healthTimingOut]-n[healthSlow]-n[healthUnknown])
	if others > 0 {
		fresh = (left*fresh + others - 1) / others
	}
	first := pick(healthUnknown, min(fresh, silent))
	left -= first
	left -= pick(healthOK, left)
	left -= pick(healthUnknown, min(left, silent-first))
	return share - left
}
