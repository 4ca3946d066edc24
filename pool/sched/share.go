package sched

import "sort"

// A topic may have more of the process's attempts in flight while it has fewer than a threshold, which falls with the
// square of what is free:
//
//	used < weight × (free / all)² × all
//
// This is the dynamic threshold of shared-memory switches (Choudhury and Hahne, 1998), squared: a topic that takes part
// of what is free leaves enough for the next, however many came before and give nothing back. After k topics that each
// took all that they may, about all / (weight × k) is free; with a threshold linear in what is free it would be all /
// (weight + 1)^k.
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

// allowance returns how many more of all attempts a topic may have that has used of them, while free are left. A topic
// without attempts may always have one.
func allowance(used, free, all, weight int) int {
	return sort.Search(free,
		func(n int) bool { return float64(used+n) >= max(1, dynamicThreshold(free-n, all, weight)) })
}

// unprovenReserve is how many of the process's workers lanes never get that have not answered yet, or timed out.
func unprovenReserve(workers int) int { return workers / 128 }

// Of a topic's workers, and of the process's, lanes that time out get at most half, and together with slow ones at most
// three quarters. Of a topic's, those that have not answered yet get up to seven eighths.
func timingOutShare(workers int) int { return max(1, workers/2) }
func slowShare(workers int) int      { return max(1, workers*3/4) }
func unknownShare(workers int) int   { return workers - workers/8 }

// healthCounts counts attempts in flight by the health of their lanes.
type healthCounts [healthStates]int
