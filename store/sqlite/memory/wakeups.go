package memory

import (
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Wakeups are the queues that store.Wait is to return, each once. The writer adds to them after a commit.
type Wakeups struct {
	mu     sync.Mutex
	queues map[string][]*Queue // by group
	wake   bool
	closed bool
	// changed is closed and replaced when something was added.
	changed chan struct{}
}

// NewWakeups returns an empty set.
func NewWakeups() *Wakeups {
	return &Wakeups{queues: make(map[string][]*Queue), changed: make(chan struct{})}
}

// Notify adds queues. wake reports a new head of the agenda.
func (b *Wakeups) Notify(queues []*Queue, wake bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	news := wake && !b.wake
	b.wake = b.wake || wake
	for _, q := range queues {
		if !q.notified {
			q.notified = true
			group := store.GroupOf(q.Name.Topic)
			b.queues[group] = append(b.queues[group], q)
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

// Take removes up to most queues of a group. changed is closed when something is added, also for another group.
func (b *Wakeups) Take(group string, most int) (queues []job.Queue, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := b.queues[group]
	if n := min(most, len(all)); n > 0 {
		queues = make([]job.Queue, n)
		for i, q := range all[:n] {
			queues[i] = q.Name
			q.notified = false
		}
		b.queues[group] = slices.Delete(all, 0, n)
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
