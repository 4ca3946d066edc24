package sim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// The topics of the simulation.
const (
	topicPushed  = "pushed"  // with a breaker, and lanes of little concurrency
	topicOrdered = "ordered" // one job of a lane at a time
	topicPaced   = "paced"   // with a rate
	topicPulled  = "pulled"
	topicHandled = "handled"

	topicSwitched = "switched" // pushed or pulled by turns, with a rate for each lane
)

var (
	topics = []string{topicPushed, topicPushed, topicOrdered, topicPaced, topicPulled, topicHandled, topicSwitched}
	lanes  = []string{"a", "b", "c"}
)

func hasURL(topic string) bool { return topic != topicPulled && topic != topicHandled }

// ratePeriod is the length of the windows of all rates.
const ratePeriod = 10 * time.Second

// maxSlack is how long after its claim an attempt under a rate may begin, at most, while calls of the store are slow.
const maxSlack = 30 * time.Second

func rate(starts int) policy.Rate { return policy.Rate{Starts: starts, Per: ratePeriod} }

// Everything is kept until the end, so that every job can be checked.
var (
	forever  = 365 * 24 * time.Hour
	most     = int64(1_000_000)
	defaults = policy.Topic{
		KeepDelivered: policy.Retention{For: &forever, Max: &most},
		KeepDead:      policy.Retention{For: &forever, Max: &most}, IDWindow: &forever,
	}.WithDefaults(policy.Builtin())
)

var threeRungs = policy.Ladder{time.Second, 4 * time.Second, 10 * time.Second}

var policies = map[string]policy.Topic{
	topicPushed: {
		Ladder: policy.Ladder{time.Second, 4 * time.Second, 15 * time.Second}, Timeout: 4 * time.Second,
		LaneConcurrency: 2,
		Breaker:         policy.Breaker{Failures: new(3), Open: 5 * time.Second},
		OnBacklog:       &policy.Backlog{Callback: policy.Callback{URL: "https://callbacks.example/"}, MoreThan: 8},
	},
	topicOrdered: {Ladder: policy.Ladder{time.Second, 3 * time.Second}, Timeout: 3 * time.Second, Ordered: true},
	topicPaced: {
		Ladder: policy.Ladder{2 * time.Second}, Timeout: 3 * time.Second, Rate: rate(5),
	},
	topicPulled:       {Ladder: threeRungs, Timeout: 5 * time.Second, Deliver: policy.DeliverPull, Rate: rate(8)},
	topicHandled:      {Ladder: threeRungs, Timeout: 5 * time.Second, Deliver: policy.DeliverHandler},
	topicSwitched:     {Ladder: threeRungs, Timeout: 3 * time.Second, LaneRate: rate(4)},
	job.CallbackTopic: {Ladder: threeRungs, Retries: new(1000), Timeout: 3 * time.Second},
}

// world is one run of a seed.
type world struct {
	draws draws
	engine
	began     time.Time
	end       time.Time // of the schedules, by the store's clock
	climate   atomic.Pointer[climate]
	lock      chan struct{} // held by a call to the store, so that the ledger sees calls in their order
	ledger    *ledger
	story     *story
	processes map[string]*process
	ending    []*process // that were told to end, and those that have ended
	lives     int
	restarts  map[string]time.Time
	jobs      []job.Ref // that clients have registered, or tried to
	events    int       // the same of events
	clients   sync.WaitGroup
	late      sync.WaitGroup
	all       sync.WaitGroup
}

// engine is the store under the simulation.
type engine struct {
	store store.Store
	// clock is the store's.
	clock func() time.Time
	// step sets the clock ahead or back.
	step func(time.Duration)
	// open opens the store again after Close; nil: it has no life of its own.
	open func() store.Store
}

// The processes, and the schedules with their ends after the beginning.
var names = []string{"p", "q", "r"}

const active = 210 * time.Second

