// Package carrier moves due jobs to where pools can claim them, sends back what a dead process held, brings home what
// an attempt's end gave birth to, and removes what retention no longer keeps.
//
// One carrier a shard works at a time, under the store's lock; another process takes over when it ends or stalls. The
// lock only saves work: every move is one atomic step of the store, and two carriers at once do no harm.
//
// Between moves a carrier sleeps until the moment the store's agenda names, at most a second, and Wake ends the sleep
// when something came before it. Faults of the store are retried with growing, jittered pauses, for as long as it takes.
package carrier

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/store"
)

// Options says what a Carrier works with.
type Options struct {
	Store *store.Router
	// Margin is how long lapses wait after contact with the store was interrupted, so that settlements held up by the
	// fault come first; zero: 5 s.
	Margin time.Duration
	// OnLead is called when this process begins to carry a shard, so that it listens for what wakes the carrier; nil:
	// nobody is told. It must not block.
	OnLead func(shard int)
	// OnExpired is called when jobs of a shard that this process carries are to be ended, since their time to live is over
	// and they may wait: at most once a second for each shard; nil: nobody is told. It must not block.
	OnExpired func(shard int)
	Logger    *slog.Logger // nil: slog.Default
}

// Carrier carries all shards of a store. Make one with New; it does nothing until Run.
type Carrier struct {
	store     *store.Router
	margin    time.Duration
	onLead    func(int)
	onExpired func(int)
	log       *slog.Logger
	shards    []*shard
}

// shard is the carrier of one shard.
type shard struct {
	*Carrier
	n       int
	wake    chan struct{}
	leading atomic.Bool
}

// New makes a Carrier. It panics without a store.
func New(opts Options) *Carrier {
	if opts.Store == nil {
		panic("carrier: a store is needed")
	}
	c := &Carrier{
		store: opts.Store, margin: cmp.Or(opts.Margin, 5*time.Second), onLead: opts.OnLead, onExpired: opts.OnExpired,
		log: cmp.Or(opts.Logger, slog.Default()),
	}
	if c.onLead == nil {
		c.onLead = func(int) {}
	}
	if c.onExpired == nil {
		c.onExpired = func(int) {}
	}
	for n := range opts.Store.Shards() {
		c.shards = append(c.shards, &shard{Carrier: c, n: n, wake: make(chan struct{}, 1)})
	}
	return c
}

// Leading tells whether this process carries the shard now.
func (c *Carrier) Leading(shard int) bool { return c.shards[shard].leading.Load() }

// Wake makes the shard's carrier look at the agenda now.
func (c *Carrier) Wake(shard int) {
	select {
	case c.shards[shard].wake <- struct{}{}:
	default:
	}
}

// Run carries until ctx ends, and gives up its locks.
func (c *Carrier) Run(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range c.shards {
		all.Go(func() { s.run(ctx) })
	}
	all.Wait()
}

// The rhythm of a carrier.
const (
	// maxSleep is the longest sleep between two moves.
	maxSleep = time.Second
	// extendEvery renews the lock well before it ends.
	extendEvery = store.LeadershipTTL / 3
	// acquireEvery is how often a process that does not lead asks for the lock.
	acquireEvery = time.Second
	// expiredEvery is how often jobs whose time to live is over are looked for at most.
	expiredEvery = time.Second
	// callTimeout bounds one call to the store.
	callTimeout = 10 * time.Second
	// releaseTimeout bounds the last call, when the process stops.
	releaseTimeout = time.Second
)

// run alternates between asking for the lock and carrying under it.
func (s *shard) run(ctx context.Context) {
	var again store.Backoff
	hold := leaseExpiry{margin: s.margin}
	for ctx.Err() == nil {
		lead, err := s.store.Lead(ctx, s.n)
		switch {
		case err == nil:
			s.leading.Store(true)
			s.onLead(s.n)
			err = s.lead(ctx, lead, &hold, again.Reset)
			s.leading.Store(false)
			s.release(ctx, lead)
			if errors.Is(err, store.ErrNotLeader) {
				hold.interrupted() // we were away for longer than a lock lasts
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
		hold.interrupted()
		s.log.Log(ctx, again.Level(), "the store could not be carried", "shard", s.n, "err", err)
		again.Wait(ctx)
	}
}

// release gives the lock up so that the next process need not wait for its end.
func (s *shard) release(ctx context.Context, lead store.Leadership) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := lead.Release(ctx); err != nil && !errors.Is(err, store.ErrNotLeader) {
		s.log.Debug("the carrier lock was left to run out", "shard", s.n, "err", err)
	}
}

// lead carries until ctx ends or a call fails. It tells well of every move that succeeded.
func (s *shard) lead(ctx context.Context, lead store.Leadership, hold *leaseExpiry, well func()) error {
	extended, expired := time.Now(), time.Time{}
	swept := &sweeper{shard: s}
	ctx, cancel := context.WithCancel(ctx)
	home := newOutboxRelay(s)
	defer home.inserts.Wait() // what these insertions bring is found again by the next lead
	var checks sync.WaitGroup
	defer checks.Wait()
	defer cancel()
	checks.Go(func() { s.repair(ctx) })
	for ctx.Err() == nil {
		if time.Since(extended) >= extendEvery {
			extended = time.Now()
			if err := s.call(ctx, lead.Extend); err != nil {
				return err
			}
		}
		round := home.options(ctx)
		round.KeepLeases, round.ExpireLeasesBefore = hold.isHeld(), hold.plausibleNow()
		var carried store.CarryResult
		err := s.call(ctx, func(ctx context.Context) (err error) {
			carried, err = s.store.Carry(ctx, s.n, store.NewToken(), round)
			return err
		})
		if err != nil {
			return err
		}
		well()
		if carried.HasExpiredJobs && time.Since(expired) >= expiredEvery {
			expired = time.Now()
			s.onExpired(s.n)
		}
		hold.observe(carried.Now)
		if carried.ClockStep != 0 {
			s.log.Warn("store clock was stepped; leases, cooldowns and rate windows are moved along, due times are not",
				"shard", s.n, "step", carried.ClockStep, "now", carried.Now)
		}
		if err := s.call(ctx, swept.sweep); err != nil {
			return err
		}
		if home.relay(ctx, carried) {
			continue
		}
		wait := min(pause(carried, hold.isHeld()), swept.wait(), home.wait())
		sleep(ctx, min(wait, max(0, extendEvery-time.Since(extended))), s.wake)
	}
	return nil
}

// withTimeout makes one call with the longest time that a call may take.
func (s *shard) call(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	return call(ctx)
}

// pause is how long to sleep after a move. A move that did nothing although there seemed to be something is not repeated
// in a hot loop.
func pause(carried store.CarryResult, held bool) time.Duration {
	switch {
	case carried.Next < 0 || carried.Next > maxSleep:
		return maxSleep
	case carried.Next > 0 || carried.Moved+carried.ExpiredLeases > 0:
		return carried.Next
	case held:
		return 100 * time.Millisecond
	default:
		return time.Millisecond
	}
}

// sleep waits for d, for wake, or for ctx's end.
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
