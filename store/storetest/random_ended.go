package storetest

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// revive revives some jobs in one call.
func (p *engineAndModel) revive(t *rapid.T) {
	p.nextInstant()
	var items []store.Revival
	for i := range rapid.IntRange(1, 4).Draw(t, "revivals") {
		// Only the first of a call may be due now, so that due times differ.
		item := store.Revival{Ref: p.ref(p.anyID("id")), Delay: p.wait(i == 0), Actor: "jan"}
		item.From = rapid.SampledFrom([]job.State{"", "", job.Dead, job.Delivered, job.Cancelled}).Draw(t, "from")
		item.URL = rapid.SampledFrom([]string{"", "http://moved.example/", p.url()}).Draw(t, "url")
		item.Header = rapid.SampledFrom([]map[string][]string{nil, {}, {"X-Moved": {"1", "2"}}}).Draw(t, "header")
		if known, err := p.model.shards[0].Get(p.ctx, item.Ref); err == nil {
			item.IfVersion = rapid.SampledFrom([]int64{0, 0, known.Version, known.Version + 1}).Draw(t, "version")
		}
		if rapid.IntRange(0, 2).Draw(t, "expiry") == 0 {
			item.ExpiresIn = rapid.SampledFrom([]time.Duration{long / 2, 3 * long}).Draw(t, "expires in")
		}
		items = append(items, item)
	}
	got, err := twice(p, "revive", func(token store.Token) ([]store.ReviveResult, error) {
		return p.s.shard().Revive(p.ctx, token, items)
	}, func(first, second []store.ReviveResult) error {
		for i, a := range first {
			if b := second[i]; !sameError(a.Err, b.Err) || a.Job.State != b.Job.State ||
				a.Job.Version != b.Job.Version {
				return fmt.Errorf("revival %d: %+v, then %+v", i, a, b)
			}
		}
		return nil
	})
	p.must(err, "revive")
	wanted, err := p.model.shards[0].Revive(p.ctx, store.NewToken(), items)
	p.must(err, "revive in the model")
	for i, w := range wanted {
		if !sameError(w.Err, got[i].Err) {
			p.Fatalf("revive %s: %v, want %v", items[i].Ref.ID, got[i].Err, w.Err)
		}
		if w.Err == nil {
			p.same(w.Job, got[i].Job, "revive "+items[i].Ref.ID)
		}
	}
}

// purge removes some jobs, of which not all have ended, or are in the state and of the version that it asks for.
func (p *engineAndModel) purge(t *rapid.T) {
	p.nextInstant()
	var items []store.Removal
	for range rapid.IntRange(1, 3).Draw(t, "jobs") {
		items = append(items, store.Removal{
			Ref:       p.ref(p.anyID("id")),
			From:      rapid.SampledFrom([]job.State{"", job.Dead, job.Dead, job.Delivered}).Draw(t, "from"),
			IfVersion: rapid.SampledFrom([]int64{0, 0, 1, 2}).Draw(t, "version"),
		})
	}
	got, err := twice(p, "purge", func(token store.Token) ([]error, error) {
		return p.s.shard().Purge(p.ctx, token, items)
	}, func(first, second []error) error {
		if !slices.EqualFunc(first, second, sameError) {
			return fmt.Errorf("%v, then %v", first, second)
		}
		return nil
	})
	p.must(err, "purge")
	wanted, err := p.model.shards[0].Purge(p.ctx, store.NewToken(), items)
	p.must(err, "purge in the model")
	if !slices.EqualFunc(wanted, got, sameError) {
		p.Fatalf("purge %+v: %v, want %v", items, got, wanted)
	}
	p.sweep(t) // an id whose window has passed may go with its job, or when it is swept
}
