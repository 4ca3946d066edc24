package pool

import (
	"errors"

	"github.com/sony/gobreaker/v2"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
)

// breaker counts the consecutive failures of a lane's receiver. The store decides about probes; see sched.Breaker.
type breaker struct {
	*gobreaker.TwoStepCircuitBreaker[struct{}]
}

// errReceiverFailed is a failure counted by a breaker.
var errReceiverFailed = errors.New("receiver failed")

func newBreaker(breakerPolicy policy.Breaker) sched.Breaker {
	failures := uint32(*breakerPolicy.Failures)
	return breaker{gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     breakerPolicy.Open,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= failures },
	})}
}

// Fail implements sched.Breaker.
func (b breaker) Fail() (opened bool) {
	done, err := b.Allow()
	if err != nil {
		return false
	}
	done(errReceiverFailed)
	return !b.Closed()
}

// Closed implements sched.Breaker.
func (b breaker) Closed() bool { return b.State() == gobreaker.StateClosed }
