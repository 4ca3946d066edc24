package storetest

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

func (p *engineAndModel) settle(t *rapid.T) {
	if len(p.leases) == 0 {
		t.Skip("no job is claimed")
	}
	p.nextInstant()
	var engine, model []store.Settlement
	for i := range rapid.IntRange(1, 3).Draw(t, "settlements") {
		// Mostly one of the newest, which are still leased.
		l := p.leases[max(0, len(p.leases)-1-rapid.IntRange(0, 5).Draw(t, "lease"))]
		if rapid.IntRange(0, 7).Draw(t, "extend") == 0 {
			extend := rapid.SampledFrom([]time.Duration{time.Millisecond, long + time.Millisecond}).Draw(t, "extension")
			engine, model = append(engine, extension(l.engine, extend)), append(model, extension(l.model, extend))
			continue
		}
		v := policy.Verdict{Kind: rapid.SampledFrom([]policy.Kind{
			policy.Delivered, policy.Again, policy.Dead,
			policy.Released,
		}).Draw(t, "verdict")}
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
		if e.Attempt.Kind == job.KindAttempt {
			e.Attempt.Status = rapid.SampledFrom([]int{0, 200, 429, 500}).Draw(t, "status")
			e.Attempt.ErrorClass = rapid.SampledFrom([]policy.ErrorClass{
				"", policy.ClassTimeoutDial, policy.ClassReset, policy.ClassDNS,
			}).Draw(t, "class")
			m.Attempt.Status, m.Attempt.ErrorClass = e.Attempt.Status, e.Attempt.ErrorClass
		}
		if rapid.IntRange(0, 4).Draw(t, "outbox") == 0 {
			e.Outbox = []store.NewJob{p.outboxJob()}
			m.Outbox = e.Outbox
		}
		if rapid.IntRange(0, 3).Draw(t, "body") == 0 {
			e.Body = []byte(strings.Repeat("b", rapid.SampledFrom([]int{0, 1, 2048, 2049, 9000}).Draw(t, "size")))
			m.Body = e.Body
		}
		e.LaneChange = p.laneChange()
		m.LaneChange = e.LaneChange
		engine, model = append(engine, e), append(model, m)
	}
	var next, theirs *store.ClaimRequest
	if rapid.Bool().Draw(t, "next") {
		e, m := p.request()
		next, theirs = &e, &m
	}
	type answer struct {
		errs    []error
		claimed store.ClaimResult
	}
	owner := rapid.SampledFrom(p.owners[:]).Draw(t, "owner")
	got, err := twiceAs(p, owner, "settle", func(token store.Token) (answer, error) {
		errs, claimed, err := p.s.shard().Settle(p.ctx, token, engine, next)
		return answer{errs, claimed}, err
	}, func(first, second answer) error {
		for i := range first.errs {
			if (first.errs[i] == nil) != (second.errs[i] == nil) {
				return fmt.Errorf("settlement %d: %w, then %w", i, first.errs[i], second.errs[i])
			}
		}
		return sameClaims(first.claimed, second.claimed)
	})
	p.must(err, "settle")
	p.useEngineOrder(got.claimed)
	errs, claimed, err := p.model.shards[0].Settle(p.ctx, owner.NewToken(), model, theirs)
	p.must(err, "settle in the model")
	for i := range errs {
		if !sameError(errs[i], got.errs[i]) {
			p.Fatalf("settlement of %s (%s): %v, want %v", engine[i].Ref.ID,
				engine[i].Verdict.Kind, got.errs[i], errs[i])
		}
	}
	p.compareClaims(claimed, got.claimed)
	if !slices.EqualFunc(claimed.Health, got.claimed.Health, func(a, b store.HealthChange) bool {
		return a.Queue == b.Queue && p.equalHealth(a.Before, b.Before) && p.equalHealth(a.After, b.After)
	}) {
		p.Fatalf("changes of health: %+v, want %+v", got.claimed.Health, claimed.Health)
	}
}

// reopen opens the engine anew after all attempts have ended: engines may end those in flight.
func (p *engineAndModel) reopen(*rapid.T) {
	p.nextInstant()
	var ends []store.Settlement
	var answers []error
	hash := sha256.Sum256([]byte(p.namespace))
	token := func(i int) store.Token { return store.SharedToken(hash[:]).Item(p.ends + i) }
	for _, l := range p.leases {
		v := policy.Verdict{Kind: rapid.SampledFrom([]policy.Kind{policy.Again, policy.Released}).Draw(p.T,
			"verdict"), Wait: p.wait(true)}
		end := []store.Settlement{settlement(l.engine, v)}
		got, _, err := p.s.shard().Settle(p.ctx, token(len(ends)), end, nil)
		p.must(err, "settle")
		ends, answers = append(ends, end...), append(answers, got...)
		wanted, _, err := p.model.shards[0].Settle(p.ctx, store.NewToken(),
			[]store.Settlement{settlement(l.model, v)}, nil)
		p.must(err, "settle in the model")
		if !sameError(wanted[0], got[0]) {
			p.Fatalf("settlement of %s: %v, want %v", l.engine.ID, got[0], wanted[0])
		}
	}
	p.leases = nil
	p.s.Store = p.s.Reopen()
	p.s.router = router.New(p.s.Store)
	for i := range ends {
		got, _, err := p.s.shard().Settle(p.ctx, token(i), ends[i:i+1], nil)
		p.must(err, "settle again")
		if !sameError(answers[i], got[0]) {
			p.Fatalf("settlement of %s: %v, after a restart %v", ends[i].Ref.ID, answers[i], got[0])
		}
	}
	p.ends += len(ends)
}

// outboxJob draws a job for the outbox.
func (p *engineAndModel) outboxJob() store.NewJob {
	p.outboxJobs++
	spec := job.Spec{ID: fmt.Sprintf("child-%03d", p.outboxJobs), Queue: p.queues[2], Method: http.MethodPost}
	child := store.NewJob{New: job.New{Spec: spec, Delay: p.wait(false)}}
	child.Fingerprint = codec.Fingerprint(&child.New)
	return child
}

// laneChange draws the lane change of an attempt; mostly none.
func (p *engineAndModel) laneChange() store.LaneChange {
	var c store.LaneChange
	if rapid.IntRange(0, 2).Draw(p.T, "lane change") > 0 {
		return c
	}
	c.Breaker = rapid.SampledFrom([]store.BreakerChange{store.KeepBreaker, store.OpenBreaker, store.CloseBreaker}).
		Draw(p.T, "breaker")
	switch n := rapid.IntRange(0, 9).Draw(p.T, "cooldown"); {
	case n == 0: // with a real clock it outlasts the sequence
		c.Cooldown = long + time.Millisecond
	case n < 5 && p.s.Advance != nil:
		c.Cooldown = time.Second + time.Millisecond
	}
	c.Cause = rapid.SampledFrom([]store.CooldownCause{
		store.CooldownAsked, store.CooldownBreaker,
		store.CooldownUnreadable,
	}).Draw(p.T, "cause")
	return c
}
