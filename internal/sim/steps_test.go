package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A step is something that happens at an instant of a run.
type step struct {
	name   string
	weight int
	do     func(w *world, r *rand.Rand)
}

var steps = []step{
	{"register", 12, (*world).register},
	{"edit", 3, (*world).edit},
	{"cancel", 3, (*world).cancel},
	{"run", 2, (*world).runNow},
	{"revive", 2, (*world).revive},
	{"bulk work", 3, (*world).work},
	{"change settings", 4, (*world).change},
	{"kill", 2, (*world).killOne},
	{"stop", 1, (*world).stopOne},
	{"kill all", 1, (*world).killAll},
	{"sleep", 2, (*world).sleepOne},
	{"cut off", 2, (*world).cutOne},
	{"outage", 1, (*world).outage},
	{"weather", 3, (*world).weather},
	{"clock", 1, (*world).stepClock},
}

func pick(r *rand.Rand) step {
	sum := 0
	for _, s := range steps {
		sum += s.weight
	}
	n := r.IntN(sum)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			return s
		}
	}
	panic("unreachable")
}

// client makes a call of a client to one of the processes, at most so often until it succeeds or is refused.
func (w *world) client(r *rand.Rand, tries int, do func(context.Context, *process) error) {
	chosen := make([]string, tries)
	for i := range chosen {
		chosen[i] = one(r, names...)
	}
	alive := make([]*process, 0, tries)
	for _, name := range chosen {
		if p := w.processes[name]; p != nil && p.life.Err() == nil {
			alive = append(alive, p)
		}
	}
	w.clients.Go(func() {
		for _, p := range alive {
			ctx, cancel := context.WithTimeout(p.life, 15*time.Second)
			err := do(ctx, p)
			cancel()
			if err == nil || !errors.Is(err, store.ErrUnavailable) && ctx.Err() == nil {
				return
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// register registers jobs, again with the same ids until it is answered.
func (w *world) register(r *rand.Rand) {
	jobs := make([]job.New, 1+r.IntN(6))
	topic := one(r, topics...)
	for i := range jobs {
		n := &jobs[i]
		n.ID = fmt.Sprint("j", len(w.jobs))
		n.Queue = job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: one(r, "a", "b", "c")}
		n.Body, n.BodyKind = fmt.Append(nil, n.ID, "-", 0), job.BodyText
		n.Delay = one(r, 0, 0, time.Duration(r.IntN(40_000))*time.Millisecond)
		if pushes(topic) {
			n.URL = "https://receiver.example/" + n.Lane
		}
		if r.IntN(3) == 0 {
			n.Retries = new(r.IntN(3))
		}
		if r.IntN(6) == 0 {
			n.ExpiresIn = n.Delay + time.Duration(1+r.IntN(30))*time.Second
		}
		if r.IntN(3) == 0 {
			n.OnDelivered = &policy.Callback{URL: "https://callbacks.example/"}
		}
		if r.IntN(2) == 0 {
			n.OnDead = &policy.Callback{URL: "https://callbacks.example/"}
		}
		w.jobs = append(w.jobs, n.Ref())
	}
	w.client(r, 6, func(ctx context.Context, p *process) error {
		var failed error
		for i, result := range p.Register(ctx, jobs) {
			if result.Err == nil {
				w.ledger.told(jobs[i].Ref())
			} else {
				failed = result.Err
			}
		}
		return failed
	})
}

// someJob returns a job that was registered, mostly a late one.
func (w *world) someJob(r *rand.Rand) (job.Ref, bool) {
	if len(w.jobs) == 0 {
		return job.Ref{}, false
	}
	return w.jobs[len(w.jobs)-1-r.IntN(min(len(w.jobs), 30))], true
}

func (w *world) edit(r *rand.Rand) {
	ref, ok := w.someJob(r)
	if !ok {
		return
	}
	edit := job.Edit{Fields: []string{"body"}, Spec: job.Spec{Body: fmt.Append(nil, ref.ID, "-", 1+r.IntN(100)), BodyKind: job.BodyText}}
	if r.IntN(2) == 0 {
		edit.Due = &job.TimeOrDelay{In: time.Duration(r.IntN(20)) * time.Second}
	}
	w.client(r, 1, func(ctx context.Context, p *process) error {
		_, err := p.Edit(ctx, ref, edit)
		return err
	})
}

func (w *world) cancel(r *rand.Rand) {
	ref, ok := w.someJob(r)
	if !ok {
		return
	}
	w.client(r, 2, func(ctx context.Context, p *process) error {
		_, err := p.Cancel(ctx, ref, store.Cancellation{})
		return err
	})
}

func (w *world) runNow(r *rand.Rand) {
	if ref, ok := w.someJob(r); ok {
		w.client(r, 2, func(ctx context.Context, p *process) error {
			_, err := p.RunNow(ctx, ref, 0, "")
			return err
		})
	}
}

func (w *world) revive(r *rand.Rand) {
	if ref, ok := w.someJob(r); ok {
		w.client(r, 2, func(ctx context.Context, p *process) error {
			_, err := p.Revive(ctx, store.Revival{Ref: ref, Delay: one(r, 0, 3*time.Second)})
			return err
		})
	}
}

// work starts bulk work on the jobs of a topic.
func (w *world) work(r *rand.Rand) {
	order := store.WorkOrder{
		Action: one(r, store.WorkRevive, store.WorkRevive, store.WorkCancel, store.WorkRun, store.WorkPurge),
		Filter: store.Filter{Namespace: job.DefaultNamespace, Topic: one(r, topics...)},
		Actor:  fmt.Sprint("work-", len(w.jobs), "-", r.IntN(1000)),
	}
	_, order.Filter.States = order.Action.States()
	if order.Action == store.WorkRevive {
		order.Filter.States = one(r, order.Filter.States, []job.State{job.Dead, job.Delivered})
		order.Rate = one(r, policy.Rate{}, policy.Rate{Starts: 2, Per: time.Second})
	}
	if order.Action == store.WorkCancel {
		order.Filter.Lane = one(r, "a", "b")
	}
	w.client(r, 1, func(ctx context.Context, p *process) error {
		made, err := p.StartWork(ctx, job.DefaultNamespace, order)
		if err == nil {
			w.ledger.mu.Lock()
			w.works[made.ID] = order.Action
			w.ledger.mu.Unlock()
		}
		return err
	})
}

// change changes settings that the ledger does not judge by: it pauses, and changes concurrency and workers.
func (w *world) change(r *rand.Rand) {
	topic, lane := one(r, topics...), one(r, "b", "c")
	paused, workers := r.IntN(3) == 0, 1+r.IntN(8)
	if r.IntN(2) == 0 {
		w.client(r, 1, func(ctx context.Context, p *process) error {
			_, err := p.ChangeTopic(ctx, job.DefaultNamespace, topic, 0, func(t *policy.Topic) error {
				t.Paused, t.Workers = paused, workers
				return nil
			})
			return err
		})
		return
	}
	w.client(r, 1, func(ctx context.Context, p *process) error {
		_, err := p.ChangeLane(ctx, job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}, 0, func(l *policy.Lane) error {
			l.LaneConcurrency = workers
			return nil
		})
		return err
	})
}

// later starts a process anew after a time, unless another life of it has begun.
func (w *world) later(r *rand.Rand, name string) {
	w.restarts[name] = time.Now().Add(time.Duration(r.IntN(20_000)) * time.Millisecond)
}

func (w *world) killOne(r *rand.Rand) {
	name := one(r, names...)
	if p := w.processes[name]; p != nil {
		p.kill()
		delete(w.processes, name)
		w.later(r, name)
	}
}

// killAll ends all processes at once, and the engine if it lives in a process.
func (w *world) killAll(r *rand.Rand) {
	for _, name := range names {
		if p := w.processes[name]; p != nil {
			p.kill()
			delete(w.processes, name)
			w.later(r, name)
		}
	}
	if w.open == nil {
		return
	}
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	w.ledger.loseAll()
	if err := w.store.Close(); err != nil {
		w.ledger.breach("close the store: %v", err)
	}
	w.store = w.open()
}

func (w *world) stopOne(r *rand.Rand) {
	name := one(r, names...)
	if p := w.processes[name]; p != nil {
		w.story.add("%s stops", p.name)
		p.stop()
		delete(w.processes, name)
		w.later(r, name)
	}
}

func (w *world) sleepOne(r *rand.Rand) {
	if p := w.processes[one(r, names...)]; p != nil {
		pause := time.Duration(r.IntN(15_000)) * time.Millisecond
		w.story.add("%s sleeps for %v", p.name, pause)
		p.sleep()
		w.late.Go(func() {
			time.Sleep(pause)
			p.wake()
		})
	}
}

func (w *world) cutOne(r *rand.Rand) {
	if p := w.processes[one(r, names...)]; p != nil {
		pause := time.Duration(r.IntN(20_000)) * time.Millisecond
		w.story.add("%s is cut off for %v", p.name, pause)
		p.cut(pause)
	}
}

func (w *world) outage(r *rand.Rand) {
	pause := one(r, time.Duration(r.IntN(10_000))*time.Millisecond, time.Duration(r.IntN(90_000))*time.Millisecond)
	w.story.add("the store is away for %v", pause)
	for _, name := range names {
		if p := w.processes[name]; p != nil {
			p.cut(pause)
		}
	}
}

// weather changes how often calls fail.
func (w *world) weather(r *rand.Rand) {
	share := func() float64 { return one(r, 0, 0.01, 0.1) * r.Float64() }
	w.climate.Store(&climate{share(), share(), share(), share()})
	w.story.add("weather: %+v", *w.climate.Load())
}

func (w *world) stepClock(r *rand.Rand) {
	d := one(r, -5*time.Second, -2*time.Minute, 5*time.Second, 2*time.Minute)
	w.story.add("the clock steps by %v", d)
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	w.ledger.stepping()
	w.step(d)
}

// answer is what a receiver answers to an attempt, and how long it takes.
func (w *world) answer(request *job.Request) policy.Result {
	r := w.draws.of("answer", request.Ref.ID, request.Attempt)
	took := time.Duration(r.IntN(500)) * time.Millisecond
	if request.Queue.Lane == "c" && time.Since(w.began)/time.Minute%2 == 1 && request.Queue.Topic == topicPushed {
		return policy.Result{Status: 502, Duration: took} // an outage of a receiver
	}
	switch x := r.IntN(20); {
	case x < 11:
		return policy.Result{Status: 200, Duration: took}
	case x < 13:
		return policy.Result{Status: 500, Duration: took}
	case x < 14:
		return policy.Result{Status: 503, Duration: took, RetryAfter: time.Duration(1+r.IntN(8)) * time.Second}
	case x < 15:
		return policy.Result{Status: 400, Duration: took, NonRetryable: true}
	case x < 16:
		return policy.Result{Status: 410, Duration: took}
	case x < 17:
		return policy.Result{Class: policy.ClassRefused, Error: "refused", Duration: took}
	case x < 18:
		return policy.Result{Duration: time.Hour} // it hangs
	default:
		return policy.Result{Status: 200, Duration: time.Duration(2000+r.IntN(1900)) * time.Millisecond}
	}
}