var schedules = map[string]store.ScheduleSettings{
	"every": {
		Spec:    schedule.Spec{Every: 7 * time.Second},
		Job:     job.Spec{Queue: job.Queue{Topic: topicPushed, Lane: "ticks"}, URL: "https://a.example/"},
		Overlap: store.OverlapAllow, CatchUp: store.CatchUp{Window: time.Hour, Runs: store.CatchUpAll},
	},
	"skips": {
		Spec:    schedule.Spec{Every: 11 * time.Second},
		Job:     job.Spec{Queue: job.Queue{Topic: topicPulled, Lane: "ticks"}},
		Overlap: store.OverlapSkip, CatchUp: store.CatchUp{Window: 30 * time.Second, Runs: store.CatchUpLast},
	},
}

// schedule returns a change of a schedule, which it creates if it was removed.
func (w *world) schedule(name string, change func(*store.Schedule)) func(*store.Schedule) error {
	return func(s *store.Schedule) error {
		if s.Revision == 0 {
			s.ScheduleSettings = schedules[name]
			s.EndsAt = w.end
		}
		if change != nil {
			change(s)
		}
		return nil
	}
}

// run runs a seed in a bubble of fake time, tells its story, and returns the broken promises.
func run(seed uint64, e engine, told *story) []breach {
	w := &world{
		draws: draws(seed), engine: e, began: time.Now(), lock: make(chan struct{}, 1),
		story: told, processes: make(map[string]*process),
		restarts: make(map[string]time.Time),
	}
	told.began = w.began
	w.ledger = newLedger(w)
	w.climate.Store(&climate{})
	w.prepare()
	w.live()
	w.finish()
	w.checkAll()
	if err := w.store.Close(); err != nil {
		w.ledger.breach("close the store: %v", err)
	}
	return w.ledger.broken
}

// prepare stores the settings and starts the processes.
func (w *world) prepare() {
	ctx := context.Background()
	for name, p := range policies {
		topic := store.Topic{Namespace: job.DefaultNamespace, Name: name, Policy: p}
		if _, err := store.PutTopic(ctx, w.store, topic); err != nil {
			w.ledger.breach("put the topic %s: %v", name, err)
		}
		w.ledger.reign(name, p)
	}
	for _, name := range names {
		w.start(name)
	}
	time.Sleep(time.Second)
	w.end = job.Millis(w.clock()).Add(active)
	for name := range schedules {
		_, err := w.processes["p"].PutSchedule(ctx, job.DefaultNamespace, name, store.ChangeOptions{},
			w.schedule(name, nil))
		if err != nil {
			w.ledger.breach("put the schedule %s: %v", name, err)
		}
	}
}

// live makes the steps of the seed.
func (w *world) live() {
	r := w.draws.of("steps")
	for n := 0; time.Since(w.began) < active; n++ {
		time.Sleep(time.Duration(r.IntN(8000)) * time.Millisecond)
		for _, name := range names {
			if at, waits := w.restarts[name]; waits && !time.Now().Before(at) {
				delete(w.restarts, name)
				w.start(name)
			}
		}
		s := pick(r)
		w.story.add("step %d: %s", n, s.name)
		s.do(w, w.draws.of("step", n))
		w.check()
	}
}

// finish ends all faults, and waits until all jobs have ended.
func (w *world) finish() {
	w.story.add("all faults end")
	w.climate.Store(&climate{})
	for _, name := range names {
		if p := w.processes[name]; p != nil {
			p.wake()
			p.mend()
		}
		if w.processes[name] == nil {
			w.start(name)
		}
	}
	w.clients.Wait()
	w.backlog()
	w.resume()
	for range 200 {
		time.Sleep(10 * time.Second)
		if w.isDone() {
			break
		}
	}
	w.probe()
	w.checkAlarm(false)
	for _, p := range w.processes {
		p.stop()
	}
	w.all.Wait()
	w.late.Wait()
}

