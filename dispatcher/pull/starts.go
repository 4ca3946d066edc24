package pull

import (
	"context"
	"fmt"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// startSlack is how long a granted start may be used.
	startSlack = time.Second
	// startsRetry is the longest pause until starts are requested again: the rate may have changed.
	startsRetry = time.Second
)

// starts are those of a topic with a rate that the store has granted. The Puller's mutex guards them.
type starts struct {
	rate  policy.Rate
	left  int       // granted and not used
	until time.Time // they may be used
	next  time.Time // when to request again
}

// grant is the number of jobs that a claim may claim. With a rate it must be made before until.
type grant struct {
	n     int
	rate  policy.Rate
	until time.Time
}

// isLate reports whether a rate no longer allows the starts.
func (g grant) isLate() bool { return g.rate.Limited() && time.Now().After(g.until) }

// takeStarts returns how many jobs of a topic may be claimed now, up to most. When the topic's rate allows none, its
// clients are woken as soon as it may.
func (p *Puller) takeStarts(ctx context.Context, t *topic, most int) (grant, error) {
	rate := p.opts.Policies.Topic(t.namespace, t.name).Rate
	if !rate.Limited() {
		return grant{n: most}, nil
	}
	began := time.Now()
	if g, ok := p.takeLeftStarts(t, rate, most); ok {
		return g, nil
	}
	shard := p.shards[store.ShardOfTopic(len(p.shards), t.namespace, t.name)]
	callCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), store.CallTimeout)
	defer cancel()
	permits, err := shard.Permit(callCtx, p.opts.Owner.NewToken(), []store.PermitRequest{
		{Namespace: t.namespace, Topic: t.name, Rate: rate, Starts: most, Slack: startSlack},
	})
	g, next := grant{rate: rate, until: began.Add(startSlack)}, startsRetry
	if err == nil {
		g.n, next = permits[0].Starts, min(permits[0].Next, startsRetry)
	}
	if g.n == 0 {
		// with an error the old ones apply; no claim reports a change while there is none
		_ = p.opts.Policies.Update(callCtx)
		p.mu.Lock()
		t.starts.next = time.Now().Add(next)
		p.mu.Unlock()
		time.AfterFunc(next, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.wakeClients(t)
		})
	}
	if err != nil {
		return grant{}, fmt.Errorf("request starts of topic %s: %w", t.name, err)
	}
	return g, nil
}

// takeLeftStarts takes starts that were granted before; not ok: there are none, and none can be requested yet if the
// grant is for a rate.
func (p *Puller) takeLeftStarts(t *topic, rate policy.Rate, most int) (g grant, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now, s := time.Now(), &t.starts
	switch {
	case s.rate == rate && s.left > 0 && now.Before(s.until):
		n := min(s.left, most)
		s.left -= n
		return grant{n, rate, s.until}, true
	case now.Before(s.next):
		return grant{}, true
	}
	return grant{}, false
}

// keepStarts keeps what a claim has left of a grant for the next one.
func (p *Puller) keepStarts(t *topic, g grant, used int) {
	if !g.rate.Limited() || used >= g.n {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := &t.starts
	if s.rate != g.rate || !s.until.Equal(g.until) {
		*s = starts{rate: g.rate, until: g.until, next: s.next}
	}
	s.left += g.n - used
}
