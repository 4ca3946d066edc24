package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A process is one life of a dispatcher, with its consumer.
type process struct {
	*dispatcher.Dispatcher
	w    *world
	name string
	// life ends when the process dies: from then on nothing that it does has an effect.
	life context.Context
	die  context.CancelFunc
	// stop ends the process in order, and done is closed when it has ended.
	stop context.CancelFunc
	done chan struct{}

	// carrying is what its carrier does, by shard.
	carrying []*carrying

	mu        sync.Mutex
	awake     chan struct{}     // closed when it goes on; nil: it does not sleep
	cutOff    map[int]time.Time // until then its calls of a shard fail
	isDoomed  bool              // it dies in one of its next calls
	isStopped bool
	disturbed time.Time // when something last happened to it
	heldUp    time.Time // when something did that takes time
	counts    map[string]int
	second    int64 // since the beginning, of counts
}

// documents stand for a shard in the calls for documents that apply to all shards, and allShards for the store as a
// whole.
const (
	documents = -1
	allShards = -2
)

// carrying is what the carrier of a shard does, which makes one call at a time. After one that fails it expires no
// lease until store.LeaseMargin after the next that succeeds.
type carrying struct {
	hasFailed bool
	until     time.Time
}

func (c *carrying) failed() { c.hasFailed = true }

// keepsLeases reports whether a round that succeeds now expires no leases.
func (c *carrying) keepsLeases() bool {
	if c.hasFailed {
		c.hasFailed, c.until = false, time.Now().Add(store.LeaseMargin)
	}
	return time.Now().Before(c.until)
}

var errDead = errors.New("the process is dead")

// start starts a process.
func (w *world) start(name string) { w.processes[name] = w.launch(name, false) }

// launch starts a process; isAPI: it carries and delivers nothing.
func (w *world) launch(name string, isAPI bool) *process {
	w.lives++
	p := &process{w: w, name: fmt.Sprint(name, ".", w.lives)}
	p.done, p.cutOff = make(chan struct{}), make(map[int]time.Time)
	for range w.store.Shards() {
		p.carrying = append(p.carrying, new(carrying))
	}
	p.life, p.die = context.WithCancel(context.Background())
	ctx, stop := context.WithCancel(context.Background())
	p.stop = stop
	var err error
	p.Dispatcher, err = dispatcher.New(dispatcher.Options{
		RegisterOnly: isAPI, Store: gate{w.store, p}, Deliverer: receiver{p}, Workers: 12,
		Grace: 6 * time.Second, Defaults: defaults,
		Logger: slog.New(slog.DiscardHandler),
		Random: func() float64 { return w.draws.of("jitter", p.name, w.millis()).Float64() },
	})
	if err != nil {
		panic(err)
	}
	if !isAPI {
		p.Handle(topicHandled, p.handle)
	}
	w.story.add("%s starts", p.name)
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			w.story.add("%s: %v", p.name, err)
		}
	})
	if !isAPI {
		running.Go(func() { p.consume(ctx) })
	}
	w.all.Go(func() {
		running.Wait()
		w.story.add("%s has ended", p.name)
		close(p.done)
	})
	return p
}

// kill ends a process at once.
func (p *process) kill() {
	if p.life.Err() != nil {
		return
	}
	p.w.story.add("%s dies", p.name)
	p.die()
	p.wake()
	p.stop()
}

// stopInOrder lets a process end what it does.
func (p *process) stopInOrder() {
	p.w.story.add("%s stops", p.name)
	p.mu.Lock()
	p.isStopped = true
	p.mu.Unlock()
	p.stop()
}

// doom lets a process die in one of its next calls, or soon.
func (p *process) doom() {
	p.w.story.add("%s is doomed", p.name)
	p.mu.Lock()
	p.isDoomed = true
	p.mu.Unlock()
	p.w.late.Go(func() {
		time.Sleep(5 * time.Second)
		p.kill()
	})
}

// disturb notes that something happens to a process, which may take time.
func (p *process) disturb(takesTime bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disturbed = time.Now()
	if takesTime {
		p.heldUp = p.disturbed
	}
}

