package pool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// Deliverer makes one attempt. It must return soon after ctx ends, with policy.ClassShutdown unless the attempt had
// ended before, and at the latest after the request's Timeout.
type Deliverer interface {
	Deliver(ctx context.Context, request job.Request) policy.Result
}

// Handler makes the attempts of one topic.
type Handler interface {
	Deliverer
	// IsFull reports whether the topic is left to other processes for now. Attempts of jobs that were claimed before
	// may end with policy.ClassLocalResources.
	IsFull() bool
}

// Policies provides complete policies of topics, and their credentials.
type Policies interface {
	// Topic returns a topic's current policy, complete.
	Topic(namespace, topic string) policy.Topic
	// Credentials returns the signer and the certificate of a topic's attempts. On an error some cannot be opened, and
	// the others are returned: then only lanes with secrets are attempted, if the certificate is not missing.
	Credentials(namespace, topic string) (job.Credentials, error)
	// Signer returns the signer of a lane with secrets.
	Signer(lane store.Lane) (job.Signer, error)
	// OpenHeader opens the sealed values of a header (job.Sealed) of a queue's job. After an error no attempt is made
	// that needs the header.
	OpenHeader(q job.Queue, name, sealed string) (job.HeaderSecret, error)
	// Refresh reloads policies that are some seconds old. It must return quickly.
	Refresh(ctx context.Context)
	// Sync reloads policies older than a revision of the store, and reports whether they are new enough. It must not
	// take longer than a second.
	Sync(ctx context.Context, revision int64) bool
}

// The defaults of Options.
const (
	DefaultWorkers  = capacity.MaxAttempts
	DefaultMaxBytes = capacity.MaxAttemptBytes
)

// Options configures a Pool.
type Options struct {
	Store store.Store
	// Deliverer makes the attempts of pushed jobs; nil: other processes make them.
	Deliverer Deliverer
	Policies  Policies
	// Workers is the number of attempts in flight in this process, all topics together; zero: DefaultWorkers.
	Workers int
	// MaxBytes bounds the bodies of the attempts in flight that are not sent yet, in bytes; zero: DefaultMaxBytes. A
	// single job beyond it always fits.
	MaxBytes int
	// Owner identifies the process in leases and attempts; empty: a new one.
	Owner store.LeaseOwner
	// Grace bounds the time that Run takes to end; zero: 30 s. The last 5 s (at most half) are reserved for releasing
	// and settling jobs.
	Grace     time.Duration
	Callbacks Callbacks // nil: no callbacks
	// Settled and HealthChanged are those of store.Exchange.
	Settled       func(*store.Settlement)
	HealthChanged func(context.Context, *store.HealthChange)
	// Observer is notified of each claimed job; may be nil.
	Observer Observer
	// Tracer makes the spans of attempts; nil: none are made.
	Tracer Tracer
	// Random returns the jitter of waits, in [0, 1); nil: math/rand/v2.
	Random func() float64
	Logger *slog.Logger // nil: slog.Default
}

// Pool attempts the due jobs of a store. It does nothing until Run.
type Pool struct {
	opts     Options
	log      *slog.Logger
	owner    store.LeaseOwner // of its claims
	recorder *Recorder
	shards   []*shardLoop
	// of topics that are delivered by functions; Handle replaces the map
	handlers    atomic.Pointer[map[sched.TopicName]Handler]
	groups      []string // that Run serves
	workers     sync.WaitGroup
	idle        chan *attempt // receives an attempt while a worker is idle
	quit        chan struct{} // closed to end idle workers
	hangTimer   *time.Timer   // until the oldest attempt hangs
	growTimer   *time.Timer   // runs while a shortage limits the attempts in flight
	fullTimer   *time.Timer   // runs while a Handler is full
	shortageLog logs.Limited
	breakerLog  logs.Limited

	mu           sync.Mutex
	scheduler    *sched.Scheduler
	hangTimerSet bool
	stopping     bool
	unsettled    int // attempts whose settlement was abandoned
}

// errStopping is the cause with which attempts are cancelled.
var errStopping = errors.New("the process is stopping")

// New returns a Pool. It panics without a store or policies.
func New(opts Options) *Pool {
	if opts.Store == nil || opts.Policies == nil {
		panic("pool: a store and policies are needed")
	}
	opts.Workers = cmp.Or(opts.Workers, DefaultWorkers)
	opts.MaxBytes = cmp.Or(opts.MaxBytes, DefaultMaxBytes)
	opts.Grace = cmp.Or(opts.Grace, 30*time.Second)
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	p := &Pool{
		opts: opts,
		log:  cmp.Or(opts.Logger, slog.Default()),
		quit: make(chan struct{}),
		idle: make(chan *attempt),

		owner: opts.Owner,
	}
	p.handlers.Store(&map[sched.TopicName]Handler{})
	if opts.Deliverer != nil {
		p.groups = []string{store.GroupPush}
	}
	if p.owner == "" {
		p.owner = store.NewLeaseOwner()
	}
	p.recorder = NewRecorder(ProcessName(p.owner), opts.Callbacks, opts.Observer, p.log)
	p.shortageLog = logs.Limited{Logger: p.log, Interval: 10 * time.Second}
	p.breakerLog = logs.Limited{Logger: p.log, Burst: maxWarnings}
	p.hangTimer = time.AfterFunc(sched.SlowAfter, p.markHanging)
	p.hangTimer.Stop()
	p.growTimer = time.AfterFunc(sched.GrowInterval, p.growLimit)
	p.growTimer.Stop()
	p.fullTimer = time.AfterFunc(fullInterval, p.wakeAll)
	p.fullTimer.Stop()
	shards := opts.Store.Shards()
	p.scheduler = sched.New(sched.Options{
		Shards: len(shards), Workers: opts.Workers, MaxBytes: opts.MaxBytes, Policy: p.topicPolicy,
		Deliver: p.deliver, IsFull: p.isFull, NewBreaker: newBreaker,
		Wake: func(shard int) { p.shards[shard].wake() },
	})
	for n, shard := range shards {
		p.shards = append(p.shards, newShardLoop(p, n, shard))
	}
	return p
}

