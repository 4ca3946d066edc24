package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// requeuer rings for other processes what is hot here and cannot be served: 10 ms after it stood in line in vain, then
// at intervals that double to 250 ms, a bounded number each time.
type requeuer struct {
	*debounceTimer

	shard       *shardLoop
	interval    time.Duration
	backoff     store.Backoff // while the store does not take what is handed back
	pausedUntil time.Time     // nothing is handed back before
}

const (
	requeueFirst = 10 * time.Millisecond
	requeueMax   = 250 * time.Millisecond
	requeueBatch = 128
)

func newRequeuer(s *shardLoop) *requeuer {
	return &requeuer{debounceTimer: newDebounceTimer(), shard: s}
}

// update sets the alarm, or takes it back, by whether anything stands in line after a trip found no room for it.
func (b *requeuer) update() {
	b.shard.p.mu.Lock()
	parked := b.shard.runnable.hasWaiting() && !b.shard.p.stopping
	b.shard.p.mu.Unlock()
	switch {
	case !parked:
		b.interval = 0
		b.arm(false, 0)
	case !b.armed:
		b.interval = min(max(2*b.interval, requeueFirst), requeueMax)
		b.arm(true, max(b.interval, time.Until(b.pausedUntil)))
	}
}

// requeueSome hands back some of what stands in line; it stays hot here.
func (b *requeuer) requeueSome(ctx context.Context) {
	b.armed = false
	b.shard.p.mu.Lock()
	var queues []job.Queue
	for _, l := range b.shard.runnable.firstWaiting(requeueBatch) {
		queues = append(queues, l.queue)
	}
	b.shard.p.mu.Unlock()
	b.send(ctx, queues)
}

// requeueAll hands everything hot back, for good.
func (b *requeuer) requeueAll(ctx context.Context) {
	b.shard.p.mu.Lock()
	var queues []job.Queue
	for _, l := range b.shard.p.lanes {
		if l.desk == b.shard && l.runnable {
			queues = append(queues, l.queue)
		}
	}
	b.shard.p.mu.Unlock()
	for len(queues) > 0 {
		n := min(len(queues), store.MaxBatch)
		b.send(ctx, queues[:n])
		queues = queues[n:]
	}
}

// send rings; what fails is rung by the carrier within a second.
func (b *requeuer) send(ctx context.Context, queues []job.Queue) {
	if len(queues) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	err := b.shard.store.Notify(ctx, queues)
	if err == nil {
		b.backoff.Reset()
		return
	}
	b.shard.p.log.Log(ctx, b.backoff.Level(), "requeueing for other processes failed, retrying", "shard", b.shard.shard, "queues", len(queues), "err", err)
	b.pausedUntil = time.Now().Add(b.backoff.Next())
}