// isCalmSince reports whether nothing has happened to a process since a time, but that it was stopped.
func (p *process) isCalmSince(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life.Err() == nil && p.awake == nil && p.disturbed.Before(at)
}

// isFastSince is isCalmSince, but that calls may have failed that it could repeat at once, while it was not stopped.
func (p *process) isFastSince(at time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.heldUp
	if p.isStopped {
		last = p.disturbed
	}
	return p.life.Err() == nil && p.awake == nil && last.Before(at)
}

// sleep stops a process until wake: its calls and the answers of its receivers wait.
func (p *process) sleep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake == nil {
		p.awake = make(chan struct{})
	}
}

func (p *process) wake() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.awake != nil {
		close(p.awake)
		p.awake, p.disturbed, p.heldUp = nil, time.Now(), time.Now()
	}
}

// cut makes all calls of a shard, of documents, or of all shards fail for a time.
func (p *process) cut(shard int, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cutOff[shard] = time.Now().Add(d)
}

// mend lets all calls succeed again.
func (p *process) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.cutOff)
}

// enter waits until the process is awake, and returns an error if it is dead or cut off.
func (p *process) enter(ctx context.Context, shard int) error {
	p.mu.Lock()
	now := time.Now()
	isCut := now.Before(p.cutOff[shard]) || now.Before(p.cutOff[allShards])
	if isCut {
		p.disturbed, p.heldUp = now, now
	}
	p.mu.Unlock()
	if err := p.untilAwake(); err != nil {
		return err
	}
	if isCut {
		return unavailable("cut off")
	}
	if ctx.Err() != nil {
		return fmt.Errorf("simulated call: %w", context.Cause(ctx))
	}
	return nil
}

// untilAwake waits while the process sleeps.
func (p *process) untilAwake() error {
	p.mu.Lock()
	awake := p.awake
	p.mu.Unlock()
	if awake != nil {
		select {
		case <-awake:
		case <-p.life.Done():
		}
	}
	if p.life.Err() != nil {
		return errDead
	}
	return nil
}

// wait waits, and longer if the process sleeps then.
func (p *process) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if err := p.untilAwake(); err != nil || ctx.Err() == nil {
			return err
		}
		return fmt.Errorf("simulated call: %w", context.Cause(ctx))
	case <-ctx.Done():
		return fmt.Errorf("simulated call: %w", context.Cause(ctx))
	case <-p.life.Done():
		return errDead
	}
}

// draw returns the fault of a call at this instant.
func (p *process) draw(shard int, method string) fault {
	c := p.w.climate.Load()
	p.mu.Lock()
	if *c == (climate{}) && !p.isDoomed {
		p.mu.Unlock()
		return fault{}
	}
	// By seconds: backoffs have a jitter that no seed decides, so the milliseconds of retries differ.
	second := p.w.millis() / 1000
	if second != p.second {
		p.second = second
		clear(p.counts)
	}
	if p.counts == nil {
		p.counts = make(map[string]int)
	}
	key := fmt.Sprint(method, shard)
	p.counts[key]++
	n, isDoomed := p.counts[key], p.isDoomed
	p.mu.Unlock()
	r := p.w.draws.of("call", p.name, key, n, second)
	f := c.draw(r)
	if isDoomed {
		f.dies = r.IntN(20) == 0
		f.died = r.IntN(8) == 0
	}
	return f
}

// receiver makes the attempts of a process: to receivers that fail, hang and answer late.
type receiver struct{ p *process }

func (r receiver) Deliver(ctx context.Context, request job.Request) policy.Result {
	w, began := r.p.w, time.Now()
	if r.p.life.Err() != nil {
		return policy.Result{Class: policy.ClassShutdown, StartedAt: began}
	}
	w.ledger.started(r.p, request.Ref, request.Attempt, request.Body, request.Timeout)
	result := w.answer(&request)
	result.StartedAt = began
	took := result.Duration
	if took >= request.Timeout {
		took = request.Timeout
		result = policy.Result{Class: policy.ClassTimeoutHeaders, Error: "no answer", StartedAt: began}
	}
	if err := r.p.wait(ctx, took); err != nil {
		result = policy.Result{Class: policy.ClassShutdown, Error: err.Error(), StartedAt: began}
	}
	result.Duration = time.Since(began)
	w.ledger.answered(r.p, request.Ref, request.Attempt, result)
	return result
}