// resume restores the settings.
func (w *world) resume() {
	for _, topic := range slices.Sorted(maps.Keys(policies)) {
		w.retry(func(ctx context.Context, p *process) error {
			_, err := p.ChangeTopic(ctx, job.DefaultNamespace, topic, store.ChangeOptions{},
				func(t *policy.Topic) error {
					*t = policies[topic]
					return nil
				})
			return err
		})
		for _, lane := range lanes {
			w.retry(func(ctx context.Context, p *process) error {
				q := job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}
				_, err := p.ChangeLane(ctx, q, store.ChangeOptions{}, func(l *policy.Lane) error {
					*l = policy.Lane{}
					return nil
				})
				return err
			})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(schedules)) {
		w.retry(func(ctx context.Context, p *process) error {
			_, err := p.PutSchedule(ctx, job.DefaultNamespace, name, store.ChangeOptions{},
				w.schedule(name, func(s *store.Schedule) { s.Paused = false }))
			return err
		})
	}
}

// backlog registers more jobs than a topic may have without an alarm, which are due later, and checks that it is
// raised.
func (w *world) backlog() {
	const soon = 40 * time.Second // processes look for policies with alarms every 30 s, and for backlogs every 5 s
	time.Sleep(longest)           // a call that comes late may still clear it
	w.story.add("a backlog")
	jobs := make([]job.New, 1+policies[topicPushed].OnBacklog.MoreThan)
	for i := range jobs {
		jobs[i] = w.newJob(fmt.Sprint("backlog", i), topicPushed, lanes[i%len(lanes)])
		jobs[i].Delay = soon + time.Second
	}
	w.retry(func(ctx context.Context, p *process) error { return w.registerFrom(ctx, p, jobs) })
	time.Sleep(soon)
	w.checkAlarm(true)
}

// checkAlarm checks that the alarm of the topic that has one is as it should be for long.
func (w *world) checkAlarm(raised bool) {
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	if w.ledger.raised[topicPushed] != raised {
		w.ledger.breach("the alarm of %s is raised: %t", topicPushed, !raised)
	}
}

// probe registers some jobs in each lane when all is well, as many as its rate allows, and checks that they are
// delivered.
func (w *world) probe() {
	time.Sleep(ratePeriod + maxSlack + time.Second) // so long starts may count
	w.story.add("all jobs have ended: some more")
	var jobs []job.New
	for _, topic := range slices.Compact(slices.Clone(topics)) {
		for _, lane := range lanes {
			if policies[topic].Rate.Limited() && lane != lanes[0] {
				continue // processes may get more starts than they need
			}
			for range max(1, policies[topic].LaneRate.Starts) {
				jobs = append(jobs, w.newJob(fmt.Sprint("probe", len(jobs)), topic, lane))
			}
		}
	}
	w.retry(func(ctx context.Context, p *process) error { return w.registerFrom(ctx, p, jobs) })
	time.Sleep(ratePeriod - time.Second)
	w.ledger.mu.Lock()
	defer w.ledger.mu.Unlock()
	for i := range jobs {
		if w.ledger.entries[jobs[i].Ref()].state != job.Delivered {
			w.ledger.breach("%s: of %s, not delivered soon", jobs[i].ID, jobs[i].Queue)
		}
	}
}

func isProbe(id string) bool { return strings.HasPrefix(id, "probe") }

// retry makes a call of a client, with another process after each failure.
func (w *world) retry(do func(context.Context, *process) error) {
	for n := range 100 {
		p := w.processes[names[n%len(names)]]
		ctx, cancel := context.WithTimeout(p.life, 20*time.Second)
		err := do(ctx, p)
		cancel()
		if err == nil {
			return
		}
		w.story.add("a client tries again: %v", err)
		time.Sleep(time.Second)
	}
	w.ledger.breach("a client was not served, though all faults are over")
}

// millis returns the fake time since the beginning.
func (w *world) millis() int64 { return time.Since(w.began).Milliseconds() }

// isDone reports whether no job is unfinished, Ringback's own of bulk work included, and none will be registered: no
// tick is left, no callback is in the outbox, and none tells the end of an alarm.
func (w *world) isDone() bool {
	if !w.ledger.isQuiet() {
		return false
	}
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	for _, shard := range w.store.Shards() {
		for _, filter := range []store.StatsFilter{
			{Namespace: job.DefaultNamespace, Limit: store.MaxBatch},
			{Namespace: job.DefaultNamespace, Topics: []string{job.WorkTopic, job.EventTopic}},
		} {
			rows, err := shard.TopicStats(context.Background(), filter)
			if err != nil {
				w.ledger.breach("count jobs: %v", err)
			}
			for _, row := range rows {
				if row.Scheduled+row.Ready+row.Running > 0 {
					return false
				}
			}
		}
	}
	return true
}

