package storetest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Random sequences: an engine and the model get the same operations, each sequence in a new namespace, and must agree
// on every result and, after each operation, on every job. What the contract leaves open is avoided:
//
//   - jobs due in the same millisecond: the model follows the engine's order;
//   - boundaries: the clock moves by even numbers of milliseconds; waits, leases, cooldowns and rate windows are odd,
//     so that nothing ends exactly when it is read. Slacks are even;
//   - the window of a lane's rate does not change, and breakers are forgotten while no job is running;
//   - real clocks: waits are zero or at least an hour, leases outlive the test, times agree roughly.
//
// A lost reply is a call sent twice with one token; both results must agree.

// The number of sequences; the flag -rapid.checks overrides it.
var (
	randomChecks      = testkit.Of(6, 12)
	randomChecksSlow  = 2
	randomChecksShort = 25 // of which rapid takes a fifth
)

// randomSteps is the mean number of operations of a sequence; the flag -rapid.steps overrides it.
const randomSteps = 60

func random(t *testing.T, open func(t *testing.T) Engine) {
	setRapid()
	s := newSuite(t, open)
	sequence, failed := 0, false
	rapid.Check(t, func(rt *rapid.T) {
		if sequence++; sequence > s.number(randomChecksSlow, sequence) && !failed {
			return
		}
		defer func() { failed = failed || rt.Failed() }()
		p := newEngineAndModel(rt, s, fmt.Sprintf("random-%d", sequence))
		defer p.endUnfinished()
		aside := []func(*rapid.T){
			p.sweep, p.compareReads, p.permit, p.permit, p.alarm, p.recheck,
			p.claimExpired, p.claimExpired,
		}
		// Each name is equally likely, so that rarer operations share one.
		actions := map[string]func(*rapid.T){
			"":       p.compareJobs,
			"insert": p.insert, "claim": p.claim, "settle": p.settle, "carry": p.carry,
			"insert more": p.insert, "claim more": p.claim, "settle more": p.settle, "claim again": p.claim,
			"settle again": p.settle,
			"change":       oneOf(p.cancel, p.replace, p.run), "ended": oneOf(p.revive, p.revive, p.purge),
			"policy": oneOf(p.topic, p.putLane, p.putLane),
		}
		if s.Advance != nil {
			actions["advance"], actions["advance more"] = p.advance, oneOf(p.advance, p.advance, p.passRetention)
			if s.Reopen != nil {
				aside = append(aside, p.reopen)
			}
		}
		actions["aside"] = oneOf(aside...)
		rt.Repeat(actions)
		p.compareReads(rt)
		if err := CheckNamespace(p.ctx, s.Store, p.namespace); err != nil {
			rt.Fatal(err)
		}
	})
}

// oneOf draws one of some actions.
func oneOf(actions ...func(*rapid.T)) func(*rapid.T) {
	return func(t *rapid.T) { actions[rapid.IntRange(0, len(actions)-1).Draw(t, "which")](t) }
}

// setRapid sets those flags of rapid that the command line does not set. They are global, and concurrent suites read
// them: they are set once.
var setRapid = sync.OnceFunc(func() {
	checks := randomChecks
	if testing.Short() {
		checks = randomChecksShort
	}
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{
		"rapid.checks": strconv.Itoa(checks), "rapid.steps": strconv.Itoa(randomSteps),
		"rapid.nofailfile": "true", "rapid.shrinktime": "10s",
	} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			panic(fmt.Sprintf("storetest: set a flag of rapid's: %v", err))
		}
	}
})

// engineAndModel is an engine and the model in the same state.
type engineAndModel struct {
	*rapid.T
	s          *suite
	ctx        context.Context
	model      *Model
	namespace  string
	queues     []job.Queue
	owners     [2]store.LeaseOwner
	ids        []string
	leases     []lease
	sent       map[string]store.NewJob // the newest registration under an id
	outboxJobs int
	ends       int // settlements before an engine was opened anew
	relayed    []job.Ref
	rate       policy.Rate              // of the lanes of orders, and of permits; zero: none
	lanes      map[job.Queue][]revision // of settings, the newest last
	// a topic keeps nothing, and engines may trim at once: both are swept before each comparison
	sweeping bool
}

// lease is a claim of a job in both; the lease may be lost.
type lease struct {
	engine, model store.ClaimedJob
}

func newEngineAndModel(t *rapid.T, s *suite, namespace string) *engineAndModel {
	p := &engineAndModel{
		T: t, s: s, ctx: s.Context(), namespace: namespace, sent: make(map[string]store.NewJob),
		lanes: make(map[job.Queue][]revision),
	}
	p.model = NewModel(ModelOptions{Defaults: s.Defaults, Now: s.Now})
	for _, topic := range []string{"orders", "orders", "mails"} {
		p.queues = append(p.queues, s.queueOf(namespace, topic, len(p.queues)))
	}
	for i := range p.owners {
		p.owners[i] = store.NewLeaseOwner()
	}
	for i := range 10 {
		p.ids = append(p.ids, fmt.Sprintf("job-%d", i))
	}
	if rapid.Bool().Draw(t, "rated") {
		p.rate = policy.Rate{Starts: rapid.IntRange(1, 3).Draw(t, "starts"), Per: 3*time.Second + time.Millisecond}
		if s.Advance == nil {
			p.rate.Per = long
		}
		p.putTopic(store.Topic{Namespace: namespace, Name: "orders"})
	}
	return p
}