// handle is the function of the handled topic.
func (p *process) handle(ctx context.Context, j *dispatcher.Job) error {
	ref := job.Ref{Namespace: j.Namespace, ID: j.ID}
	until, _ := ctx.Deadline()
	p.w.ledger.started(p, ref, j.Attempt, j.Body, time.Until(until))
	r := p.w.draws.of("handle", j.ID, j.Attempt)
	result := policy.Result{Class: policy.ClassConsumer}
	defer func() { p.w.ledger.answered(p, ref, j.Attempt, result) }()
	if isProbe(j.ID) {
		result = policy.Result{Accepted: true}
		return nil
	}
	if err := p.wait(ctx, time.Duration(r.IntN(8000))*time.Millisecond); err != nil {
		return err
	}
	switch x := r.IntN(10); {
	case x < 6:
		result = policy.Result{Accepted: true}
		return nil
	case x < 7:
		result.RetryAfter = 2 * time.Second
		return dispatcher.Retry(result.RetryAfter)
	case x < 8:
		result.NonRetryable = true
		return dispatcher.Dead("refused")
	case x < 9:
		panic("a handler panics")
	default:
		return errors.New("not now")
	}
}

// consume leases jobs of the pulled topics and reports what became of them.
func (p *process) consume(ctx context.Context) {
	for n := 0; ctx.Err() == nil; n++ {
		r := p.w.draws.of("consumer", p.name, n)
		leased, err := p.Lease(ctx, store.LeaseRequest{
			Namespace: job.DefaultNamespace, Topic: one(r, topicPulled, topicPulled, topicSwitched), Max: 1 + r.IntN(4),
			Wait: time.Duration(2+r.IntN(9)) * time.Second, Lease: one(r, 0, 3*time.Second),
		})
		if err != nil {
			if p.wait(ctx, time.Second) != nil {
				return
			}
			continue
		}
		for i := range leased {
			p.w.late.Go(func() { p.treat(ctx, &leased[i]) })
		}
	}
}

// treat ends one lease, mostly.
func (p *process) treat(ctx context.Context, leased *store.LeasedJob) {
	r := p.w.draws.of("treat", leased.ID, p.w.ledger.leased(p, leased))
	if p.wait(ctx, time.Duration(r.IntN(4000))*time.Millisecond) != nil {
		return
	}
	report := store.LeaseReport{Lease: leased.ClientLease, Result: one(r,
		store.LeaseDone, store.LeaseDone, store.LeaseRetry, store.LeaseDead, store.LeaseRelease, store.LeaseExtend, 0)}
	if isProbe(leased.ID) {
		report.Result = store.LeaseDone
	}
	if report.Result == 0 {
		return // it forgets the job
	}
	if report.Result == store.LeaseExtend {
		report.For = 5 * time.Second
		_, _, _ = p.SettleLeases(ctx, job.DefaultNamespace, []store.LeaseReport{report}, nil)
		if p.wait(ctx, time.Duration(r.IntN(7000))*time.Millisecond) != nil {
			return
		}
		report.For, report.Result = 0, store.LeaseDone
	}
	result := policy.Result{
		Class: policy.ClassConsumer, Accepted: report.Result == store.LeaseDone,
		NonRetryable: report.Result == store.LeaseDead,
	}
	if report.Result != store.LeaseRelease {
		p.w.ledger.answered(p, leased.Ref(), leased.Attempts+1, result)
	}
	for range 1 + r.IntN(2) { // some report twice
		errs, _, err := p.SettleLeases(ctx, job.DefaultNamespace, []store.LeaseReport{report}, nil)
		if err == nil && errs[0] == nil && p.life.Err() == nil && report.Result == store.LeaseDone {
			p.w.ledger.confirmed(leased.Ref(), leased.Generation)
		}
	}
}
