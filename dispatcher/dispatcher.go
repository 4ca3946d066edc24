package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/carrier"
	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/dispatcher/events"
	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/dispatcher/obstacles"
	"github.com/ringback/ringback/dispatcher/pull"
	"github.com/ringback/ringback/dispatcher/schedules"
	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/dispatcher/tenancy"
	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

// Options configures a Dispatcher.
type Options struct {
	Store store.Store
	// Deliverer makes the requests of attempts and callbacks. Nil: other processes make them, and this one calls the
	// functions of Handle.
	Deliverer pool.Deliverer
	// RegisterOnly leaves carrying and delivering to other processes on the same store. This process registers, changes
	// and counts jobs.
	RegisterOnly bool
	// OneProcess says that no other process uses the store. Then waits for the end of jobs cost fewer calls.
	OneProcess bool
	// Defaults completes the policies of topics, which are pushed unless they say otherwise; zero: policy.Builtin.
	Defaults policy.Topic
	// Declared rejects jobs of topics without a stored policy. Otherwise a topic is created by its first job.
	Declared bool
	// CheckURL returns an error for URLs that are refused at registration; nil: no check. Names that resolve to a
	// refused address are left to the deliverer.
	CheckURL func(rawURL string) error
	// Workers is the number of attempts in flight in this process, all topics together, from 1; zero: 2048.
	Workers int
	// MaxBytes bounds the bodies of attempts in flight, as in pool.Options.
	MaxBytes int
	// Owner identifies this process in leases and attempts; empty: a new one.
	Owner store.LeaseOwner
	// Registry is that of the main store's Dispatcher, if this is the Dispatcher of another store; nil: this is the
	// main store.
	Registry *tenancy.Registry
	// OtherStores are the names of the stores on which namespaces can be beside the main one.
	OtherStores []string
	// Grace bounds the time that Run takes to end; zero: 30 s.
	Grace time.Duration
	// Seal encrypts stored secrets; nil: they are stored as plain text.
	Seal *seal.Box
	// Observer, if set, is notified of each claimed job.
	Observer pool.Observer
	// Tracer, if set, makes spans of registrations and attempts, whose traces jobs carry in their headers: tracing.New.
	Tracer Tracer
	// ObserveWork, if set, is called with the jobs that a step of bulk work has treated.
	ObserveWork func(action store.WorkAction, done, failed, skipped int64)
	// ObserveTicks, if set, is called with the ticks that a step of a schedule has treated.
	ObserveTicks func(outcome store.TickOutcome, ticks int64)
	// ObserveEvent, if set, is called with the number of an event's jobs when its lanes have got them, and with that of
	// the lanes whose job was refused.
	ObserveEvent func(namespace, topic string, jobs int64, refused int)
	// Random returns the jitter of waits, in [0, 1); nil: math/rand/v2.
	Random func() float64
	Logger *slog.Logger // nil: slog.Default
}

// Dispatcher registers jobs and delivers them.
type Dispatcher struct {
	opts        Options
	log         *slog.Logger
	healthLog   logs.Limited
	healthLines chan healthLine
	store       *reportingStore
	live        *livetail.Hub
	ends        *endWaiters
	sealer      *secrets.Sealer
	policies    *documents.Policies
	carrier     *carrier.Carrier // nil with RegisterOnly, as pool
	pool        *pool.Pool
	internal    *internaljobs.Runner
	puller      *pull.Puller
	handled     []string   // the topics of Handle
	handling    sync.Mutex // makes calls of Handle follow one another
	state       atomic.Int32
	quotas      *namespaceQuotas
	closing     sync.Once
	quit        chan struct{} // closed by Close
	ended       chan struct{} // closed when Run has ended, or never will begin
	schedules   *schedules.Service
	events      *events.Service
	eventsKept  sync.Map // namespaces whose events have a retention

	// Registry has the tokens and the namespaces.
	*tenancy.Registry
	// Finder tells what jobs wait for, and finds lanes that hold jobs back.
	*obstacles.Finder
}

// The states of a Dispatcher's Run.
const (
	idle int32 = iota
	running
	stopping // for good
)

// New returns a Dispatcher.
func New(opts Options) (*Dispatcher, error) {
	if opts.Store == nil {
		return nil, errors.New("a dispatcher needs a store")
	}
	if opts.Workers < 0 || opts.MaxBytes < 0 || opts.Grace < 0 {
		return nil, errors.New("a dispatcher's workers, bytes and grace are not negative")
	}
	opts.Defaults = opts.Defaults.WithDefaults(policy.Builtin())
	if !opts.Defaults.Deliver.Pushes() {
		return nil,
			errors.New("a dispatcher's defaults are of topics that are pushed: set Deliver in the policies of others")
	}
	if opts.Seal == nil {
		opts.Seal = seal.New()
	}
	log := cmp.Or(opts.Logger, slog.Default())
	d := &Dispatcher{
		opts: opts,
		log:  log,
		live: livetail.New(opts.Store, log),

		healthLog:   logs.Limited{Logger: log, Burst: maxHealthLines},
		healthLines: make(chan healthLine, maxHealthLines),

		ends: newEndWaiters(opts.Store, opts.OneProcess, log),

		quit:  make(chan struct{}),
		ended: make(chan struct{}),
	}
	d.store = &reportingStore{router.New(opts.Store), d.jobChanged}
	if d.Registry = opts.Registry; d.Registry == nil {
		d.Registry = tenancy.New(opts.Store, d.log, opts.OtherStores...)
	}
	d.quotas = newQuotas(d.store.Router, d.QuotaOf, d.countSettings)
	d.sealer = secrets.New(opts.Seal, d.log)
	d.policies = documents.NewPolicies(documents.PolicyOptions{
		Settings: opts.Store, Defaults: opts.Defaults, OpenCredentials: d.sealer.Credentials,
		Logger: d.log,
	})
	d.puller = d.newPuller()
	d.schedules = d.newSchedules()
	d.events = d.newEvents()
	finding := obstacles.Options{Store: d.store.Router, Policies: d.policies, Sealer: d.sealer, Logger: d.log}
	if opts.RegisterOnly {
		finding.NoKey = !opts.Seal.Encrypts()
		d.Finder = obstacles.New(finding)
		return d, nil
	}
	d.carrier = carrier.New(d.store.Router, d.log)
	d.pool = pool.New(pool.Options{
		Store: opts.Store, Deliverer: opts.Deliverer,
		Policies: poolPolicies{d.policies, d.sealer}, Workers: opts.Workers,
		MaxBytes: opts.MaxBytes, Owner: opts.Owner, Grace: opts.Grace, Random: opts.Random, Logger: d.log,
		Callbacks: d.notifyEnd, Settled: d.settled, HealthChanged: d.logHealth,
		Observer: liveObserver{opts.Observer, d.live},
		Tracer:   d.poolTracer(),
	})
	d.internal = d.newRunner()
	finding.Pool = d.pool
	d.Finder = obstacles.New(finding)
	return d, nil
}

