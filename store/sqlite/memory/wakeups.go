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
		group := q.Group()
		if q.notified == group {
			continue
		}
		if old := b.queues[q.notified]; q.notified != "" {
			i := slices.Index(old, q)
			b.set(q.notified, slices.Delete(old, i, i+1))
		}
		q.notified = group
		b.queues[group] = append(b.queues[group], q)
		news = true
	}
	if news {
		b.signal()
	}
}

// IsUnread reports whether the wake-up of a queue is in its topic's own group, for which nobody may wait.
func (b *Wakeups) IsUnread(q *Queue) bool {
	if q.Topic.Limits.Deliver.Pushes() {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return q.notified == q.Group()
}

// set replaces the queues of a group. Nothing is left of a topic's own group without queues: the topic may be gone.
func (b *Wakeups) set(group string, queues []*Queue) {
	if len(queues) == 0 && group != store.GroupPush {
		delete(b.queues, group)
	} else {
		b.queues[group] = queues
	}
}

// DropIdle drops queues without jobs: nobody may wait for a topic's own group.
func (b *Wakeups) DropIdle() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for group, queues := range b.queues {
		b.set(group, slices.DeleteFunc(queues, func(q *Queue) bool {
			if q.Waiting == 0 {
				q.notified = ""
			}
			return q.Waiting == 0
		}))
	}
}

func (b *Wakeups) signal() {
	close(b.changed)
	b.changed = make(chan struct{})
}

// Take removes up to most queues of the groups. changed is closed when something is added, also for another group.
func (b *Wakeups) Take(groups []string, most int) (queues []job.Queue, changed <-chan struct{}, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, group := range groups {
		all := b.queues[group]
		n := min(most-len(queues), len(all))
		if n == 0 {
			continue
		}
		queues = slices.Grow(queues, n)
		for _, q := range all[:n] {
			queues = append(queues, q.Name)
			q.notified = ""
		}
		b.set(group, slices.Delete(all, 0, n))
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
