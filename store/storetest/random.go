package storetest

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Random sequences: an engine and the model get the same operations, each in a namespace of its own, and must agree on
// every answer and, after each operation, on every job. What the contract leaves open is evened out:
//
//   - jobs due in the same millisecond: the model follows the engine's order;
//   - boundaries: the clock moves by even numbers of milliseconds, waits and leases are odd, so that nothing falls on
//     the very moment at which it is asked for;
//   - an engine's own clock: waits are zero or an hour and more, leases outlive the test, instants agree roughly.
//
// A lost reply is a call that is sent twice with one token; both answers must agree.

// The number of sequences; the flag -rapid.checks goes before it.
const (
	randomChecks      = 25
	randomChecksShort = 25 // of which rapid takes a fifth
)

func random(t *testing.T, open func(t *testing.T) Engine) {
	s := newSuite(t, open(t))
	checks := randomChecks
	if testing.Short() {
		checks = randomChecksShort
	}
	defer setRapid("rapid.checks", fmt.Sprint(checks))()
	defer setRapid("rapid.nofailfile", "true")()
	defer setRapid("rapid.shrinktime", "10s")()
	sequence := 0
	rapid.Check(t, func(rt *rapid.T) {
		sequence++
		p := newPair(rt, s, fmt.Sprintf("random-%d", sequence))
		defer p.leave()
		actions := map[string]func(*rapid.T){
			"":       p.agree,
			"insert": p.insert, "claim": p.claim, "settle": p.settle, "cancel": p.cancel, "edit": p.edit, "run": p.run,
			"insert more": p.insert, "claim more": p.claim, "settle more": p.settle, "settle again": p.settle,
			"revive": p.revive, "carry": p.carry, "topic": p.topic, "sweep": p.sweep, "look": p.look, "known": p.known,
		}
		if s.Advance != nil {
			actions["advance"] = p.advance
		}
		rt.Repeat(actions)
		p.look(rt)
		if err := CheckNamespace(p.ctx, s.Store, p.namespace); err != nil {
			rt.Fatal(err)
		}
	})
}

// setRapid sets a flag that the command line does not, and gives back what restores it.
func setRapid(name, value string) func() {
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	f := flag.Lookup(name)
	if set || f == nil {
		return func() {}
	}
	old := f.Value.String()
	_ = f.Value.Set(value)
	return func() { _ = f.Value.Set(old) }
}

// A pair is an engine and the model in the same state.
type pair struct {
	*rapid.T
	s         *suite
	ctx       context.Context
	model     *Model
	namespace string
	queues    []job.Queue
	ids       []string
	held      []lease
	sent      map[string]store.Entry // the newest registration under an id
	births    int
	home      []job.Ref
	sweeping  bool // a topic keeps nothing: engines may trim at once, so both are swept all the time
}

// A lease is one job as both gave it out; it may be long lost.
type lease struct{ engine, model store.Held }

func newPair(t *rapid.T, s *suite, namespace string) *pair {
	p := &pair{T: t, s: s, ctx: s.Context(), namespace: namespace, sent: make(map[string]store.Entry)}
	p.model = NewModel(ModelOptions{Defaults: s.Defaults, Now: s.Now})
	for _, topic := range []string{"orders", "orders", "mails"} {
		p.queues = append(p.queues, s.queueOf(namespace, topic, len(p.queues)))
	}
	for i := range 10 {
		p.ids = append(p.ids, fmt.Sprintf("job-%d", i))
	}
	return p
}

// leave takes what is unfinished out of the way of the sequences to come.
func (p *pair) leave() {
	for _, l := range p.held {
		_, _, _ = p.s.Store.Settle(p.ctx, p.s.shard, store.NewToken(), []store.Settlement{settlement(l.engine, dead)}, nil)
	}
	for _, id := range p.ids {
		_, _ = p.s.Store.Cancel(p.ctx, p.s.shard, store.NewToken(), p.ref(id))
	}
}

func (p *pair) ref(id string) job.Ref { return job.Ref{Namespace: p.namespace, ID: id} }

// tick parts operations by time, so that their order is that of their instants.
func (p *pair) tick() { p.s.pass(2 * time.Millisecond) }

