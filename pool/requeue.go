package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// requeuer notifies other processes of queues that are runnable and cannot be served here: 10 ms after an exchange
// found no room for them, then at intervals that double to 250 ms until another queue joins them, a bounded number each
// time.
type requeuer struct {
	shard       *shardLoop
	timer       <-chan time.Time // nil: it does not run
	interval    time.Duration
	firesAt     time.Time
	backoff     store.Backoff // while the store rejects notifications
	pausedUntil time.Time
}

const (
	requeueFirst = 10 * time.Millisecond
	requeueMax   = 250 * time.Millisecond
	requeueBatch = 128
)

// update runs the timer while queues wait.
func (b *requeuer) update() {
	b.shard.p.mu.Lock()
	waiting, added := b.shard.scheduler.HasWaiting() && !b.shard.p.stopping, b.shard.newWaiting
	b.shard.newWaiting = false
	b.shard.p.mu.Unlock()
	switch {
	case !waiting:
		b.interval, b.timer = 0, nil
	case b.timer == nil || added && time.Until(b.firesAt) > requeueFirst:
		if added {
			b.interval = 0
		}
		b.interval = min(max(2*b.interval, requeueFirst), requeueMax)
		wait := max(b.interval, time.Until(b.pausedUntil))
		b.firesAt, b.timer = time.Now().Add(wait), time.After(wait)
	}
}

// requeueSome notifies others of some of the waiting queues, which stay runnable here.
func (b *requeuer) requeueSome(ctx context.Context) {
	b.timer = nil
	b.shard.p.mu.Lock()
	queues := b.shard.scheduler.Waiting(requeueBatch)
	b.shard.p.mu.Unlock()
	b.send(ctx, queues)
}

// requeueAll notifies others of all runnable queues.
func (b *requeuer) requeueAll(ctx context.Context) {
	b.shard.p.mu.Lock()
	queues := b.shard.scheduler.RunnableQueues()
	b.shard.p.mu.Unlock()
	for len(queues) > 0 {
		n := min(len(queues), store.MaxBatch)
		b.send(ctx, queues[:n])
		queues = queues[n:]
	}
}

// send notifies others of queues. After an error the carrier does within a second.
func (b *requeuer) send(ctx context.Context, queues []job.Queue) {
	if len(queues) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, store.CallTimeout)
	defer cancel()
	err := b.shard.store.Notify(ctx, queues)
	if err == nil {
		b.backoff.Reset()
		return
	}
	b.shard.p.log.Log(ctx, b.backoff.Level(), "requeueing for other processes failed, retrying", "shard", b.shard.shard,
		"queues", len(queues), "err", err)
	b.pausedUntil = time.Now().Add(b.backoff.Next())
}
