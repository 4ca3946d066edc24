package storetest

import (
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

// request draws a claim for both, which number the revisions of lanes' settings differently.
func (p *engineAndModel) request() (engine, model store.ClaimRequest) {
	r := store.ClaimRequest{Max: rapid.IntRange(1, 5).Draw(p.T, "max"), MaxBytes: 1 << 20, Margin: long}
	if p.s.Advance != nil && rapid.Bool().Draw(p.T, "short lease") {
		r.Margin = 5 * time.Second
	}
	if rapid.Bool().Draw(p.T, "slack") {
		r.Slack = 4 * time.Second
	}
	for _, q := range p.queues {
		if rapid.IntRange(0, 3).Draw(p.T, "want") > 0 {
			w := store.QueueClaim{
				Queue: q, Max: rapid.IntRange(1, 4).Draw(p.T, "of a queue"), Timeout: time.Second + time.Millisecond,
				Ahead: rapid.IntRange(0, 2).Draw(p.T, "ahead"), Deliver: p.model.shards[0].limits(q).Deliver,
			}
			if rapid.IntRange(0, 9).Draw(p.T, "old policy") == 0 {
				w.Deliver = policy.DeliverHandler
			}
			r.Queues = append(r.Queues, w)
		}
	}
	engine, model = r, r
	engine.Queues, model.Queues = slices.Clone(r.Queues), slices.Clone(r.Queues)
	for i, w := range r.Queues {
		if known := p.lanes[w.Queue]; len(known) > 0 && rapid.Bool().Draw(p.T, "settings known") {
			one := known[max(0, len(known)-1-rapid.IntRange(0, 2).Draw(p.T, "settings of before"))]
			engine.Queues[i].LaneRevision, model.Queues[i].LaneRevision = one.engine, one.model
		}
	}
	return engine, model
}

func (p *engineAndModel) claim(*rapid.T) {
	p.nextInstant()
	request, theirs := p.request()
	owner := rapid.SampledFrom(p.owners[:]).Draw(p.T, "owner")
	got, err := twiceAs(p, owner, "claim", func(token store.Token) (store.ClaimResult, error) {
		return p.s.shard().Claim(p.ctx, token, request)
	}, sameClaims)
	p.must(err, "claim")
	p.useEngineOrder(got)
	wanted, err := p.model.shards[0].Claim(p.ctx, owner.NewToken(), theirs)
	p.must(err, "claim from the model")
	p.compareClaims(wanted, got)
}

// sameClaims compares a claim with its repeat.
func sameClaims(first, second store.ClaimResult) error {
	a, b := idsOf(first.Jobs), idsOf(second.Jobs)
	slices.Sort(a)
	slices.Sort(b)
	if !slices.Equal(a, b) {
		return fmt.Errorf("jobs %v, then %v", a, b)
	}
	if !reflect.DeepEqual(first.Health, second.Health) {
		return fmt.Errorf("changes of health %+v, then %+v", first.Health, second.Health)
	}
	return nil
}

// useEngineOrder makes the model claim jobs due in the same millisecond in the engine's order.
func (p *engineAndModel) useEngineOrder(got store.ClaimResult) {
	rank := make(map[job.Ref]int)
	for i, h := range got.Jobs {
		rank[h.Ref()] = i - len(got.Jobs)
	}
	p.model.rank = func(ref job.Ref) int { return rank[ref] }
}

// claimExpired claims jobs beyond their time to live.
func (p *engineAndModel) claimExpired(*rapid.T) {
	p.nextInstant()
	request := store.ClaimExpiredRequest{
		Max: store.MaxBatch, MaxBytes: 1 << 20,
		Lease: 7*time.Second + time.Millisecond,
	}
	if p.s.Advance == nil {
		request.Lease = long
	}
	owner := rapid.SampledFrom(p.owners[:]).Draw(p.T, "owner")
	got, err := twiceAs(p, owner, "claim expired jobs", func(token store.Token) (store.ClaimResult, error) {
		held, err := p.s.shard().ClaimExpired(p.ctx, token, request)
		return store.ClaimResult{Jobs: p.ofSequence(held)}, err
	}, sameClaims)
	p.must(err, "claim expired jobs")
	held, err := p.model.shards[0].ClaimExpired(p.ctx, owner.NewToken(), request)
	p.must(err, "claim expired jobs in the model")
	byID := func(a, b store.ClaimedJob) int { return strings.Compare(a.ID, b.ID) }
	slices.SortFunc(got.Jobs, byID)
	slices.SortFunc(held, byID)
	p.compareClaims(store.ClaimResult{Jobs: held}, got)
}

// ofSequence returns the jobs of this sequence: jobs of an earlier one may expire, too.
func (p *engineAndModel) ofSequence(held []store.ClaimedJob) []store.ClaimedJob {
	return slices.DeleteFunc(held, func(h store.ClaimedJob) bool { return h.Namespace != p.namespace })
}

// compareClaims compares the jobs that both returned.
func (p *engineAndModel) compareClaims(wanted, got store.ClaimResult) {
	if !slices.Equal(idsOf(wanted.Jobs), idsOf(got.Jobs)) {
		p.Fatalf("claimed %v, want %v", idsOf(got.Jobs), idsOf(wanted.Jobs))
	}
	for i, w := range wanted.Jobs {
		g := got.Jobs[i]
		p.same(w.Job, g.Job, "claim "+w.ID)
		if d := (w.LeaseFor - g.LeaseFor).Abs(); d > time.Second {
			p.Fatalf("claim %s: a lease for %v, want %v", w.ID, g.LeaseFor, w.LeaseFor)
		}
		if d := (w.Age - g.Age).Abs(); d > p.slack() {
			p.Fatalf("claim %s: age %v, want %v", w.ID, g.Age, w.Age)
		}
		if d := (w.Late - g.Late).Abs(); d > p.slack() || g.Late < 0 {
			p.Fatalf("claim %s: %v late, want %v", w.ID, g.Late, w.Late)
		}
		if w.Rated != g.Rated || w.Probe != g.Probe {
			p.Fatalf("claim %s: rated %t and a probe %t, want %t and %t", w.ID, g.Rated, g.Probe, w.Rated, w.Probe)
		}
		p.leases = append(p.leases, lease{g, w})
	}
	for i, w := range wanted.Queues {
		g := got.Queues[i]
		q := p.model.shards[0].queues[w.Queue]
		waits := q != nil && q.claimable(job.Millis(p.model.now())) != nil
		if q != nil && q.isOrdered() && !w.More {
			g.More = false // whose turn it is need not have been looked up
		}
		if w.Queue != g.Queue || w.More != g.More || w.BreakerOpen != g.BreakerOpen || (g.Blocked && !w.Blocked) ||
			(waits && w.Blocked != g.Blocked) {
			p.Fatalf("queue status after the claim: %+v, want %+v", g, w)
		}
		if (w.LaneDocument == nil) != (g.LaneDocument == nil) {
			p.Fatalf("settings in the claim: %+v of %s, want %+v", g.LaneDocument, w.Queue, w.LaneDocument)
		}
		if w.LaneDocument != nil {
			p.sameSettings(p.laneOf(w.LaneDocument), p.laneOf(g.LaneDocument), "the claim")
		}
	}
}
