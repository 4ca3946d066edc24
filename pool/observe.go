package pool

import "github.com/ringback/ringback/pool/sched"

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