// endUnfinished ends the unfinished jobs of the sequence, so that the next one starts without them.
func (p *engineAndModel) endUnfinished() {
	for _, l := range p.leases {
		_, _, _ = p.s.shard().Settle(p.ctx, store.NewToken(), []store.Settlement{settlement(l.engine, dead)}, nil)
	}
	for _, id := range p.ids {
		_, _ = p.s.shard().Cancel(p.ctx, store.NewToken(), p.ref(id), store.Cancellation{})
	}
}

func (p *engineAndModel) ref(id string) job.Ref { return job.Ref{Namespace: p.namespace, ID: id} }

// nextInstant lets time pass, so that operations are ordered by their instants.
func (p *engineAndModel) nextInstant() { p.s.advance(2 * time.Millisecond) }

// wait draws a duration; not zero unless zero is set.
func (p *engineAndModel) wait(zero bool) time.Duration {
	var waits []time.Duration
	if zero {
		waits = append(waits, 0, 0)
	}
	waits = append(waits, long+time.Millisecond, 2*long+time.Millisecond)
	if p.s.Advance != nil {
		waits = append(waits, time.Second+time.Millisecond, 7*time.Second+time.Millisecond)
	}
	return rapid.SampledFrom(waits).Draw(p.T, "wait")
}

func (p *engineAndModel) anyID(label string) string { return rapid.SampledFrom(p.ids).Draw(p.T, label) }

// twice sends a call, and sometimes repeats it as if the reply had been lost.
func twice[T any](
	p *engineAndModel, what string, send func(token store.Token) (T, error), same func(first, second T) error,
) (T, error) {
	return twiceAs(p, store.NewLeaseOwner(), what, send, same)
}

// twiceAs is twice with a token of an owner.
func twiceAs[T any](p *engineAndModel, owner store.LeaseOwner, what string, send func(
	token store.Token,
) (T, error), same func(first, second T) error,
) (T, error) {
	token := owner.NewToken()
	first, err := send(token)
	if !rapid.Bool().Draw(p.T, "resend") {
		return first, err
	}
	second, again := send(token)
	if (err == nil) != (again == nil) || (err != nil && err.Error() != again.Error()) {
		p.Fatalf("%s returned %v, repeated: %v", what, err, again)
	}
	if err == nil {
		if diff := same(first, second); diff != nil {
			p.Fatalf("%s repeated has another result: %v", what, diff)
		}
	}
	return first, err
}

func (p *engineAndModel) must(err error, what string) {
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

// maxAge draws the max_age of a topic; mostly none.
func (p *engineAndModel) maxAge() time.Duration {
	if rapid.IntRange(0, 3).Draw(p.T, "max age") > 0 {
		return 0
	}
	if p.s.Advance == nil {
		return 3 * long
	}
	return 5*time.Second + time.Millisecond
}

// url returns a URL on the host and port of a lane.
func (p *engineAndModel) url() string { return "http://" + p.queues[0].Lane + "/" }

func (p *engineAndModel) insert(*rapid.T) {
	p.nextInstant()
	var entries []store.NewJob
	// Redis knows the order of registration within a millisecond only of jobs that came to an ordered queue, and else
	// orders them by their ids.
	ids := rapid.SliceOfN(rapid.SampledFrom(p.ids), 1, 3).Draw(p.T, "ids")
	slices.Sort(ids)
	for i, id := range ids {
		e := store.NewJob{New: job.New{Spec: job.Spec{
			ID: id, Queue: rapid.SampledFrom(p.queues).Draw(p.T, "queue"), Method: http.MethodPost,
		}}}
		e.URL = rapid.SampledFrom([]string{"", "http://a.example/", p.url()}).Draw(p.T, "url")
		e.Delay = p.wait(i == 0)
		e.Body = []byte(rapid.SampledFrom([]string{"", "body", "long body"}).Draw(p.T, "body"))
		if rapid.IntRange(0, 3).Draw(p.T, "expiry") == 0 {
			e.ExpiresIn = 3*time.Second + time.Millisecond
			if p.s.Advance == nil {
				e.ExpiresIn = 3 * long
			}
		}
		e.MaxAge = p.maxAge()
		if rapid.IntRange(0, 3).Draw(p.T, "callback") == 0 {
			e.OnDead = &policy.Callback{URL: "http://owner.example/", Headers: map[string][]string{"X-Owner": {"1"}}}
		}
		e.Fingerprint = codec.Fingerprint(&e.New)
		// Only the first of a call may be due now, so that due times differ.
		if sent, ok := p.sent[e.ID]; ok && i == 0 && rapid.Bool().Draw(p.T, "as before") {
			e = sent
		}
		p.sent[e.ID] = e
		entries = append(entries, e)
	}
	p.insertBoth(entries)
}

// insertBoth inserts the same jobs into both.
func (p *engineAndModel) insertBoth(entries []store.NewJob) {
	got, err := twice(p, "insert", func(token store.Token) ([]store.InsertResult, error) {
		return p.s.shard().Insert(p.ctx, token, entries)
	}, func(first, second []store.InsertResult) error {
		for i := range first {
			if first[i].Outcome != second[i].Outcome || first[i].Job.ID != second[i].Job.ID {
				return fmt.Errorf("entry %d: %v, then %v", i, first[i].Outcome, second[i].Outcome)
			}
		}
		return nil
	})
	p.must(err, "insert")
	wanted, err := p.model.shards[0].Insert(p.ctx, store.NewToken(), entries)
	p.must(err, "insert into the model")
	for i := range wanted {
		if wanted[i].Outcome != got[i].Outcome {
			p.Fatalf("insert %s: outcome %d, want %d", entries[i].ID, got[i].Outcome, wanted[i].Outcome)
		}
		p.same(wanted[i].Job, got[i].Job, "insert "+entries[i].ID)
	}
}