// Run carries and delivers until ctx ends or Close is called, then stops within the grace: it stops claiming, lets
// attempts in flight end, releases the rest, and settles all. With RegisterOnly it only waits. The store stays open.
// Run may be called once.
func (d *Dispatcher) Run(ctx context.Context) error {
	if d.opts.Deliverer == nil && len(d.handled) == 0 && !d.opts.RegisterOnly {
		return errors.New("a dispatcher needs a deliverer or a handler, unless it only registers")
	}
	if !d.state.CompareAndSwap(idle, running) {
		return errors.New("a dispatcher runs once")
	}
	defer close(d.ended)
	defer d.state.Store(stopping)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	unready := context.AfterFunc(ctx, func() { d.state.Store(stopping) })
	defer unready()
	defer d.runLive(ctx)()
	var carrying sync.WaitGroup
	carrying.Go(func() {
		select {
		case <-d.quit:
			cancel()
		case <-ctx.Done():
		}
	})
	carrying.Go(func() { d.ends.Run(ctx) })
	if d.opts.Registry == nil {
		carrying.Go(func() { d.Registry.Run(ctx) })
	}
	carrying.Go(func() { d.puller.Run(ctx) })
	carrying.Go(func() { d.runHealthLog(ctx) })
	if d.opts.RegisterOnly {
		<-ctx.Done()
		carrying.Wait()
		return nil
	}
	carrying.Go(func() { d.carrier.Run(ctx) })
	carrying.Go(func() { d.monitorBacklogs(ctx) })
	carrying.Go(func() { d.internal.Run(ctx) })
	carrying.Go(func() { d.schedules.Run(ctx) })
	var err error
	if d.policies.LoadFirst(ctx) {
		carrying.Go(func() { d.resealAll(ctx) })
		if len(d.handled) > 0 {
			d.setHandledFirst(ctx)
			carrying.Go(func() { d.keepHandled(ctx) })
		}
		err = d.pool.Run(ctx)
	}
	carrying.Wait()
	if err != nil {
		return fmt.Errorf("stop delivering: %w", err)
	}
	return nil
}

// poolPolicies implements pool.Policies.
type poolPolicies struct {
	*documents.Policies
	sealer *secrets.Sealer
}

// Topic returns a topic's policy with defaults applied.
func (t poolPolicies) Topic(namespace, name string) policy.Topic {
	return t.Get(namespace, name).Resolved
}

// Credentials returns a topic's signer and client certificate.
func (t poolPolicies) Credentials(namespace, name string) (job.Credentials, error) {
	if c := t.Get(namespace, name).Credentials; c != nil {
		return c.Credentials, c.Err
	}
	return job.Credentials{}, nil
}

// Signer returns the signer of a lane with secrets.
func (t poolPolicies) Signer(lane store.Lane) (job.Signer, error) {
	return t.sealer.LaneSigner(lane)
}

// OpenHeader opens a sealed header.
func (t poolPolicies) OpenHeader(q job.Queue, name, sealed string) (job.HeaderSecret, error) {
	return t.sealer.OpenForAttempt(q, name, sealed)
}

// Process returns the name of this process in attempts (pool.Pool.Process); empty if it does not deliver.
func (d *Dispatcher) Process() string {
	if d.pool == nil {
		return ""
	}
	return d.pool.Process()
}

// State returns the pool's state; zero if this process does not deliver.
func (d *Dispatcher) State() pool.State {
	if d.pool == nil {
		return pool.State{}
	}
	return d.pool.State()
}

// Errors of Ready, in addition to those of the store.
var (
	// ErrNotStarted: Run has not been called.
	ErrNotStarted = errors.New("the dispatcher is not running yet")
	// ErrStopping: Run's context has ended. Attempts in flight may finish; no others start.
	ErrStopping = errors.New("shutting down")
)

// Ready returns nil if this Dispatcher registers and (unless RegisterOnly) delivers jobs, else the reason. It is not
// ready once Run's context has ended; other calls still work.
func (d *Dispatcher) Ready(ctx context.Context) error {
	switch d.state.Load() {
	case running:
		return d.opts.Store.Ping(ctx)
	case stopping:
		return ErrStopping
	default:
		return ErrNotStarted
	}
}

// Readiness returns that of the one store: the error of Ready.
func (d *Dispatcher) Readiness(ctx context.Context) []store.Readiness {
	return []store.Readiness{{Store: job.MainStore, Err: d.Ready(ctx)}}
}
