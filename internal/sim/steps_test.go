package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
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
	{"register", 14, (*world).register},
	{"send events", 6, (*world).send},
	{"wait", 2, (*world).waitForEnd},
	{"edit", 3, (*world).edit},
	{"cancel", 3, (*world).cancel},
	{"run", 2, (*world).runNow},
	{"revive", 2, (*world).revive},
	{"bulk work", 6, (*world).work},
	{"change topic", 4, (*world).changeTopic},
	{"change lane", 4, (*world).changeLane},
	{"change schedule", 2, (*world).changeSchedule},
	{"kill", 2, (*world).killOne},
	{"stop", 2, (*world).stopOne},
	{"stop all", 1, (*world).stopAll},
	{"kill all", 1, (*world).killAll},
	{"sleep", 2, (*world).sleepOne},
	{"cut off", 3, (*world).cutOne},
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
	count, topic, of := 1+r.IntN(6), one(r, topics...), lanes
	if r.IntN(8) == 0 { // a burst in one lane
		count, of = 15, lanes[:1]
	}
	jobs := make([]job.New, count)
	for i := range jobs {
		jobs[i] = w.newJob(fmt.Sprint("j", len(w.jobs)), topic, one(r, of...))
		n := &jobs[i]
		n.Delay = one(r, 0, 0, time.Duration(r.IntN(40_000))*time.Millisecond)
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
	w.registerAll(r, jobs)
	if r.IntN(4) == 0 { // another client has the same ids, and some of its jobs differ
		others := slices.Clone(jobs)
		for i := range others {
			if r.IntN(2) == 0 {
				others[i].Body = fmt.Append(nil, others[i].ID, "-other")
			}
		}
		w.registerAll(r, others)
	}
}

func (w *world) registerAll(r *rand.Rand, jobs []job.New) {
	w.client(r, 6, func(ctx context.Context, p *process) error { return w.registerFrom(ctx, p, jobs) })
}

func (w *world) registerFrom(ctx context.Context, p *process, jobs []job.New) (failed error) {
	for i, result := range p.Register(ctx, jobs) {
		w.ledger.told(&jobs[i], result.Err)
		if result.Err != nil {
			failed = result.Err
		}
	}
	return failed
}

func (w *world) newJob(id, topic, lane string) (n job.New) {
	n.ID, n.Queue = id, job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}
	n.Body, n.BodyKind = []byte(id), job.BodyText
	if hasURL(topic) {
		n.URL = "https://receiver.example/" + lane
	}
	return n
}