// wait draws how long something is put off; never zero unless it may be.
func (p *pair) wait(zero bool) time.Duration {
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

func (p *pair) one(label string) string { return rapid.SampledFrom(p.ids).Draw(p.T, label) }

// twice sends a call, and now and then sends it again as if the reply had been lost.
func twice[T any](p *pair, what string, send func(token store.Token) (T, error), same func(first, second T) error) (T, error) {
	token := store.NewToken()
	first, err := send(token)
	if !rapid.Bool().Draw(p.T, "resend") {
		return first, err
	}
	second, again := send(token)
	if (err == nil) != (again == nil) || (err != nil && err.Error() != again.Error()) {
		p.Fatalf("%s answered %v, and sent again: %v", what, err, again)
	}
	if err == nil {
		if diff := same(first, second); diff != nil {
			p.Fatalf("%s sent again answers otherwise: %v", what, diff)
		}
	}
	return first, err
}

func (p *pair) must(err error, what string) {
	if err != nil {
		p.Fatalf("%s: %v", what, err)
	}
}

func (p *pair) insert(*rapid.T) {
	p.tick()
	var entries []store.Entry
	for i := range rapid.IntRange(1, 3).Draw(p.T, "entries") {
		e := store.Entry{New: job.New{Spec: job.Spec{ID: p.one("id"), Queue: rapid.SampledFrom(p.queues).Draw(p.T, "queue")}}}
		e.Delay = p.wait(i == 0)
		e.Body = []byte(rapid.SampledFrom([]string{"", "body", "long body"}).Draw(p.T, "body"))
		if rapid.IntRange(0, 3).Draw(p.T, "expiry") == 0 {
			e.ExpiresIn = 3*time.Second + time.Millisecond
			if p.s.Advance == nil {
				e.ExpiresIn = 3 * long
			}
		}
		e.Print = e.Fingerprint()
		// Only the first of a call may be due now, so that no two come to wait at one instant.
		if sent, ok := p.sent[e.ID]; ok && i == 0 && rapid.Bool().Draw(p.T, "as before") {
			e = sent
		}
		p.sent[e.ID] = e
		entries = append(entries, e)
	}
	p.bring(entries)
}

// bring inserts the same into both.
func (p *pair) bring(entries []store.Entry) {
	got, err := twice(p, "insert", func(token store.Token) ([]store.Inserted, error) {
		return p.s.Store.Insert(p.ctx, p.s.shard, token, entries)
	}, func(first, second []store.Inserted) error {
		for i := range first {
			if first[i].Outcome != second[i].Outcome || first[i].Job.ID != second[i].Job.ID {
				return fmt.Errorf("entry %d: %v, then %v", i, first[i].Outcome, second[i].Outcome)
			}
		}
		return nil
	})
	p.must(err, "insert")
	wanted, err := p.model.Insert(p.ctx, 0, store.NewToken(), entries)
	p.must(err, "insert into the model")
	for i := range wanted {
		if wanted[i].Outcome != got[i].Outcome {
			p.Fatalf("insert %s: outcome %d, want %d", entries[i].ID, got[i].Outcome, wanted[i].Outcome)
		}
		p.same(wanted[i].Job, got[i].Job, "insert "+entries[i].ID)
	}
}

func (p *pair) request() store.ClaimRequest {
	r := store.ClaimRequest{Max: rapid.IntRange(1, 5).Draw(p.T, "max"), MaxBytes: 1 << 20, Margin: long}
	if p.s.Advance != nil && rapid.Bool().Draw(p.T, "short lease") {
		r.Margin = 5 * time.Second
	}
	for _, q := range p.queues {
		if rapid.IntRange(0, 3).Draw(p.T, "want") > 0 {
			w := store.Want{Queue: q, Max: rapid.IntRange(1, 4).Draw(p.T, "of a queue"), Timeout: time.Second + time.Millisecond}
			r.Wants = append(r.Wants, w)
		}
	}
	return r
}

func (p *pair) claim(*rapid.T) {
	p.tick()
	request := p.request()
	got, err := twice(p, "claim", func(token store.Token) (store.Claimed, error) {
		return p.s.Store.Claim(p.ctx, p.s.shard, token, request)
	}, sameHeld)
	p.must(err, "claim")
	p.follow(got)
	wanted, err := p.model.Claim(p.ctx, 0, store.NewToken(), request)
	p.must(err, "claim from the model")
	p.took(wanted, got)
}

// sameHeld compares a claim with its repeat.
func sameHeld(first, second store.Claimed) error {
	a, b := idsOf(first.Jobs), idsOf(second.Jobs)
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		return fmt.Errorf("jobs %v, then %v", a, b)
	}
	return nil
}