// check checks the store between two calls.
func (w *world) check() {
	w.lock <- struct{}{}
	defer func() { <-w.lock }()
	if err := storetest.Check(context.Background(), w.store); err != nil {
		w.ledger.breach("%v", err)
	}
}

// checkAll checks everything at the end.
func (w *world) checkAll() {
	ctx := context.Background()
	w.check()
	w.ledger.checkEnd(ctx, w.store)
	w.checkCounts(ctx)
	w.checkSchedules(ctx)
	w.checkWork(ctx)
}

// checkCounts compares the store's counts with the ledger's.
func (w *world) checkCounts(ctx context.Context) {
	counted := make(map[string]int64)
	for _, shard := range w.store.Shards() {
		rows, err := shard.TopicStats(ctx, store.StatsFilter{Namespace: job.DefaultNamespace, Limit: store.MaxBatch})
		if err != nil {
			w.ledger.breach("count jobs: %v", err)
		}
		for _, row := range rows {
			counted[row.Topic] += row.Registered
		}
	}
	for topic, n := range w.ledger.count {
		if counted[topic] != n && !store.IsInternal(topic) {
			w.ledger.breach("the store counts %d jobs of %s, the ledger %d", counted[topic], topic, n)
		}
		delete(counted, topic)
	}
	if len(counted) > 0 {
		w.ledger.breach("the store counts jobs of topics that have none: %v", counted)
	}
}

// checkSchedules checks that each tick has passed, and is counted.
func (w *world) checkSchedules(ctx context.Context) {
	p := w.reader()
	for name, a := range w.ledger.schedules {
		s, err := p.Schedule(ctx, job.DefaultNamespace, name)
		if err != nil {
			w.ledger.breach("the schedule %s: %v", name, err)
			continue
		}
		if !s.Ended || s.Counts.Failed > 0 {
			w.ledger.breach("the schedule %s has ended: %t, %+v", name, s.Ended, s.Counts)
		}
		if s.Counts != a.counts {
			w.ledger.breach("the schedule %s counts %+v, by the ledger %+v", name, s.Counts, a.counts)
		}
		if lost := a.lost(w.end); len(lost) > 0 {
			w.ledger.breach("the schedule %s has lost %v", name, lost)
		}
	}
}

// reader returns a process that sees the store as it is.
func (w *world) reader() *process {
	w.start("reader")
	p := w.processes["reader"]
	p.stop()
	<-p.done
	return p
}

// story is what has happened, oldest first.
type story struct {
	began time.Time
	mu    sync.Mutex
	lines []line
	// broken is the number of lines up to the first broken promise, and subject the job whose it is.
	broken  int
	subject string
}

type line struct {
	at     time.Duration
	format string
	args   []any
}

// storyLines is how many lines are told, beside those that name the job.
const storyLines = 80

func (s *story) add(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines = append(s.lines, line{time.Since(s.began), format, args})
}

// addBreach adds a broken promise.
func (s *story) addBreach(text string) {
	s.add("BROKEN: %s", text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken == 0 {
		s.broken = len(s.lines)
		s.subject, _, _ = strings.Cut(text, ": ")
	}
}

// String tells what led to the first broken promise, or the end if none was broken.
func (s *story) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.lines
	if s.broken > 0 {
		told = told[:s.broken]
	}
	names := func(word string) bool { return strings.Trim(word, ":,") == s.subject }
	var text []byte
	for i, l := range told {
		happened := fmt.Sprintf(l.format, l.args...)
		if i >= len(told)-storyLines || slices.ContainsFunc(strings.Fields(happened), names) {
			text = fmt.Appendf(text, "%10.3f  %s\n", l.at.Seconds(), happened)
		}
	}
	return string(text)
}
