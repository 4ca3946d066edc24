package internaljobs

import (
	"cmp"
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Handler makes one step of a job. It must return soon after ctx ends. Steps should take at most 2 s, so that other
// jobs get their turn; ctx ends after StepTimeout.
type Handler func(ctx context.Context, j *store.ClaimedJob) (Step, error)

// Step is the result of a step.
type Step struct {
	// Done ends the job. Otherwise it is due again after Wait.
	Done bool
	Wait time.Duration
	// Body replaces the job's body; nil: unchanged.
	Body []byte
	// Outbox lists jobs to create.
	Outbox []store.NewJob
}

const (
	// StepTimeout bounds one step.
	StepTimeout = 10 * time.Second
	// atOnceTime is the time after which no more steps are made of jobs that were claimed at once.
	atOnceTime = 2 * time.Second
	// atOnceJobs and atOnceBytes are how many jobs, and bytes of bodies, are written with one settlement of several
	// jobs; the last step may exceed them.
	atOnceJobs, atOnceBytes = 1000, 4 << 20
)

// Options configures a Runner.
type Options struct {
	Store    store.Store
	Handlers map[string]Handler // by topic
	// AtOnce is how many jobs of a queue are claimed and settled in one call, by topic; none: one.
	AtOnce map[string]int
	// Workers is the number of steps in progress, from 1; zero: that of capacity.InternalSteps.
	Workers int
	// Grace bounds the time that Run takes to end; zero: 30 s. Steps are cancelled after half of it.
	Grace  time.Duration
	Logger *slog.Logger // nil: slog.Default
}

// Runner runs the internal jobs of a store. It does nothing until Run.
type Runner struct {
	opts    Options
	log     *slog.Logger
	owner   store.LeaseOwner    // of its claims
	workers *capacity.Semaphore // of steps in progress

	mu     sync.Mutex
	queues map[job.Queue]*queueLoop // that run
	failed map[job.Ref]*failures    // of jobs whose last step failed here
	loops  sync.WaitGroup
}

// failures are those of one job.
type failures struct {
	store.Backoff
	last time.Time
}

// maxFailed bounds the jobs whose failures are counted. Beyond it the one whose last failure is the oldest is
// forgotten: it may have ended in another process.
const maxFailed = 1000

// New returns a Runner.
func New(opts Options) *Runner {
	opts.Grace = cmp.Or(opts.Grace, 30*time.Second)
	return &Runner{
		opts: opts, log: cmp.Or(opts.Logger, slog.Default()), owner: store.NewLeaseOwner(),
		workers: capacity.InternalSteps.Semaphore(opts.Workers),
		queues:  make(map[job.Queue]*queueLoop), failed: make(map[job.Ref]*failures),
	}
}

// Run runs jobs until ctx ends, then lets the steps in progress end within the grace. Run may be called once.
func (r *Runner) Run(ctx context.Context) {
	// Three contexts end one after the other: ctx ends claims, stepCtx steps, settleCtx settlements.
	lasting := context.WithoutCancel(ctx)
	stepCtx, cancelSteps := context.WithCancel(lasting)
	defer cancelSteps()
	settleCtx, cancelSettlements := context.WithCancel(lasting)
	defer cancelSettlements()
	var listeners sync.WaitGroup
	for n, shard := range r.opts.Store.Shards() {
		listeners.Go(func() {
			r.listen(ctx, shard, func(queue job.Queue) {
				r.start(ctx, stepCtx, settleCtx, &queueLoop{r: r, queue: queue, store: shard, shard: n})
			})
		})
	}
	<-ctx.Done()
	defer time.AfterFunc(r.opts.Grace/2, cancelSteps).Stop()
	defer time.AfterFunc(r.opts.Grace, cancelSettlements).Stop()
	listeners.Wait()
	r.loops.Wait()
}

// listen calls start for each queue of a shard that is notified, until ctx ends.
func (r *Runner) listen(ctx context.Context, shard store.Queue, start func(job.Queue)) {
	var pause store.Backoff
	for ctx.Err() == nil {
		queues, err := shard.Wait(ctx, store.WaitOptions{Groups: []string{store.GroupInternal}})
		for _, queue := range queues {
			start(queue)
		}
		switch {
		case err == nil:
			pause.Reset()
		case ctx.Err() == nil:
			r.log.Log(ctx, pause.Level(), "waiting for due internal jobs failed, retrying", "err", err)
			pause.Wait(ctx)
		}
	}
}

// start runs a queue's loop, or makes the one that runs look again.
func (r *Runner) start(claimCtx, stepCtx, settleCtx context.Context, l *queueLoop) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if running := r.queues[l.queue]; running != nil {
		running.notified = true
		return
	}
	r.queues[l.queue] = l
	r.loops.Go(func() { l.run(claimCtx, stepCtx, settleCtx) })
}

// ended removes a queue's loop, unless the queue was notified since it last looked.
func (r *Runner) ended(claimCtx context.Context, l *queueLoop) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l.notified && claimCtx.Err() == nil {
		l.notified = false
		return false
	}
	delete(r.queues, l.queue)
	return true
}

// pauseAfter returns the pause after a failed step of a job, and the level at which to log it.
func (r *Runner) pauseAfter(ref job.Ref) (time.Duration, slog.Level) {
	r.mu.Lock()
	defer r.mu.Unlock()
	f := r.failed[ref]
	if f == nil {
		if len(r.failed) >= maxFailed {
			r.forgetOldest()
		}
		f = new(failures)
		r.failed[ref] = f
	}
	f.last = time.Now()
	level := f.Level()
	return f.Next(), level
}

// forgetOldest forgets the job whose last failure is the oldest.
func (r *Runner) forgetOldest() {
	var oldest job.Ref
	var at time.Time
	for ref, f := range r.failed {
		if at.IsZero() || f.last.Before(at) {
			oldest, at = ref, f.last
		}
	}
	delete(r.failed, oldest)
}

// succeeded forgets the failures of a job.
func (r *Runner) succeeded(ref job.Ref) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.failed, ref)
}
