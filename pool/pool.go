package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// Deliverer makes one attempt. It must end soon after ctx does, with policy.ClassShutdown unless the attempt had ended
// before, and after the request's Timeout in any case.
type Deliverer interface {
	Deliver(ctx context.Context, request job.Request) policy.Result
}

// Policies gives topics' policies, complete (defaults filled in).
type Policies interface {
	// Topic is the policy that holds now.
	Topic(namespace, topic string) policy.Topic
	// Credentials are what the attempts of a topic prove themselves with. An error says that there should be some which
	// cannot be had: then nothing is attempted, but by lanes with secrets of their own where nothing else is missing. What
	// can be had is answered all the same.
	Credentials(namespace, topic string) (job.Credentials, error)
	// Signer signs for a lane that has secrets of its own.
	Signer(lane store.Lane) (job.Signer, error)
	// OpenHeader opens the sealed values of a header (job.Sealed) for an attempt of a job of a queue. An error
	// says that it cannot be: then nothing is attempted that needs it.
	OpenHeader(q job.Queue, name, sealed string) (job.HeaderSecret, error)
	// Refresh has what Topic answers read again when it is some seconds old. It must not take long.
	Refresh(ctx context.Context)
	// Sync makes what Topic answers not older than the given revision of the store's, and tells whether it is. It must
	// not take longer than a second.
	Sync(ctx context.Context, revision int64) bool
}

// DefaultWorkers is the default of Options.Workers.
const DefaultWorkers = 2048

// Options says what a Pool works with.
type Options struct {
	Store     store.Store
	Deliverer Deliverer
	Policies  Policies
	// Workers is the number of attempts in flight in this process, all topics together; zero: DefaultWorkers.
	Workers int
	// MaxBytes bounds the bodies of the attempts in flight that are not sent yet, in bytes; zero: 64 MiB. A single job beyond
	// it always fits.
	MaxBytes int
	// Margin is how much longer than its attempt a lease lasts; zero: 5 s.
	Margin time.Duration
	// Grace is how long Run may take to end, of which the last 5 s (at most half) are for what must be released and
	// settled; zero: 30 s.
	Grace time.Duration
	// Outbox makes the jobs that tell of a job's end; nil: nobody is told.
	Callbacks func(end End) []store.NewJob
	// Observer hears of each job that was claimed; nil: nobody does.
	Observer Observer
	// IsLeader tells whether this process carries the shard, and is to hear of what comes before the agenda's head;
	// OnWake is then called. Both may be nil.
	IsLeader      func(shard int) bool
	OnAgendaMoved func(shard int)
	// Random spreads waits, in [0, 1); nil: math/rand/v2.
	Random func() float64
	Logger *slog.Logger // nil: slog.Default
}

// End is the end of a job: delivered, or dead.
type End struct {
	Job     *store.ClaimedJob
	URL     string       // the job's, its lane's or its topic's; empty: none of them has one
	Terms   policy.Terms // resolved
	Verdict policy.Verdict
	// Attempt is the last one; its Kind is empty when the job ended without another.
	Attempt job.Attempt
}

// Pool attempts the due jobs of a store. Make one with New; it does nothing until Run.
type Pool struct {
	opts       Options
	log        *slog.Logger
	attemptLog *attemptLog
	owner      store.LeaseOwner // of its claims
	shards     []*shardLoop
	workers    sync.WaitGroup
	idle       chan *attempt // takes an attempt while a worker is idle
	quit       chan struct{} // closed when idle workers are to leave
	hangTimer  *time.Timer   // until the oldest attempt hangs
	growTimer  *time.Timer   // runs while a shortage limits the attempts in flight

	mu           sync.Mutex
	sched        *sched.Scheduler
	hangTimerSet bool
	stopping     bool
	unsettled    int // attempts whose settlement was abandoned
	shortages    shortageLog
}

// errStopping is the cause with which attempts are cancelled.
var errStopping = errors.New("the process is stopping")

