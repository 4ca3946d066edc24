package pull

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// Policies provides complete policies of topics.
type Policies interface {
	// Topic returns a topic's current policy, complete.
	Topic(namespace, topic string) policy.Topic
	// Update reloads policies that are seconds old, UpdateNow all.
	Update(ctx context.Context) error
	UpdateNow(ctx context.Context) error
	// Sync reloads policies older than a revision of the store, and reports whether they are new enough.
	Sync(ctx context.Context, revision int64) bool
	// Credentials returns what authenticates the attempts of a topic.
	Credentials(namespace, topic string) (job.Credentials, error)
	// OpenHeader opens the sealed values of a header (job.Sealed) of a queue's job.
	OpenHeader(q job.Queue, name, sealed string) (job.HeaderSecret, error)
	// Signer returns the signer of a lane with secrets.
	Signer(lane store.Lane) (job.Signer, error)
}

// Options configures a Puller.
type Options struct {
	Store    store.Store
	Policies Policies
	// Owner identifies the process in leases, Process in attempts.
	Owner     store.LeaseOwner
	Process   string
	Callbacks pool.Callbacks
	// Settled and HealthChanged are those of store.Exchange.
	Settled       func(*store.Settlement)
	HealthChanged func(context.Context, *store.HealthChange)
	// Observer is notified of each attempt that was settled; may be nil.
	Observer pool.Observer
	// Tracer makes the spans of attempts that were settled; nil: none are made.
	Tracer pool.Tracer
	// Random returns the jitter of waits, in [0, 1); nil: math/rand/v2.
	Random func() float64
	Logger *slog.Logger // nil: slog.Default
}

const (
	// maxBytes bounds the bodies of one answer. The first job always fits.
	maxBytes = 4 << 20
	// tryFor bounds the time of the repeats of a call to an unavailable store.
	tryFor = 5 * time.Second
	// shortestWait is the time that a wake-up needs: a client that does not wait gets what is there. lookTime bounds
	// how much longer it waits until all shards were looked at for its topic, each with a Wait of look.
	shortestWait = 50 * time.Millisecond
	lookTime     = 5 * time.Second
	look         = 10 * time.Millisecond
)

// A Puller leases and settles the jobs of pulled topics. It is safe for concurrent use.
type Puller struct {
	opts       Options
	log        *slog.Logger
	recorder   *pool.Recorder
	key        *leaseKey
	shards     []store.Shard
	exchanges  []store.Exchange // with them
	stopping   chan struct{}    // closed when Run's context ends
	background sync.WaitGroup   // calls that no client waits for
	clockAhead atomic.Int64     // by how much the store's clock was ahead of this process's at its last claim, in ns

	mu      sync.Mutex
	topics  map[topicName]*topic
	stopped bool
	changed chan struct{} // closed, and replaced, when a group joins those to wait for
}

// New returns a Puller.
func New(opts Options) *Puller {
	if opts.Random == nil {
		opts.Random = rand.Float64
	}
	p := &Puller{
		opts: opts, log: cmp.Or(opts.Logger, slog.Default()), shards: opts.Store.Shards(),
		stopping: make(chan struct{}), topics: make(map[topicName]*topic), changed: make(chan struct{}),
	}
	for n, shard := range p.shards {
		p.exchanges = append(p.exchanges, store.Exchange{
			Queue: shard, Shard: n, For: tryFor, Settled: opts.Settled, HealthChanged: opts.HealthChanged, Log: p.log,
		})
	}
	p.key = newLeaseKey(opts.Store, p.log)
	p.recorder = pool.NewRecorder(opts.Process, opts.Callbacks, opts.Observer, p.log)
	return p
}

// Run waits for wake-ups until ctx ends. Then waiting clients get no jobs, and other processes are notified of what
// this one has not claimed. Run may be called once.
func (p *Puller) Run(ctx context.Context) {
	var listeners sync.WaitGroup
	for n := range p.shards {
		listeners.Go(func() { p.listen(ctx, n) })
	}
	<-ctx.Done()
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	close(p.stopping)
	listeners.Wait()
	p.passOnAll()
	p.background.Wait()
}

