package pool

import (
	"errors"

	"github.com/sony/gobreaker/v2"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A breaker counts a lane's failures in this process. It exists from a lane's first failure on, until the lane has
// answered again: lanes that work cost nothing.
//
// What it finds out holds for all processes: the settlement of the attempt that tripped it opens the lane's breaker in the
// store, which then keeps the lane's jobs back, and after that hands out one, as a probe, to whoever asks first. What
// comes of the probe is written the same way, by the process that had it.
//
//	here                          in the store
//	closed ── failures in a row ─▶ open: nothing is claimed ── hold over ─▶ half-open: one job, a probe
//	                                 ▲                                          │
//	                                 └────────────── it failed ─────────────────┤
//	                               closed ◀───────── it was answered ───────────┘
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]

	terms policy.Breaker
}

// errReceiverFailed is what a breaker counts.
var errReceiverFailed = errors.New("the receiver is away")

func newBreaker(terms policy.Breaker) *breaker {
	failures := uint32(*terms.Failures)
	return &breaker{gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     terms.Open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
	}), terms}
}

// failed counts a failure, and tells whether it opened the breaker. Attempts that were under way when it opened are not
// counted.
func (b *breaker) failed() bool {
	done, err := b.Allow()
	if err != nil {
		return false
	}
	done(errReceiverFailed)
	return b.State() == gobreaker.StateOpen
}

// updateBreaker takes in what an attempt showed of the lane's receiver, and says what that changes for all processes. p.mu is
// held.
func (l *lane) updateBreaker(result policy.Result, probe bool, terms policy.Breaker) store.LaneChange {
	switch {
	case probe && *terms.Failures == 0: // it was switched off while it was open
		return store.LaneChange{Breaker: store.CloseBreaker}
	case result.Unavailable():
		if l.countFailure(probe, terms) {
			l.slots = 1
			return store.LaneChange{Cooldown: terms.Open, Breaker: store.OpenBreaker}
		}
	case result.Class == policy.ClassNone:
		l.breaker = nil
		if probe {
			l.slots = 1 // it comes back slowly
			return store.LaneChange{Breaker: store.CloseBreaker}
		}
	}
	return store.LaneChange{}
}

// countFailure counts a failure, and tells whether the lane's breaker is to be opened.
func (l *lane) countFailure(probe bool, terms policy.Breaker) bool {
	switch {
	case probe:
		l.breaker = nil // it is the store's to keep count now
		return true
	case *terms.Failures == 0:
		return false
	case l.breaker == nil || !equalBreakers(l.breaker.terms, terms):
		l.breaker = newBreaker(terms)
	}
	return l.breaker.failed()
}

func equalBreakers(a, b policy.Breaker) bool { return *a.Failures == *b.Failures && a.Open == b.Open }