// follow lets the model take jobs due in the same millisecond in the engine's order.
func (p *pair) follow(got store.Claimed) {
	rank := make(map[job.Ref]int)
	for i, h := range got.Jobs {
		rank[h.Ref()] = i - len(got.Jobs)
	}
	p.model.rank = func(ref job.Ref) int { return rank[ref] }
}

// took compares what both gave out.
func (p *pair) took(wanted, got store.Claimed) {
	if !slices.Equal(idsOf(wanted.Jobs), idsOf(got.Jobs)) {
		p.Fatalf("claimed %v, want %v", idsOf(got.Jobs), idsOf(wanted.Jobs))
	}
	for i, w := range wanted.Jobs {
		g := got.Jobs[i]
		p.same(w.Job, g.Job, "claim "+w.ID)
		if w.Expired != g.Expired {
			p.Fatalf("claim %s: expired %t, want %t", w.ID, g.Expired, w.Expired)
		}
		if d := (w.LeaseFor - g.LeaseFor).Abs(); d > time.Second {
			p.Fatalf("claim %s: a lease for %v, want %v", w.ID, g.LeaseFor, w.LeaseFor)
		}
		if d := (w.Age - g.Age).Abs(); d > p.slack() {
			p.Fatalf("claim %s: age %v, want %v", w.ID, g.Age, w.Age)
		}
		p.held = append(p.held, lease{g, w})
	}
	for i, w := range wanted.Queues {
		g := got.Queues[i]
		q := p.model.shards[0].queues[w.Queue]
		waits := q != nil && q.claimable(job.Millis(p.model.now())) != nil
		if w.Queue != g.Queue || w.More != g.More || (g.Blocked && !w.Blocked) || (waits && w.Blocked != g.Blocked) {
			p.Fatalf("after the claim a queue stands as %+v, want %+v", g, w)
		}
	}
}

func (p *pair) settle(t *rapid.T) {
	if len(p.held) == 0 {
		t.Skip("nothing is held")
	}
	p.tick()
	var engine, model []store.Settlement
	for i := range rapid.IntRange(1, 3).Draw(t, "settlements") {
		// Mostly one of the newest, which are still held.
		l := p.held[max(0, len(p.held)-1-rapid.IntRange(0, 5).Draw(t, "lease"))]
		v := policy.Verdict{Kind: rapid.SampledFrom([]policy.Kind{policy.Delivered, policy.Again, policy.Dead, policy.Released}).Draw(t, "verdict")}
		switch v.Kind {
		case policy.Again, policy.Released:
			v.Wait = p.wait(i == 0)
		case policy.Dead:
			v.Reason = policy.ReasonGaveUp
		}
		e, m := settlement(l.engine, v), settlement(l.model, v)
		if v.Kind == policy.Dead && rapid.Bool().Draw(t, "without a request") {
			e.Attempt, m.Attempt = job.Attempt{}, job.Attempt{}
		}
		if rapid.IntRange(0, 4).Draw(t, "births") == 0 {
			p.births++
			child := store.Entry{New: job.New{Spec: job.Spec{ID: fmt.Sprintf("child-%d", p.births), Queue: p.queues[2]}, Delay: p.wait(false)}}
			child.Print = child.Fingerprint()
			e.Births, m.Births = []store.Entry{child}, []store.Entry{child}
		}
		engine, model = append(engine, e), append(model, m)
	}
	var next *store.ClaimRequest
	if rapid.Bool().Draw(t, "next") {
		r := p.request()
		next = &r
	}
	type answer struct {
		errs    []error
		claimed store.Claimed
	}
	got, err := twice(p, "settle", func(token store.Token) (answer, error) {
		errs, claimed, err := p.s.Store.Settle(p.ctx, p.s.shard, token, engine, next)
		return answer{errs, claimed}, err
	}, func(first, second answer) error {
		for i := range first.errs {
			if (first.errs[i] == nil) != (second.errs[i] == nil) {
				return fmt.Errorf("settlement %d: %w, then %w", i, first.errs[i], second.errs[i])
			}
		}
		return sameHeld(first.claimed, second.claimed)
	})
	p.must(err, "settle")
	p.follow(got.claimed)
	errs, claimed, err := p.model.Settle(p.ctx, 0, store.NewToken(), model, next)
	p.must(err, "settle in the model")
	for i := range errs {
		if !sameError(errs[i], got.errs[i]) {
			p.Fatalf("settlement of %s (%s): %v, want %v", engine[i].Ref.ID, engine[i].Verdict.Kind, got.errs[i], errs[i])
		}
	}
	p.took(claimed, got.claimed)
}