// waitForEnd waits for the end of a job.
func (w *world) waitForEnd(r *rand.Rand) {
	ref, ok := w.someJob(r)
	if !ok {
		return
	}
	wanted := job.Job{Spec: job.Spec{ID: ref.ID, Queue: job.Queue{Namespace: ref.Namespace}}}
	limit := time.Duration(r.IntN(12_000)) * time.Millisecond
	w.client(r, 1, func(ctx context.Context, p *process) error {
		began := time.Now()
		found, err := p.WaitForEnd(ctx, wanted, limit)
		if err == nil {
			w.ledger.waited(p, &found, began)
		}
		return err
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
	edit := *editOfBody(fmt.Sprint(ref.ID, "-", 1+r.IntN(100)))
	if r.IntN(2) == 0 {
		edit.Due = &job.TimeOrDelay{In: time.Duration(r.IntN(20)) * time.Second}
	}
	w.client(r, 1, func(ctx context.Context, p *process) error {
		_, err := p.Edit(ctx, ref, edit)
		return err
	})
}

func editOfBody(body string) *job.Edit {
	return &job.Edit{Fields: []string{"body"}, Spec: job.Spec{Body: []byte(body), BodyKind: job.BodyText}}
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

// work starts bulk work on the jobs of a topic, or on some that it names, and perhaps stops it.
func (w *world) work(r *rand.Rand) {
	order := store.WorkOrder{
		Action: one(r, append(store.WorkActions(), store.WorkRevive)...),
		Filter: store.Filter{Namespace: job.DefaultNamespace, Topic: one(r, append(topics, "", "", "")...)},
		Actor:  fmt.Sprint("work-", len(w.jobs), "-", r.IntN(1000)),
	}
	if order.Filter.Topic == "" {
		order.Filter.Kind = job.KindRegistered // not callbacks
	}
	_, order.Filter.States = order.Action.States()
	switch order.Action {
	case store.WorkRevive:
		order.Filter.States = one(r, order.Filter.States, []job.State{job.Dead, job.Delivered})
	case store.WorkCancel:
		order.Filter.Lane = one(r, "a", "b")
	case store.WorkEdit:
		order.Edit = editOfBody(order.Actor)
	case store.WorkReplay:
		order.Filter.States = one(r, nil, []job.State{job.Dead}, []job.State{store.Missed})
	case store.WorkRun, store.WorkPurge:
	}
	if order.Action.HasRate() {
		order.Rate = one(r, policy.Rate{}, policy.Rate{Starts: 2, Per: time.Second})
		order.LaneRate = one(r, policy.Rate{}, policy.Rate{Starts: 3, Per: 2 * time.Second})
	}
	if r.IntN(3) == 0 {
		named := make(map[string]bool)
		for range 20 {
			if ref, ok := w.someJob(r); ok && order.Action != store.WorkReplay {
				named[ref.ID] = true
			} else {
				named[fmt.Sprint("e", r.IntN(w.events+1))] = true
			}
		}
		order.IDs = slices.Sorted(maps.Keys(named))
		order.Filter = store.Filter{Namespace: job.DefaultNamespace, States: order.Filter.States}
	}
	if r.IntN(2) == 0 { // perhaps in a step
		w.remove(r, one(r, names...), (*process).doom)
	}
	stopAfter := one(r, 0, 0, time.Duration(r.IntN(5000))*time.Millisecond)
	w.client(r, 1, func(ctx context.Context, p *process) error {
		made, err := p.StartWork(ctx, job.DefaultNamespace, order)
		if err != nil {
			return err
		}
		if stopAfter > 0 {
			time.Sleep(stopAfter)
			_, err = p.StopWork(ctx, job.DefaultNamespace, made.ID, "")
		}
		return err
	})
}

// changeTopic changes the settings of a topic. It resumes one that it has paused, perhaps while a process cannot read
// that.
func (w *world) changeTopic(r *rand.Rand) {
	topic := one(r, topics...)
	paused, workers, concurrency := r.IntN(2) == 0, 1+r.IntN(8), 1+r.IntN(3)
	ladder := one(r, policies[topic].Ladder, policy.Ladder{2 * time.Second, 3 * time.Second})
	ofTopic, ofLane := rate(2+r.IntN(8)), one(r, policy.Rate{}, rate(1+r.IntN(4)))
	deliver := one(r, policy.DeliverPush, policy.DeliverPull)
	resumeAfter, deaf := time.Duration(1+r.IntN(12))*time.Second, w.processes[one(r, names...)]
	w.client(r, 1, func(ctx context.Context, p *process) error {
		_, err := p.ChangeTopic(ctx, job.DefaultNamespace, topic, store.ChangeOptions{}, func(t *policy.Topic) error {
			t.Paused, t.Workers, t.Ladder = paused, workers, ladder
			switch topic {
			case topicPushed:
				t.LaneConcurrency = concurrency
			case topicPaced:
				t.Rate, t.LaneRate = ofTopic, ofLane
			case topicSwitched:
				t.Deliver, t.LaneRate = deliver, ofLane
			}
			return nil
		})
		if err != nil || !paused || p.wait(ctx, resumeAfter) != nil {
			return err
		}
		if deaf != nil && deaf != p {
			deaf.cut(documents, resumeAfter)
		}
		_, err = p.ChangeTopic(ctx, job.DefaultNamespace, topic, store.ChangeOptions{}, func(t *policy.Topic) error {
			t.Paused = false
			return nil
		})
		return err
	})
}

// changeLane changes the settings of a lane.
func (w *world) changeLane(r *rand.Rand) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: one(r, topics...), Lane: one(r, lanes...)}
	settings := policy.Lane{
		LaneConcurrency: r.IntN(4), LaneRate: one(r, policy.Rate{}, rate(1+r.IntN(6))),
		Paused: r.IntN(4) == 0, Ordered: r.IntN(4) == 0,
	}
	settings.Subscribe = one(r, nil, []string{"order.*"}, []string{"order.paid"}, []string{"*"})
	if hasURL(q.Topic) && r.IntN(8) > 0 { // without one it is refused its jobs of events
		settings.URL = "https://receiver.example/" + q.Lane
	}
	w.client(r, 1, func(ctx context.Context, p *process) error {
		_, err := p.ChangeLane(ctx, q, store.ChangeOptions{}, func(l *policy.Lane) error {
			*l = settings
			return nil
		})
		return err
	})
}

// changeSchedule changes a schedule some times: it pauses or resumes it, changes its times and what becomes of ticks
// that are late, or removes it. Some changes come within milliseconds of a tick. Perhaps the workers sleep meanwhile.
func (w *world) changeSchedule(r *rand.Rand) {
	name, p := one(r, slices.Sorted(maps.Keys(schedules))...), w.processes[one(r, names...)]
	isAway, count := r.IntN(2) == 0, 1+r.IntN(5)
	if isAway {
		p = w.launch("api", true)
		w.ending = append(w.ending, p) // once the changes are made
		for _, worker := range names {
			w.sleepFor(w.processes[worker], time.Duration(r.IntN(30_000))*time.Millisecond)
		}
	}
	if p == nil {
		return
	}
	draw := w.draws.of("schedule", r.Uint64())
	w.clients.Go(func() {
		if isAway {
			defer p.stop()
		}
		for range count {
			paused, every := draw.IntN(3) == 0, one(draw, schedules[name].Every, 5*time.Second, 2*time.Second)
			overlap := one(draw, store.OverlapAllow, store.OverlapSkip, store.OverlapCancel)
			runs := one(draw, store.CatchUpAll, store.CatchUpLast, store.CatchUpNone)
			from := time.Unix(draw.Int64N(1000), 0)
			pause := time.Duration(draw.IntN(9000)) * time.Millisecond
			if draw.IntN(2) == 0 { // to a tick, of any interval of whole seconds
				at := w.clock().Add(pause).Truncate(time.Second)
				pause = at.Sub(w.clock()) + time.Duration(draw.IntN(5)-1)*time.Millisecond
			}
			isRemoval := draw.IntN(8) == 0
			if p.wait(p.life, pause) != nil {
				return
			}
			ctx, cancel := context.WithTimeout(p.life, 15*time.Second)
			var err error
			if isRemoval {
				err = p.DeleteSchedule(ctx, job.DefaultNamespace, name, 0, nil)
			}
			if err == nil {
				change := w.schedule(name, func(s *store.Schedule) {
					s.Paused, s.Every, s.Overlap, s.CatchUp.Runs, s.StartsAt = paused, every, overlap, runs, from
				})
				_, err = p.PutSchedule(ctx, job.DefaultNamespace, name, store.ChangeOptions{}, change)
			}
			cancel()
			if err != nil {
				w.story.add("the schedule %s is perhaps not changed: %v", name, err)
			}
		}
	})
}

// later starts a process anew after a time, unless another life of it has begun.
func (w *world) later(r *rand.Rand, name string) {
	w.restarts[name] = time.Now().Add(time.Duration(r.IntN(20_000)) * time.Millisecond)
}

func (w *world) killOne(r *rand.Rand) {
	if r.IntN(2) == 0 {
		w.remove(r, one(r, names...), (*process).kill)
	} else {
		w.remove(r, one(r, names...), (*process).doom)
	}
}

// remove ends a process in some way, and starts it again later.
func (w *world) remove(r *rand.Rand, name string, end func(*process)) {
	if p := w.processes[name]; p != nil {
		end(p)
		delete(w.processes, name)
		w.ending = append(w.ending, p)
		w.later(r, name)
	}
}

// killAll ends all processes at once, and the engine if it lives in a process.
func (w *world) killAll(r *rand.Rand) {
	for _, name := range names {
		w.remove(r, name, (*process).kill)
	}
	if w.open == nil {
		return
	}
	for _, p := range w.ending { // in the same process as the engine
		select {
		case <-p.done:
		default:
			p.kill()
		}
	}
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	w.ledger.loseAll()
	if err := w.store.Close(); err != nil {
		w.ledger.breach("close the store: %v", err)
	}
	w.store = w.open()
}

func (w *world) stopOne(r *rand.Rand) { w.remove(r, one(r, names...), (*process).stopInOrder) }

func (w *world) stopAll(r *rand.Rand) {
	for _, name := range names {
		w.remove(r, name, (*process).stopInOrder)
	}
}

func (w *world) sleepOne(r *rand.Rand) {
	p := w.processes[one(r, names...)]
	w.sleepFor(p, time.Duration(r.IntN(15_000))*time.Millisecond)
}

// sleepFor stops a process, if there is one, for a time.
func (w *world) sleepFor(p *process, pause time.Duration) {
	if p == nil {
		return
	}
	w.story.add("%s sleeps for %v", p.name, pause)
	p.sleep()
	w.late.Go(func() {
		time.Sleep(pause)
		p.wake()
	})
}

func (w *world) cutOne(r *rand.Rand) {
	if p := w.processes[one(r, names...)]; p != nil {
		pause, shard := time.Duration(r.IntN(20_000))*time.Millisecond, one(r, w.someShard(r), documents)
		w.story.add("%s is cut off from shard %d for %v", p.name, shard, pause)
		p.cut(shard, pause)
	}
}

func (w *world) outage(r *rand.Rand) {
	pause := one(r, time.Duration(r.IntN(10_000))*time.Millisecond, time.Duration(r.IntN(90_000))*time.Millisecond)
	shard := w.someShard(r)
	w.story.add("shard %d is away for %v", shard, pause)
	for _, name := range names {
		if p := w.processes[name]; p != nil {
			p.cut(shard, pause)
		}
	}
}

// someShard returns a shard, or, mostly, allShards.
func (w *world) someShard(r *rand.Rand) int {
	if r.IntN(3) > 0 {
		return allShards
	}
	return r.IntN(len(w.store.Shards()))
}

// weather changes how often calls fail.
func (w *world) weather(r *rand.Rand) {
	share := func() float64 { return one(r, 0, 0.01, 0.1) * r.Float64() }
	w.climate.Store(&climate{share(), share(), share(), 3 * share()})
	w.story.add("weather: %+v", *w.climate.Load())
}

func (w *world) stepClock(r *rand.Rand) {
	d := one(r, -5*time.Second, -2*time.Minute, 5*time.Second, 2*time.Minute)
	w.story.add("the clock steps by %v", d)
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	w.ledger.stepping()
	w.step(d)
	w.ledger.moveChanges()
}

// answer is what a receiver answers to an attempt, and how long it takes.
func (w *world) answer(request *job.Request) policy.Result {
	r := w.draws.of("answer", request.Ref.ID, request.Attempt)
	if request.Queue.Topic == job.CallbackTopic { // whose ids have a random part
		r = w.draws.of("answer", request.Queue.Topic, request.Attempt, w.millis()/1000)
	}
	took := time.Duration(r.IntN(500)) * time.Millisecond
	if isProbe(request.Ref.ID) {
		return policy.Result{Status: 200, Duration: took}
	}
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
