package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// change sends one change of one job to both and compares the results.
func (p *engineAndModel) change(what string, send func(shard store.Shard, token store.Token) (job.Job, error)) {
	p.nextInstant()
	got, err := twice(p, what, func(token store.Token) (job.Job, error) { return send(p.s.shard(), token) },
		func(first, second job.Job) error {
			if first.State != second.State || first.Version != second.Version {
				return fmt.Errorf("%s in version %d, then %s in version %d", first.State, first.Version,
					second.State, second.Version)
			}
			return nil
		})
	wanted, wantedErr := send(p.model.shards[0], store.NewToken())
	if !sameError(wantedErr, err) {
		p.Fatalf("%s: %v, want %v", what, err, wantedErr)
	}
	if err == nil {
		p.same(wanted, got, what)
	}
}

// sameError compares what a caller can act on.
func sameError(a, b error) bool {
	for _, sentinel := range []error{
		store.ErrNotFound, store.ErrVersion, store.ErrLeaseLost, store.ErrCancelRequested, store.ErrExpired,
	} {
		if errors.Is(a, sentinel) != errors.Is(b, sentinel) {
			return false
		}
	}
	aState, aOK := errors.AsType[*store.StateError](a)
	bState, bOK := errors.AsType[*store.StateError](b)
	if aOK && bOK {
		return aState.State == bState.State
	}
	return aOK == bOK && (a == nil) == (b == nil)
}

func (p *engineAndModel) cancel(*rapid.T) {
	ref := p.ref(p.anyID("id"))
	p.change("cancel "+ref.ID, func(shard store.Shard, token store.Token) (job.Job, error) {
		return shard.Cancel(p.ctx, token, ref, store.Cancellation{Actor: "jan"})
	})
}

func (p *engineAndModel) replace(t *rapid.T) {
	ref := p.ref(p.anyID("id"))
	known, err := p.model.shards[0].Get(p.ctx, ref)
	replacement := store.Replacement{Kind: job.EventEdited, Actor: "jan", Fields: []string{"url", "retries"}}
	if rapid.Bool().Draw(t, "due") {
		replacement.Due = &job.TimeOrDelay{In: p.wait(true)}
	}
	if rapid.Bool().Draw(t, "content") {
		spec := known.Spec
		spec.URL = rapid.SampledFrom([]string{"http://a.example/", p.url()}).Draw(t, "url")
		spec.BodyKind, spec.ContentType, spec.Body = job.BodyText, "", []byte("edited")
		spec.Retries = new(rapid.IntRange(0, 3).Draw(t, "retries"))
		replacement.Spec = &spec
	}
	switch rapid.IntRange(0, 3).Draw(t, "expiry") {
	case 0:
		replacement.Expiry = &job.TimeOrDelay{In: 3 * long}
	case 1:
		replacement.Expiry = &job.TimeOrDelay{}
	}
	if err == nil && (known.State == job.Scheduled || known.State == job.Ready) {
		replacement.IfVersion = rapid.SampledFrom([]int64{0, 0, known.Version, known.Version + 1}).Draw(t, "version")
	}
	p.change("replace "+ref.ID, func(shard store.Shard, token store.Token) (job.Job, error) {
		return shard.Replace(p.ctx, token, ref, replacement)
	})
}

