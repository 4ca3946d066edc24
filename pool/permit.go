package pool

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// rated is what the pool knows of a topic with a rate: the starts it was granted last, and when it may ask for more. A
// topic's starts are counted by one shard for all processes, so they are asked for before jobs are claimed; what a claim
// did not use is used by the next, or given back. Its fields are guarded by the pool's mutex.
type rated struct {
	rate   policy.Rate // for which the rest holds
	grant  store.Permit
	left   int       // of the grant, not used yet
	by     time.Time // no attempt of the grant may begin later
	back   []store.Permit
	asking bool
	again  time.Time // nothing is asked for before
}

// askLatest is how long a topic that came short waits at most before it asks again. The store says when more can be
// granted, but not that another process gives some back before, or that the rate was changed.
const askLatest = time.Second

// mostBack bounds the grants that are given back with one ask; what is beyond stays counted.
const mostBack = 64

// starts is how many starts a topic has at hand. Those that could not be used in time are given back, and more time is
// asked for with the next. What was granted, or put off, under another rate holds no more. p.mu is held.
func (p *Pool) starts(r *rated, rate policy.Rate, now time.Time) int {
	if r.rate != rate {
		r.giveBack(r.grant, r.left)
		r.rate, r.left, r.again = rate, 0, time.Time{}
	}
	if r.left > 0 && !now.Before(r.by) {
		r.giveBack(r.grant, r.left)
		r.left = 0
	}
	return r.left
}

// giveBack notes starts of a grant of which no attempt was made: they go back with the next ask, which is made at once.
func (r *rated) giveBack(grant store.Permit, starts int) {
	if starts <= 0 {
		return
	}
	r.again = time.Time{}
	for i := range r.back {
		if r.back[i].At.Equal(grant.At) && r.back[i].Slack == grant.Slack {
			r.back[i].Starts += starts
			return
		}
	}
	if len(r.back) < mostBack {
		r.back = append(r.back, store.Permit{Starts: starts, At: grant.At, Slack: grant.Slack})
	}
}

// idle gives back what a topic without hot lanes was granted, so that other processes have it. p.mu is held.
func (d *desk) idle(t *topic) {
	r := &t.rated
	if r.left == 0 && len(r.back) == 0 || r.asking {
		return
	}
	for _, other := range d.p.desks {
		if other.rota.lines[t] != nil {
			return
		}
	}
	r.giveBack(r.grant, r.left)
	r.left, r.asking = 0, true
	d.p.short = append(d.p.short, t)
}

// unused takes starts back that a claim did not need.
func (r *rated) unused(grant store.Permit, starts int) {
	if starts > 0 && grant.At.Equal(r.grant.At) && grant.Slack == r.grant.Slack {
		r.left += starts
		return
	}
	r.giveBack(grant, starts)
}

// permit asks for starts of a topic that came short of them, unless that is under way, or too early: who asked last set
// a timer then. p.mu is held.
func (d *desk) permit(t *topic, now time.Time) {
	if r := &t.rated; !r.asking && !now.Before(r.again) {
		r.asking = true
		d.p.short = append(d.p.short, t)
	}
}

// A plea is one call for starts: topics of one shard that came short together, and what is asked for each.
type plea struct {
	shard  int
	topics []*topic
	asks   []store.PermitRequest
	weight int // asks, and grants given back with them
}

// askPermits asks for the topics that came short, those of one shard in one call.
func (d *desk) askPermits(ctx context.Context) {
	for _, call := range d.pleas() {
		d.p.crew.Go(func() { d.ask(ctx, call) })
	}
}

// pleas lays out the calls for the topics that came short. A call carries up to store.MaxBatch asks and grants given back.
func (d *desk) pleas() (calls []*plea) {
	p := d.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.short) == 0 {
		return nil
	}
	open := make(map[int]*plea)
	for _, t := range p.short {
		shard, weight := store.ShardOfTopic(p.opts.Store, t.name.namespace, t.name.name), 1+len(t.rated.back)
		call := open[shard]
		if call == nil || call.weight+weight > store.MaxBatch {
			call = &plea{shard: shard}
			calls, open[shard] = append(calls, call), call
		}
		call.weight += weight
		call.topics = append(call.topics, t)
		call.asks = append(call.asks, store.PermitRequest{
			Namespace: t.name.namespace, Topic: t.name.name, Rate: t.rated.rate, Back: t.rated.back,
			Starts: min(p.demand(t), p.policy(t.name).Workers, store.MaxBatch), Slack: p.slack(d.lag, t.rated.rate),
		})
		t.rated.back = nil
	}
	p.short = nil
	return calls
}

