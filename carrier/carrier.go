// Package carrier moves due jobs to the ready lists that pools claim from, expires the leases of dead processes, relays
// the outbox to its queues, and deletes ended jobs past their retention.
//
// One carrier a shard works at a time, under the store's lock; another process takes over when it ends or stalls. The
// lock only saves work: every move is one atomic step of the store, and two carriers at once do no harm.
//
// Between moves a carrier sleeps until the next entry of the store's agenda is due, at most a second. It wakes when
// the store reports an earlier entry. Calls to the store that fail are retried without limit, with jittered backoff.
package carrier

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// Carrier carries all shards of a store. It does nothing until Run.
type Carrier struct {
	store  *router.Router
	log    *slog.Logger
	shards []*shard
}

// shard is the carrier of one shard.
type shard struct {
	*Carrier
	n      int
	keeper store.Keeper
	wake   chan struct{}
	term   atomic.Int64
}

// New returns a Carrier of a store's shards.
func New(s *router.Router, log *slog.Logger) *Carrier {
	c := &Carrier{store: s, log: log}
	for n, keeper := range s.Shards() {
		c.shards = append(c.shards, &shard{Carrier: c, n: n, keeper: keeper, wake: make(chan struct{}, 1)})
	}
	return c
}

// Term returns which of its terms as the carrier of the shard this process serves, from 1; 0: it is not the carrier.
func (c *Carrier) Term(shard int) int64 { return c.shards[shard].term.Load() }

// wakeUp makes the carrier check the agenda now.
func (s *shard) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run carries until ctx ends, then releases its locks.
func (c *Carrier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range c.shards {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
}

// Intervals and timeouts of a carrier.
const (
	// maxSleep is the longest sleep between two rounds.
	maxSleep = time.Second
	// extendEvery is the interval at which the lock is extended.
	extendEvery = store.LeadershipTTL / 3
	// acquireEvery is the interval at which other processes try to acquire the lock.
	acquireEvery = time.Second
	// releaseTimeout bounds the last call, when the process stops.
	releaseTimeout = time.Second
)

// run acquires the lock and carries while it has it, until ctx ends.
func (s *shard) run(ctx context.Context) {
	var again store.Backoff
	var expiry leaseExpiry
	terms := int64(0)
	for ctx.Err() == nil {
		leadership, err := s.keeper.Lead(ctx)
		switch {
		case err == nil:
			terms++
			s.term.Store(terms)
			err = s.lead(ctx, leadership, &expiry, again.Reset)
			s.term.Store(0)
			s.release(ctx, leadership)
			if errors.Is(err, store.ErrNotLeader) {
				expiry.interrupt() // this process stalled for longer than the lock lasts
				continue
			}
		case errors.Is(err, store.ErrNotLeader):
			again.Reset()
			sleep(ctx, acquireEvery/2+rand.N(acquireEvery/2), nil)
			continue
		}
		if ctx.Err() != nil {
			return
		}
		expiry.interrupt()
		s.log.Log(ctx, again.Level(), "carrier round failed, retrying", "shard", s.n, "err", err)
		again.Wait(ctx)
	}
}

// release releases the lock, so that the next process need not wait until it expires.
func (s *shard) release(ctx context.Context, leadership store.Leadership) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := leadership.Release(ctx); err != nil && !errors.Is(err, store.ErrNotLeader) {
		s.log.Debug("carrier lock release failed; it expires in 3s", "shard", s.n, "err", err)
	}
}

// lead carries until ctx ends or a call fails. It calls succeeded after every successful round.
func (s *shard) lead(ctx context.Context, leadership store.Leadership, expiry *leaseExpiry, succeeded func()) error {
	extended := time.Now()
	swept := &sweeper{shard: s}
	ctx, cancel := context.WithCancel(ctx)
	outbox := newOutboxRelay(s)
	defer outbox.inserts.Wait() // the next leader finds these jobs by their ids
	var checks sync.WaitGroup
	defer checks.Wait()
	defer cancel()
	checks.Go(func() { s.repair(ctx) })
	checks.Go(func() { s.watchAgenda(ctx) })
	for ctx.Err() == nil {
		options := outbox.options(ctx)
		if time.Since(extended) >= extendEvery {
			extended, options.Lead = time.Now(), leadership
		}
		options.KeepLeases, options.ExpireLeasesBefore = expiry.isPaused(), expiry.plausibleNow()
		var carried store.CarryResult
		err := store.Call(ctx, func(ctx context.Context) (err error) {
			carried, err = s.keeper.Carry(ctx, store.NewToken(), options)
			return err
		})
		if err != nil {
			return err
		}
		succeeded()
		expiry.observe(carried.Now)
		if carried.ClockStep != 0 {
			s.log.Warn("store clock was stepped; leases, cooldowns and rate windows are moved along, due times are not",
				"shard", s.n, "step", carried.ClockStep, "now", carried.Now)
		}
		if err := store.Call(ctx, swept.sweep); err != nil {
			return err
		}
		if outbox.relay(ctx, carried) {
			continue
		}
		wait := min(pause(carried, expiry.isPaused()), swept.wait(), outbox.wait())
		sleep(ctx, min(wait, max(0, extendEvery-time.Since(extended))), s.wake)
	}
	return nil
}

// pause returns how long to sleep after a round. A round that moved nothing although something was due is not repeated
// in a busy loop.
func pause(carried store.CarryResult, expiryPaused bool) time.Duration {
	switch {
	case carried.Next < 0 || carried.Next > maxSleep:
		return maxSleep
	case carried.Next > 0 || carried.Moved+carried.ExpiredLeases > 0:
		return carried.Next
	case expiryPaused:
		return 100 * time.Millisecond
	default:
		return time.Millisecond
	}
}

// sleep waits for d, wake or the end of ctx.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) {
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
}