func (p *engineAndModel) run(*rapid.T) {
	ref := p.ref(p.anyID("id"))
	p.change("run "+ref.ID, func(shard store.Shard, token store.Token) (job.Job, error) {
		return shard.Replace(p.ctx, token, ref, store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
	})
}

// carry relays the outbox and carries until nothing more can be done at once.
func (p *engineAndModel) carry(t *rapid.T) {
	p.nextInstant()
	round := store.CarryOptions{Relayed: p.relayed, KeepLeases: rapid.IntRange(0, 3).Draw(t, "hold lapses") == 0}
	if rapid.Bool().Draw(t, "small") {
		round.Ready, round.Jobs, round.Queues = 2, 3, 2
	}
	for range 50 {
		got, err := twice(p, "carry", func(token store.Token) (store.CarryResult, error) {
			return p.s.shard().Carry(p.ctx, token, round)
		}, func(first, second store.CarryResult) error {
			if first.Moved != second.Moved || first.ExpiredLeases != second.ExpiredLeases {
				return fmt.Errorf("moved %d and lapsed %d, then %d and %d", first.Moved, first.ExpiredLeases,
					second.Moved, second.ExpiredLeases)
			}
			return nil
		})
		p.must(err, "carry")
		if got.Next != 0 {
			break
		}
		if round.KeepLeases {
			break // an engine may return zero for expired leases that it was asked to keep
		}
	}
	for range 50 {
		got, err := p.model.shards[0].Carry(p.ctx, store.NewToken(), round)
		p.must(err, "carry in the model")
		if got.Next != 0 {
			break
		}
	}
	p.relayed = nil
	p.outbox()
}

// outbox compares the outboxes and relays some of their jobs.
func (p *engineAndModel) outbox() {
	got, err := p.s.shard().Carry(p.ctx, store.NewToken(), store.CarryOptions{KeepLeases: true})
	p.must(err, "carry")
	wanted, err := p.model.shards[0].Carry(p.ctx, store.NewToken(), store.CarryOptions{KeepLeases: true})
	p.must(err, "carry in the model")
	var mine []string
	for _, e := range got.Outbox {
		if e.Namespace == p.namespace {
			mine = append(mine, e.ID)
		}
	}
	var names []string
	for _, e := range wanted.Outbox {
		names = append(names, e.ID)
	}
	if !slices.Equal(names, mine) {
		p.Fatalf("the outbox holds %v, want %v", mine, names)
	}
	if len(names) > 0 {
		p.insertBoth(wanted.Outbox[:1])
		p.relayed = []job.Ref{wanted.Outbox[0].Ref()}
		if !slices.Contains(p.ids, names[0]) {
			p.ids = append(p.ids, names[0])
		}
	}
}

func (p *engineAndModel) topic(t *rapid.T) {
	p.nextInstant()
	put := store.Topic{Namespace: p.namespace, Name: rapid.SampledFrom([]string{"orders", "mails"}).Draw(t, "topic")}
	switch rapid.IntRange(0, 7).Draw(t, "policy") {
	case 0:
		put.Policy.Paused = true
	case 1, 2:
		put.Policy.LaneConcurrency = rapid.IntRange(1, 3).Draw(t, "limit")
	case 4:
		put.Policy.Deliver = policy.DeliverPull
	case 3:
		put.Policy.KeepDelivered, put.Policy.KeepDead = keep(0), keep(0)
		p.sweeping = true
	case 5, 6:
		put.Policy.Ordered = true
	}
	p.putTopic(put)
}

// putTopic writes the same policy to both. Orders keeps its rate: what a lane without a rate remembers is not
// specified.
func (p *engineAndModel) putTopic(put store.Topic) {
	if put.Name == "orders" && p.rate.Limited() {
		put.Policy.LaneRate = p.rate
		put.Policy.LaneRate.Starts += rapid.IntRange(0, 1).Draw(p.T, "more starts")
	}
	_, err := store.PutTopic(p.ctx, p.s.Store, put)
	p.must(err, "put a topic")
	_, err = store.PutTopic(p.ctx, p.model, put)
	p.must(err, "put a topic in the model")
}

func (p *engineAndModel) sweep(*rapid.T) {
	p.sweepOne(p.s.shard())
	p.sweepOne(p.model.shards[0])
	p.followForgotten()
}

// followForgotten has the model forget the health that the engine forgot: that of lanes without jobs, an hour after
// their last attempt.
func (p *engineAndModel) followForgotten() {
	got, err := p.s.shard().ListHealth(p.ctx, store.HealthFilter{Namespace: p.namespace, Limit: store.MaxBatch})
	p.must(err, "list the health")
	kept := make(map[job.Queue]bool)
	for _, lane := range got {
		kept[lane.Queue] = true
	}
	shard, now := p.model.shards[0], p.s.now()
	for _, r := range shard.jobs {
		kept[r.queue.name] = true
	}
	for _, q := range shard.queues {
		if q.name.Namespace == p.namespace && !kept[q.name] && !q.health.Known(now) {
			q.health = nil
		}
	}
}

func (p *engineAndModel) sweepOne(shard store.Shard) {
	for more := true; more; {
		swept, err := shard.Sweep(p.ctx, store.NewToken(), 100)
		p.must(err, "sweep")
		more = swept.More
	}
}

// recheck checks the shard, which must repair nothing.
func (p *engineAndModel) recheck(*rapid.T) {
	if p.s.Recheck == nil {
		return
	}
	if found := p.s.Recheck(p.s.T, p.s.shardNumber); len(found) > 0 {
		p.Fatalf("a check repaired %v where nothing was lost", found)
	}
}

func (p *engineAndModel) advance(t *rapid.T) {
	p.s.Advance(rapid.SampledFrom([]time.Duration{time.Second, 4 * time.Second, 20 * time.Second}).Draw(t, "time"))
}

// passRetention lets the retention of breakers and ids pass, and sweeps.
func (p *engineAndModel) passRetention(t *rapid.T) {
	for _, q := range p.model.shards[0].queues {
		if len(q.claimed.items) > 0 {
			t.Skip("a job that is held keeps its lane's breaker")
		}
	}
	p.s.Advance(store.BreakerRetention + 30*time.Second)
	p.sweep(t)
}

func (p *engineAndModel) known() {
	var refs []job.Ref
	for _, id := range p.ids {
		refs = append(refs, p.ref(id))
	}
	got, err := p.s.shard().Known(p.ctx, refs)
	p.must(err, "known")
	wanted, err := p.model.shards[0].Known(p.ctx, refs)
	p.must(err, "known to the model")
	if !slices.Equal(wanted, got) {
		p.Fatalf("known %v, want %v", got, wanted)
	}
}

// compareJobs compares all ids, and all jobs with their histories.
func (p *engineAndModel) compareJobs(t *rapid.T) {
	if p.sweeping {
		p.sweep(t)
	}
	p.known()
	for _, id := range p.ids {
		wanted, wantedErr := p.model.shards[0].Get(p.ctx, p.ref(id))
		got, err := p.s.shard().Get(p.ctx, p.ref(id))
		if !sameError(wantedErr, err) {
			p.Fatalf("get %s: %v, want %v", id, err, wantedErr)
		}
		if err != nil {
			continue
		}
		p.same(wanted, got, "job "+id)
		if a, b := recordLines(wanted), recordLines(got); !slices.Equal(a, b) {
			p.Fatalf("the record of %s:\n  %s\nwant\n  %s", id, strings.Join(b, "\n  "), strings.Join(a, "\n  "))
		}
	}
}

// recordLines returns a job's history without instants, one line for each entry.
func recordLines(j job.Job) []string {
	var lines []string
	for _, a := range j.History {
		lines = append(lines, fmt.Sprintf("%d %s %s %s %d %s", a.N, a.Kind, a.Verdict, a.Reason, a.Status, a.Process))
	}
	for _, e := range j.Events {
		lines = append(lines, fmt.Sprintf("%s %v %s", e.Kind, e.Fields, e.Actor))
	}
	return lines
}

// slack is the largest allowed difference of two instants.
func (p *engineAndModel) slack() time.Duration {
	if p.s.Advance != nil {
		return 0
	}
	return p.s.tolerance()
}

// same compares two jobs without their histories.
func (p *engineAndModel) same(wanted, got job.Job, what string) {
	a, b := normal(wanted.Spec), normal(got.Spec)
	if !reflect.DeepEqual(a, b) {
		p.Fatalf("%s: asks for\n  %+v\nwant\n  %+v", what, b, a)
	}
	x, y := wanted.Progress, got.Progress
	if x.State.Ended() {
		x.CancelRequested, y.CancelRequested = false, false // has no meaning in an ended job
	}
	for _, at := range []struct {
		name string
		x, y *time.Time
	}{
		{"CreatedAt", &x.CreatedAt, &y.CreatedAt},
		{"DueAt", &x.DueAt, &y.DueAt},
		{"Since", &x.FirstDueAt, &y.FirstDueAt},
		{"ExpiresAt", &x.ExpiresAt, &y.ExpiresAt},
		{"FinishedAt", &x.FinishedAt, &y.FinishedAt},
	} {
		if at.x.IsZero() != at.y.IsZero() || at.x.Sub(*at.y).Abs() > p.slack() {
			p.Fatalf("%s: %s is %v, want %v", what, at.name, at.y, at.x)
		}
		*at.x, *at.y = time.Time{}, time.Time{}
	}
	if x != y {
		p.Fatalf("%s: is\n  %+v\nwant\n  %+v", what, y, x)
	}
}