// ask makes a call once. What it gave back counts as given back even when the call failed: had it been taken back twice,
// there would be more starts than the rate allows.
func (d *desk) ask(ctx context.Context, call *plea) {
	p := d.p
	claiming := ctx
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	began := time.Now()
	permits, err := p.opts.Store.Permit(ctx, call.shard, store.NewToken(), call.asks)
	d.lagged(time.Since(began))
	if err != nil {
		if claiming.Err() != nil {
			return // the process stops: nothing is claimed any more
		}
		if len(call.topics) > 1 && !away(err) {
			d.askEach(claiming, call)
			return
		}
		permits = p.unheard(ctx, call, err)
	} else {
		p.heard(call.shard)
	}
	for i, ask := range call.asks {
		if permits[i].Starts < ask.Starts {
			p.opts.Policies.Refresh(ctx) // who claims nothing hears of no change
			break
		}
	}
	waits := make(map[time.Duration]bool, 1)
	p.mu.Lock()
	for i, t := range call.topics {
		if wait := p.granted(t, call.asks[i], permits[i], began); wait > 0 {
			waits[wait] = true
		}
	}
	p.mu.Unlock()
	p.nudgeAll()
	for wait := range waits {
		time.AfterFunc(time.Until(began.Add(wait)), p.nudgeAll)
	}
}

// askEach asks for each topic of a call that failed for another reason than the store's absence, so that one whose starts
// cannot be read stops no other. What the call gave back may have been taken, and is not given back once more.
func (d *desk) askEach(ctx context.Context, call *plea) {
	for i := range call.topics {
		ask := call.asks[i]
		ask.Back = nil
		d.ask(ctx, &plea{shard: call.shard, topics: call.topics[i : i+1], asks: []store.PermitRequest{ask}})
	}
}

// granted notes what came of an ask, and answers after what time since its call more can be asked for; zero: whenever it
// is needed. p.mu is held.
func (p *Pool) granted(t *topic, ask store.PermitRequest, permit store.Permit, began time.Time) (wait time.Duration) {
	r := &t.rated
	r.asking = false
	if ask.Starts > 0 {
		wait = min(permit.Next, askLatest)
	}
	switch {
	case r.rate != ask.Rate: // it was changed meanwhile
		r.giveBack(permit, permit.Starts)
	case permit.Starts > 0:
		r.giveBack(r.grant, r.left)
		r.grant, r.left, r.by = permit, permit.Starts, began.Add(ask.Slack)
		r.again = began.Add(wait)
		if !time.Now().Before(r.by) {
			p.wasLate()
		}
	case ask.Starts > 0:
		r.again = began.Add(wait)
	}
	return wait
}

// unheard tells that a call failed. All of its topics ask again in a while: not as soon as a trip is made again, since a call
// whose answer was lost has spent its starts.
func (p *Pool) unheard(ctx context.Context, call *plea, err error) []store.Permit {
	p.mu.Lock()
	away := &p.desks[call.shard].unheard
	level := away.Level()
	away.Next() // counts the fault; the pause is askLatest
	p.mu.Unlock()
	p.log.Log(ctx, level, "no starts could be asked for", "shard", call.shard, "topic", call.topics[0].name.name,
		"topics", len(call.topics), "err", err)
	return slices.Repeat([]store.Permit{{Next: askLatest}}, len(call.topics))
}

// heard notes that the shard answers.
func (p *Pool) heard(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.desks[shard].unheard.Reset()
}

// nudgeAll makes all desks look again.
func (p *Pool) nudgeAll() {
	for _, d := range p.desks {
		d.nudge()
	}
}

// demand is how many starts a topic's hot lanes have room for, at least 1 where one stands in line. p.mu is held.
func (p *Pool) demand(t *topic) int {
	n, least, looks := 0, 0, maxLooks
	for _, d := range p.desks {
		l := d.rota.lines[t]
		if l == nil {
			continue
		}
		for i := range l.lanes {
			for x := range l.lanes[i].all() {
				n, least = n+max(0, x.slots-x.inFlight), 1
				if looks--; looks == 0 {
					return max(n, least)
				}
			}
		}
	}
	return max(n, least)
}
