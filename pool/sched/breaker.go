package sched

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Breaker counts a lane's failures in a row in this process. A lane has one from its first failure until its receiver
// answers.
//
// The settlement of the attempt that opened it opens the lane's breaker in the store, for all processes. The store then
// holds the lane's jobs back, and after that hands out one, the probe, whose settlement closes or reopens it.
//
//	here                          in the store
//	closed ── failures in a row ─▶ open: nothing is claimed ── cooldown over ─▶ half-open: one job, a probe
//	                                 ▲                                              │
//	                                 └────────────── it failed ─────────────────────┤
//	                               closed ◀───────── it was answered ───────────────┘
type Breaker interface {
	// Fail counts a failure and reports whether it opened the breaker. Failures of attempts that were under way when it
	// opened do not count.
	Fail() (opened bool)
	// Closed reports whether it was not opened.
	Closed() bool
}

// updateBreaker takes in a result of the lane's receiver and returns what it changes for all processes.
func (l *Lane) updateBreaker(result policy.Result, probe bool, breakerPolicy policy.Breaker) store.LaneChange {
	switch {
	case probe && *breakerPolicy.Failures == 0: // it was switched off while it was open
		return store.LaneChange{Breaker: store.CloseBreaker}
	case result.Unavailable():
		if l.countFailure(probe, breakerPolicy) {
			l.slots = 1
			return store.LaneChange{Cooldown: breakerPolicy.Open, Breaker: store.OpenBreaker}
		}
	case result.Class == policy.ClassNone:
		l.breaker = nil
		if probe {
			l.slots = 1 // it recovers slowly
			return store.LaneChange{Breaker: store.CloseBreaker}
		}
	}
	return store.LaneChange{}
}

// countFailure counts a failure and reports whether the lane's breaker is to be opened.
func (l *Lane) countFailure(probe bool, breakerPolicy policy.Breaker) bool {
	switch {
	case probe:
		l.breaker = nil // the store keeps count
		return true
	case *breakerPolicy.Failures == 0:
		return false
	case l.breaker == nil || *l.breakerPolicy.Failures != *breakerPolicy.Failures ||
		l.breakerPolicy.Open != breakerPolicy.Open:
		l.breaker, l.breakerPolicy = l.shard.s.opts.NewBreaker(breakerPolicy), breakerPolicy
	}
	return l.breaker.Fail()
}
