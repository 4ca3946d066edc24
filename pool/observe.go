package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// Ended is the end of a claimed job.
type Ended struct {
	Namespace string
	Topic     string
	Verdict   policy.Verdict
	// Result is that of the request; nil: none was made.
	Result *policy.Result
	// Late is how long after its due moment, by the store's clock, the attempt began.
	Late time.Duration
}

// An Observer is notified of events. It is called by many goroutines, and must be quick.
type Observer interface {
	// Ended is called once for each claimed job, even if its settlement fails.
	Ended(e Ended)
}

// nopObserver hears nothing.
type nopObserver struct{}

func (nopObserver) Ended(Ended) {}

// State is a snapshot of a pool.
type State struct {
	Workers  int // attempts that it may have in flight: fewer while the process is short of descriptors, memory or ports
	InFlight int // attempts claimed, asked for, or not settled yet
}

// State returns a snapshot.
func (p *Pool) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return State{Workers: p.sched.Limit(), InFlight: p.sched.InFlight()}
}
