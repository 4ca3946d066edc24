package sched

// unprovenWeight is the weight of a topic's attempts in capacity.Threshold for lanes that have not answered yet, or
// timed out: they may hang. That of all its attempts is capacity.AttemptsWeight: receivers that answer quickly may all
// begin to hang at once.
const unprovenWeight = 1

// unprovenReserve is how many of the process's workers lanes never get that have not answered yet, or timed out.
func unprovenReserve(workers int) int { return workers / 128 }

// Of a topic's workers, and of the process's, lanes that time out get at most half, and together with slow ones at most
// three quarters. Of a topic's, those that have not answered yet get up to seven eighths.
func timingOutShare(workers int) int { return max(1, workers/2) }
func slowShare(workers int) int      { return max(1, workers*3/4) }
func unknownShare(workers int) int   { return workers - workers/8 }

// healthCounts counts attempts in flight by the health of their lanes.
type healthCounts [healthStates]int
