package pull

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// passOnFirst and passOnMax bound the pauses before other processes are notified.
	passOnFirst = 10 * time.Millisecond
	passOnMax   = time.Second
)

// armPassOn has other processes notified of a topic's queues that no client here asks for. The caller holds the mutex.
func (p *Puller) armPassOn(t *topic) {
	if t.passOn != nil || p.stopped {
		return
	}
	t.passOnAfter = min(max(2*t.passOnAfter, passOnFirst), passOnMax)
	t.passOn = time.AfterFunc(t.passOnAfter, func() {
		p.inBackground(func() {
			p.mu.Lock()
			t.passOn = nil
			left := p.takeUnasked(t)
			p.mu.Unlock()
			p.notify(left)
		})
	})
}

// takeUnasked removes the runnable queues of a topic that no client asks for, and returns them by shard. The caller
// holds the mutex.
func (p *Puller) takeUnasked(t *topic) [][]job.Queue {
	left := make([][]job.Queue, len(t.runnable))
	for n := range t.runnable {
		all := &t.runnable[n]
		left[n] = all.all(maxRunnable, func(r *runnable) bool {
			return p.stopped || !slices.ContainsFunc(t.clients, func(c *client) bool { return c.asksFor(r.queue.Lane) })
		})
		for _, q := range left[n] {
			all.order.Remove(all.known[q])
			delete(all.known, q)
		}
	}
	return left
}

// passOnAll notifies other processes of all runnable queues.
func (p *Puller) passOnAll() {
	p.mu.Lock()
	all := make([][]job.Queue, len(p.shards))
	for _, t := range p.topics {
		if t.passOn != nil {
			t.passOn.Stop()
		}
		for n, left := range p.takeUnasked(t) {
			all[n] = append(all[n], left...)
		}
	}
	p.mu.Unlock()
	p.notify(all)
}

// notify notifies other processes of queues, by shard. After an error the carrier does within a second.
func (p *Puller) notify(byShard [][]job.Queue) {
	ctx, cancel := context.WithTimeout(context.Background(), store.CallTimeout)
	defer cancel()
	for n, left := range byShard {
		for part := range slices.Chunk(left, store.MaxBatch) {
			if err := p.shards[n].Notify(ctx, part); err != nil {
				p.log.Warn("notifying other processes of pulled topics failed, the carrier does within a second",
					"shard", n, "err", err)
				return
			}
		}
	}
}
