package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/store"
)

// settlement is an attempt that ended and is to be settled.
type settlement struct {
	store.Settlement
	lane *lane // known to the pool until prepare takes the settlement: it is in flight there
}

// shardLoop makes the trips to one shard: one at a time, settlements and claims together. Its fields below signal are
// guarded by the pool's mutex.
type shardLoop struct {
	p       *Pool
	shard   int
	store   store.Shard
	wakeup  chan struct{} // something may be to do
	expired chan struct{} // jobs are to be ended whose time to live is over
	quit    chan struct{} // closed when no more attempts are to be started

	interruptWait context.CancelFunc // ends the Wait under way; nil when there is none
	runnable      fairQueue
	callTime      time.Duration // how long trips take, the longest of late
	ended         []settlement
	reservedBytes int           // bytes, for the claim under way
	largeLane     *lane         // is to be asked alone, for a body longer than what a claim may bring
	working       int           // attempts of this shard that were claimed and have not ended
	prefetched    int           // of them, that wait for a worker
	batchTimedOut bool          // what was gathered has waited long enough
	permitBackoff store.Backoff // of calls for starts of the shard's topics, while they fail
}

func newShardLoop(p *Pool, number int, shard store.Shard) *shardLoop {
	return &shardLoop{
		p: p, shard: number, store: shard,
		wakeup:   make(chan struct{}, 1),
		expired:  make(chan struct{}, 1),
		quit:     make(chan struct{}),
		runnable: fairQueue{byTopic: make(map[*topic]*topicQueue)},
		callTime: initialCallTime,
	}
}

// wake makes the desk look again.
func (s *shardLoop) wake() {
	select {
	case s.wakeup <- struct{}{}:
	default:
	}
}

// close lets run end once everything in flight is settled.
func (s *shardLoop) close() {
	close(s.quit)
}

// run makes trips until the desk was closed and nothing of it is in flight any more, or ctx ends. Attempts get work.
func (s *shardLoop) run(claiming, ctx, work context.Context) {
	back := newRequeuer(s)
	defer back.stop()
	gathered, stale := newDebounceTimer(), newDebounceTimer()
	defer gathered.stop()
	defer stale.stop()
	quit := s.quit
	for {
		for s.exchange(claiming, ctx, work) {
			gathered.arm(false, 0)
			_, stocked := s.pending()
			if stale.arm(stocked, minPrefetchMaxAge); stale.fired() {
				s.dropStalePrefetch(work, s.prefetchMaxAge())
			}
			if ctx.Err() != nil {
				return
			}
		}
		if quit == nil && s.isIdle() {
			return
		}
		back.update()
		left, stocked := s.pending()
		gathered.arm(left, maxBatchWait)
		stale.arm(stocked, minPrefetchMaxAge)
		select {
		case <-s.wakeup:
		case <-gathered.timer.C:
			gathered.armed = false
			s.endBatching()
		case <-stale.timer.C:
			stale.armed = false
			s.dropStalePrefetch(work, s.prefetchMaxAge())
		case <-back.timer.C:
			back.requeueSome(ctx)
		case <-quit:
			s.dropStalePrefetch(work, 0)
			back.requeueAll(ctx)
			quit = nil
		case <-ctx.Done():
			return
		}
	}
}

// isIdle reports that nothing of this desk is in flight or to be settled.
func (s *shardLoop) isIdle() bool {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.working == 0 && len(s.ended) == 0
}