// Handle has a topic's jobs delivered by a Handler, while its policy says policy.DeliverHandler, and never by that of
// Options. It is called before Run, by one goroutine at a time; other calls may go on meanwhile.
func (p *Pool) Handle(namespace, topic string, by Handler) {
	handlers := maps.Clone(*p.handlers.Load())
	handlers[sched.TopicName{Namespace: namespace, Name: topic}] = by
	p.handlers.Store(&handlers)
	p.groups = append(p.groups, store.GroupOf(namespace, topic, policy.DeliverHandler))
}

// Handles reports whether Handle was called for a topic.
func (p *Pool) Handles(namespace, topic string) bool {
	return p.handler(sched.TopicName{Namespace: namespace, Name: topic}) != nil
}

// handler returns the Handler of a topic; nil: none.
func (p *Pool) handler(t sched.TopicName) Handler { return (*p.handlers.Load())[t] }

// deliver returns how the pool delivers a topic. If that is not what its policy says, the store returns none of its
// jobs.
func (p *Pool) deliver(t sched.TopicName) policy.Deliver {
	if p.handler(t) != nil || p.opts.Deliverer == nil {
		return policy.DeliverHandler
	}
	return policy.DeliverPush
}

// fullInterval is how often it is looked whether a Handler is full still.
const fullInterval = time.Second

// isFull reports whether the Handler of a topic is full. The caller holds the pool's mutex.
func (p *Pool) isFull(t sched.TopicName) bool {
	h := p.handler(t)
	if h == nil || !h.IsFull() {
		return false
	}
	p.fullTimer.Reset(fullInterval)
	return true
}

// Process returns the name of the pool's process in attempts: the name of the host, a slash and the lease owner; at
// most MaxProcess bytes.
func (p *Pool) Process() string { return p.recorder.process }

// MaxProcess bounds the name of a process, in bytes.
const MaxProcess = 64

// ProcessName returns the name of a process that claims jobs as owner.
func ProcessName(owner store.LeaseOwner) string {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	return host[:min(len(host), MaxProcess-1-len(owner))] + "/" + string(owner)
}

func (p *Pool) topicPolicy(t sched.TopicName) policy.Topic {
	return p.opts.Policies.Topic(t.Namespace, t.Name)
}

// settleReserve returns the part of the grace reserved for releasing and settling.
func (p *Pool) settleReserve() time.Duration { return min(5*time.Second, p.opts.Grace/2) }

// Run works until ctx ends, then stops within the grace. An error reports the number of attempts that were not settled:
// their jobs are due again when their leases expire. Run may be called once.
func (p *Pool) Run(ctx context.Context) error {
	var listeners, loops sync.WaitGroup
	// Three contexts end one after the other: ctx (claimCtx in shardLoop) ends claims, workCtx attempts, flushCtx
	// settlements.
	lasting := context.WithoutCancel(ctx)
	workCtx, cancelWork := context.WithCancelCause(lasting)
	defer cancelWork(nil)
	flushCtx, cancelFlush := context.WithCancel(lasting)
	defer cancelFlush()
	for _, s := range p.shards {
		listeners.Go(func() { s.listen(ctx) })
		loops.Go(func() { s.run(ctx, workCtx, flushCtx) })
		loops.Go(func() { s.endExpired(ctx, flushCtx) })
	}

	<-ctx.Done()
	over := time.AfterFunc(p.opts.Grace, cancelFlush)
	defer over.Stop()
	cut := time.AfterFunc(p.opts.Grace-p.settleReserve(), func() { cancelWork(errStopping) })
	defer cut.Stop()
	p.mu.Lock()
	p.stopping = true
	p.scheduler.Stop()
	p.mu.Unlock()
	listeners.Wait()
	for _, s := range p.shards {
		s.close() // no more exchanges than needed to settle attempts in flight
	}
	loops.Wait()
	cancelWork(errStopping)
	close(p.quit)
	p.waitForWorkers(flushCtx)
	p.recorder.LogSuppressed()

	p.mu.Lock()
	defer p.mu.Unlock()
	p.hangTimer.Stop()
	p.growTimer.Stop()
	p.fullTimer.Stop()
	if unsettled := p.scheduler.InFlight() + p.unsettled; unsettled > 0 {
		return fmt.Errorf("stop: %d attempts were not settled; they are repeated when their leases expire", unsettled)
	}
	return nil
}

// waitForWorkers waits for the workers until ctx ends. A deliverer may ignore the end of its context.
func (p *Pool) waitForWorkers(ctx context.Context) {
	gone := make(chan struct{})
	go func() {
		p.workers.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}