// Clients returns the number of clients that wait for jobs.
func (p *Puller) Clients() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, t := range p.topics {
		n += len(t.clients)
	}
	return n
}

// Lease leases jobs to a client. It returns none when there are none until the request's Wait is over, or the process
// stops. Errors: *store.NotPulledError, store.ErrStopping, the cause of ctx, and those of package store.
func (p *Puller) Lease(ctx context.Context, request store.LeaseRequest) ([]store.LeasedJob, error) {
	if err := p.checkPulled(ctx, &request); err != nil {
		return nil, err
	}
	key, err := p.key.Get(ctx)
	if err != nil {
		return nil, err
	}
	c, err := p.enter(&request, key, false)
	if err != nil {
		return nil, err
	}
	defer p.leave(c)
	return p.await(ctx, c)
}

// checkPulled returns an error for a topic that is not pulled. Before that it looks at the store, since another process
// may have changed the topic just now.
func (p *Puller) checkPulled(ctx context.Context, request *store.LeaseRequest) error {
	for _, update := range []func(context.Context) error{p.opts.Policies.Update, p.opts.Policies.UpdateNow} {
		if err := update(ctx); err != nil {
			return fmt.Errorf("read topic policies: %w", err)
		}
		if p.opts.Policies.Topic(request.Namespace, request.Topic).Deliver == policy.DeliverPull {
			return nil
		}
	}
	return &store.NotPulledError{Topic: request.Topic}
}

// await claims jobs for a client as soon as there are some.
func (p *Puller) await(ctx context.Context, c *client) ([]store.LeasedJob, error) {
	timer := time.NewTimer(max(c.request.Wait, shortestWait))
	defer timer.Stop()
	late := false
	for ctx.Err() == nil {
		if picked := p.pick(c, -1, nil); picked != nil {
			jobs, err := p.claim(ctx, c, picked)
			if err != nil || len(jobs) > 0 {
				return jobs, err
			}
			select {
			case <-timer.C:
				return nil, nil
			default:
				continue
			}
		}
		if late && !p.waitsForLook(c) {
			return nil, nil
		}
		select {
		case <-c.wake:
		case <-timer.C:
			if late {
				return nil, nil
			}
			late = true
			timer.Reset(lookTime)
		case <-p.stopping:
			return nil, nil
		case <-ctx.Done():
		}
	}
	return nil, context.Cause(ctx)
}

// listen waits for wake-ups of a shard.
func (p *Puller) listen(ctx context.Context, n int) {
	var pause store.Backoff
	for ctx.Err() == nil {
		groups, fresh, changed := p.groups(n)
		if len(groups) == 0 {
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		options := store.WaitOptions{Groups: groups}
		if len(fresh) > 0 { // without those of busy topics, which may always come first
			options, changed = store.WaitOptions{Groups: fresh, Timeout: look}, nil
		}
		queues, err := p.wait(ctx, changed, n, options)
		p.markRunnable(n, queues)
		switch {
		case err == nil:
			if len(queues) > 0 && len(fresh) > 0 { // those of the other groups may follow
				fresh = groupsOf(queues)
			}
			p.markLookedAt(n, fresh)
			pause.Reset()
		case ctx.Err() != nil || isClosed(changed):
			pause.Reset()
		default:
			p.markLookedAt(n, fresh) // it has nothing for clients that do not wait
			p.log.Log(ctx, pause.Level(), "waiting for due queues of pulled topics failed, "+
				"retrying", "shard", n, "err", err)
			pause.Wait(ctx)
		}
	}
}

// groupsOf returns the groups of queues of pulled topics, sorted.
func groupsOf(queues []job.Queue) []string {
	groups := make([]string, len(queues))
	for i, q := range queues {
		groups[i] = store.GroupOf(q.Namespace, q.Topic, policy.DeliverPull)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// wait makes one Wait, until ctx ends or changed is closed.
func (p *Puller) wait(
	ctx context.Context, changed <-chan struct{}, n int, options store.WaitOptions,
) ([]job.Queue, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-changed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return p.shards[n].Wait(ctx, options)
}

// isClosed reports whether a channel is closed that nothing is sent to.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
