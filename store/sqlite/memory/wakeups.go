package memory

import (
	"sync"

	"github.com/ringback/ringback/job"
)

// Wakeups are the queues that store.Wait is to return, each once. The writer adds to them after a commit.
type Wakeups struct {
	mu     sync.Mutex
	queues []*Queue
	wake   bool
	closed bool
	// changed is closed and replaced when something was added.
	changed chan struct{}
}

// NewWakeups returns an empty set.
func NewWakeups() *Wakeups { return &Wakeups{changed: make(chan struct{})} }

// Notify adds queues. wake reports a new head of the agenda.
func (b *Wakeups) Notify(queues []*Queue, wake bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := wake && !b.wake
	b.wake = b.wake || wake
	for _, q := range queues {
		if !q.notified {
			q.notified = true
			b.queues = append(b.queues, q)
			news = true
		}
	}
	if news {
		b.signal()
	}
}

func (b *Wakeups) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Take removes up to most queues. changed is closed when something is added.
func (b *Wakeups) Take(most int) (queues []job.Queue, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n := min(most, len(b.queues)); n > 0 {
		queues = make([]job.Queue, n)
		for i, q := range b.queues[:n] {
			queues[i] = q.Name
			q.notified = false
		}
		b.queues = append(b.queues[:0], b.queues[n:]...)
		clear(b.queues[len(b.queues):cap(b.queues)])
	}
	return queues, b.changed, b.closed
}

// TakeAgenda reports whether the agenda has had a new head since the last call.
func (b *Wakeups) TakeAgenda() (moved bool, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	moved, b.wake = b.wake, false
	return moved, b.changed, b.closed
}

// Close ends all waits. Later calls of Take report closed.
func (b *Wakeups) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.signal()
}