// New makes a Pool. It panics when the store, the deliverer or the policies are missing.
func New(opts Options) *Pool {
	if opts.Store == nil || opts.Deliverer == nil || opts.Policies == nil {
		panic("pool: a store, a deliverer and policies are needed")
	}
	opts.Workers = cmp.Or(opts.Workers, DefaultWorkers)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, 64<<20)
	opts.Margin = cmp.Or(opts.Margin, 5*time.Second)
	opts.Grace = cmp.Or(opts.Grace, 30*time.Second)
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	if opts.IsLeader == nil {
		opts.IsLeader = func(int) bool { return false }
	}
	if opts.Callbacks == nil {
		opts.Callbacks = func(End) []store.NewJob { return nil }
	}
	if opts.Observer == nil {
		opts.Observer = nopObserver{}
	}
	if opts.OnAgendaMoved == nil {
		opts.OnAgendaMoved = func(int) {}
	}
	p := &Pool{
		opts: opts,
		log:  cmp.Or(opts.Logger, slog.Default()),
		quit: make(chan struct{}),
		idle: make(chan *attempt),

		owner: store.NewLeaseOwner(),
	}
	p.attemptLog = newAttemptLog(p.log)
	p.hangTimer = time.AfterFunc(sched.SlowAfter, p.markHanging)
	p.hangTimer.Stop()
	p.growTimer = time.AfterFunc(sched.GrowInterval, p.growLimit)
	p.growTimer.Stop()
	shards := opts.Store.Shards()
	p.sched = sched.New(sched.Options{
		Shards: len(shards), Workers: opts.Workers, MaxBytes: opts.MaxBytes, Policy: p.topicPolicy, NewBreaker: newBreaker,
		Wake: func(shard int) { p.shards[shard].wake() },
	})
	for n, shard := range shards {
		p.shards = append(p.shards, newShardLoop(p, n, shard))
	}
	return p
}

func (p *Pool) topicPolicy(t sched.TopicName) policy.Topic {
	return p.opts.Policies.Topic(t.Namespace, t.Name)
}

// settleReserve is the part of the grace that is kept for releasing and settling.
func (p *Pool) settleReserve() time.Duration { return min(5*time.Second, p.opts.Grace/2) }

// Run works until ctx ends, then stops within the grace. The error is nil when everything was settled, and says how much
// was not otherwise: what was not comes back when its lease lapses. Run may be called once.
func (p *Pool) Run(ctx context.Context) error {
	var listeners, desks sync.WaitGroup
	// Three contexts: ctx stops claiming, work stops attempts, flush stops settling.
	lasting := context.WithoutCancel(ctx)
	work, halt := context.WithCancelCause(lasting)
	defer halt(nil)
	flush, abandon := context.WithCancel(lasting)
	defer abandon()
	for _, s := range p.shards {
		listeners.Go(func() { s.listen(ctx) })
		desks.Go(func() { s.run(ctx, flush, work) })
		desks.Go(func() { s.endExpired(ctx, flush) })
	}

	<-ctx.Done()
	over := time.AfterFunc(p.opts.Grace, abandon)
	defer over.Stop()
	cut := time.AfterFunc(p.opts.Grace-p.settleReserve(), func() { halt(errStopping) })
	defer cut.Stop()
	p.mu.Lock()
	p.stopping = true
	p.sched.Stop()
	p.mu.Unlock()
	listeners.Wait()
	for _, s := range p.shards {
		s.close() // no more trips than it takes to settle what is in flight
	}
	desks.Wait()
	halt(errStopping)
	close(p.quit)
	left := p.waitForWorkers(flush)
	p.attemptLog.flush()

	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangTimer.Stop()
	p.growTimer.Stop()
	if unsettled := p.sched.InFlight() + p.unsettled; left || unsettled > 0 {
		return fmt.Errorf("stop: %d attempts were not settled; they are repeated when their leases expire", unsettled)
	}
	return nil
}

// waitForWorkers waits for the workers, but not beyond the grace: true says that a deliverer did not heed the end of its context.
func (p *Pool) waitForWorkers(flush context.Context) bool {
	gone := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return false
	case <-flush.Done():
		return true
	}
}
