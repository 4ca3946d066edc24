package pool

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// AttemptEvent is the end of a claimed job's attempt, whether a request was made or not.
type AttemptEvent struct {
	Namespace string
	Topic     string
	Verdict   policy.Verdict
	// Result is the result of the request; nil: no request.
	Result *policy.Result
	// Late is the time from the due time to the start of the attempt, by the store's clock.
	Late time.Duration
	// Job is the claimed job. It is valid until AttemptEnded returns.
	Job *store.ClaimedJob
	// Record is the entry in the job's history; its Kind is empty if there is none. URL is that of the request.
	Record job.Attempt
	URL    string
}

// Observer is notified of events. It must be safe for concurrent use, and fast.
type Observer interface {
	// AttemptEnded is called once for each claimed job, even if its settlement fails.
	AttemptEnded(e AttemptEvent)
}

// nopObserver ignores events.
type nopObserver struct{}

func (nopObserver) AttemptEnded(AttemptEvent) {}

// State is a snapshot of a pool.
type State struct {
	Workers  int // limit of attempts in flight: lower while the process is short of descriptors, memory or ports
	InFlight int // jobs claimed, reserved for a claim, or not settled yet
}

// State returns a snapshot.
func (p *Pool) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return State{Workers: p.scheduler.Limit(), InFlight: p.scheduler.InFlight()}
}

// TopicInFlight returns how many attempts of a topic are in flight in this process, including jobs that are claimed for
// a free worker.
func (p *Pool) TopicInFlight(namespace, topic string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scheduler.TopicInFlight(sched.TopicName{Namespace: namespace, Name: topic})
}
