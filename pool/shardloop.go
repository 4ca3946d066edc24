package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// settlement is the end of an attempt, not yet written to the store.
type settlement struct {
	store.Settlement
	lane *sched.Lane
}

// shardLoop makes the exchanges with one shard: one at a time, settlements and claims together. Its last group of
// fields is guarded by the pool's mutex.
type shardLoop struct {
	p     *Pool
	shard int
	store shardStore
	// exchanges are those with the shard.
	exchanges store.Exchange
	wakeup    chan struct{} // an exchange may be due
	quit      chan struct{} // closed when no more attempts may start

	scheduler     *sched.Shard
	settlements   []settlement  // of ended attempts, for the next exchange
	working       int           // attempts of this shard in flight
	newWaiting    bool          // a queue became runnable since the requeuer looked
	batchTimedOut bool          // maxBatchWait is over
	permitBackoff store.Backoff // of calls for starts of the shard's topics
}

// shardStore is the part of a shard that the pool uses.
type shardStore interface {
	store.Queue
	store.Settings
}

func newShardLoop(p *Pool, shard int, st shardStore) *shardLoop {
	return &shardLoop{
		p: p, shard: shard, store: st,
		exchanges: store.Exchange{
			Queue: st, Shard: shard, Settled: p.opts.Settled, HealthChanged: p.opts.HealthChanged, Log: p.log,
		},
		scheduler: p.scheduler.Shard(shard),
		wakeup:    make(chan struct{}, 1),
		quit:      make(chan struct{}),
	}
}

// wake makes run check for an exchange.
func (s *shardLoop) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// close lets run end once everything in flight is settled.
func (s *shardLoop) close() { close(s.quit) }

// maxBatchWait bounds the wait of settlements for others.
const maxBatchWait = 2 * time.Millisecond

// run makes exchanges until close was called and nothing of the shard is in flight any more, or flushCtx ends. claimCtx
// ends requests for permits, workCtx the attempts.
func (s *shardLoop) run(claimCtx, workCtx, flushCtx context.Context) {
	requeue := requeuer{shard: s}
	var batch, stale <-chan time.Time // timers; nil: they do not run
	quit := s.quit
	for flushCtx.Err() == nil {
		more := s.exchange(claimCtx, workCtx, flushCtx)
		if more {
			s.wake()
		} else if quit == nil && s.isIdle() {
			return
		}
		requeue.update()
		left, prefetched := s.pending()
		batch = runWhile(left && !more, batch, maxBatchWait)
		stale = runWhile(prefetched, stale, sched.MinPrefetchAge)
		select { // at random among what is due: exchanges that follow each other delay nothing else
		case <-s.wakeup:
		case <-batch:
			batch = nil
			s.endBatching()
		case <-stale:
			stale = nil
			s.dropPrefetched(workCtx, false)
		case <-requeue.timer:
			requeue.requeueSome(flushCtx)
		case <-quit:
			s.dropPrefetched(workCtx, true)
			requeue.requeueAll(flushCtx)
			quit = nil
		case <-flushCtx.Done():
		}
	}
}

// runWhile returns the timer while a condition holds, a new one if it does not run yet, and nil otherwise.
func runWhile(on bool, timer <-chan time.Time, after time.Duration) <-chan time.Time {
	switch {
	case !on:
		return nil
	case timer == nil:
		return time.After(after)
	}
	return timer
}

// isIdle reports whether the shard has no attempts in flight and no settlements.
func (s *shardLoop) isIdle() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.working == 0 && len(s.settlements) == 0
}

// pending reports whether the last exchange left settlements, and whether jobs wait for workers.
func (s *shardLoop) pending() (settlements, prefetched bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return len(s.settlements) > 0, s.scheduler.Prefetched() > 0
}

// shouldBatch reports whether the settlements should wait for more. The caller holds the pool's mutex.
func (s *shardLoop) shouldBatch() bool {
	return !s.batchTimedOut && s.scheduler.ShouldBatch(len(s.settlements))
}

// endBatching makes the next exchange take the pending settlements.
func (s *shardLoop) endBatching() {
	s.p.mu.Lock()
	s.batchTimedOut = true
	s.p.mu.Unlock()
}

// dropPrefetched releases jobs that wait for a worker: all, or those that have waited too long.
func (s *shardLoop) dropPrefetched(ctx context.Context, all bool) {
	s.p.mu.Lock()
	jobs := s.scheduler.DropPrefetched(all, time.Now())
	s.p.mu.Unlock()
	for _, j := range jobs {
		attemptOf(j).release(ctx)
	}
}
