package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Jobs are claimed ahead of the workers that will attempt them: who ends an attempt begins with the next without waiting
// for a trip, and a trip carries more. How many is measured, not set: what the topic ends in three trips' time, so that
// receivers that answer slowly, or hang, have no stock.
const (
	// mostAhead bounds the attempts of a topic that wait for a worker.
	mostAhead = 512
	// leastTrip is what a trip is taken to last at least, with the time in which settlements gather.
	leastTrip = 3 * time.Millisecond
	// gatherMost is how many settlements a desk lets gather while there is stock for the workers, and gatherFor how long
	// the first of them waits at most.
	gatherMost = 128
	gatherFor  = 2 * time.Millisecond
	// gatherTopics is with how many topics in line at most a desk lets settlements gather.
	gatherTopics = 8
	// staleStock is how long an attempt may wait for a worker at least before another process may have it.
	staleStock = 250 * time.Millisecond
)

// pace notes what a trip settles of each topic, and what that is in time. p.mu is held.
func (d *desk) pace(items []settled, now time.Time) {
	for i := range items {
		if items[i].Verdict.Kind != policy.Released {
			items[i].lane.topic.ended++
		}
	}
	for i := range items {
		t := items[i].lane.topic
		trip := max(d.lag, leastTrip)
		if past := now.Sub(t.paced); past >= 4*trip { // else attempts that end together would look like a crowd
			t.ahead = int(min(mostAhead, 3*int64(t.ended)*int64(trip)/int64(past)))
			t.ended, t.paced = 0, now
		}
	}
}

// mayStock is how many jobs may be claimed ahead for a topic with lanes in line, whose workers have room: none under a
// rate, whose starts count from their claim; none while lanes are in line that share only a part of the workers, or that
// have a rate and come first, since stock would take their place; and all stock has at most half of what the process's
// workers do not use. p.mu is held.
func (l *line) mayStock(p *Pool, terms policy.Topic, room int) int {
	if l.topic.ahead == 0 || terms.Rate.Limited() || p.bytes.total > p.opts.MaxBytes/2 {
		return 0
	}
	for _, d := range p.desks { // stock of one desk would take the place of lanes of all
		if other := d.rota.lines[l.topic]; other != nil && (other.yields || other.lanes[slow].len()+other.lanes[stuck].len() > 0) {
			return 0
		}
	}
	return min(l.topic.ahead, max(0, (p.limit.now-p.inFlight-max(0, room)-p.stock)/2))
}

// admit takes in claimed attempts of a desk, and answers those with which workers can begin. p.mu is held.
func (d *desk) admit(begun []*attempt, now time.Time) (ready []*attempt) {
	for _, a := range begun {
		a.admitted = now
		a.lane.topic.waiting.push(a)
	}
	d.stocks(len(begun))
	ready = make([]*attempt, 0, len(begun))
	var served *topic
	for _, a := range begun {
		t := a.lane.topic
		if t == served || t.waiting.len() == 0 {
			continue // its workers have what they take
		}
		served = t
		for workers := d.p.policy(t.name).Workers; t.busy < workers && t.waiting.len() > 0; t.busy++ {
			ready = append(ready, d.p.begin(t, now))
		}
	}
	return ready
}

// begin takes the attempt out that has waited longest, for a worker that makes it now. p.mu is held.
func (p *Pool) begin(t *topic, now time.Time) *attempt {
	a := t.waiting.pop()
	a.desk.stocks(-1)
	p.watch(a, now)
	return a
}

// stocks counts attempts that wait for a worker. p.mu is held.
func (d *desk) stocks(n int) {
	d.stock += n
	d.p.stock += n
}

// next is the attempt with which a worker goes on; nil: there is none, or the topic has more workers than it may. One whose
// lane was held back or paused while it waited is not to be made.
func (p *Pool) next(t *topic) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping && t.waiting.len() > 0 {
		if terms := p.policy(t.name); t.busy <= terms.Workers {
			now := time.Now()
			a := p.begin(t, now)
			a.void = now.Before(a.lane.holds) || a.lane.limits(terms).Paused
			return a
		}
	}
	t.busy--
	return nil
}

// gathers reports whether settlements wait for more: the workers have as much to go on with. They do not where a topic in
// line has nothing in stock. p.mu is held.
func (d *desk) gathers() bool {
	if d.hurried || d.p.stopping || len(d.ended) == 0 || len(d.ended) >= min(d.stock/2, gatherMost) {
		return false
	}
	n := 0
	for l := range d.rota.topics.all() {
		if n++; n > gatherTopics || l.topic.waiting.len() == 0 {
			return false
		}
	}
	return true
}

// hurry has the next trip made whatever might be gathered.
func (d *desk) hurry() {
	d.p.mu.Lock()
	d.hurried = true
	d.p.mu.Unlock()
}

// waits reports whether the last look at it left settlements, and whether attempts wait for workers.
func (d *desk) waits() (left, stocked bool) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	return len(d.ended) > 0, d.stock > 0
}

// staleAfter is how long an attempt may wait for a worker: a slow store brings stock for longer.
func (d *desk) staleAfter() time.Duration {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	return max(staleStock, 4*d.lag)
}

// unstock puts attempts back that no worker took within a time: their workers hang, and another process may have some.
func (d *desk) unstock(ctx context.Context, after time.Duration) {
	p := d.p
	p.mu.Lock()
	var back []*attempt
	if d.stock > 0 {
		since := time.Now().Add(-after)
		for _, t := range p.topics {
			for n := t.waiting.len(); n > 0; n-- {
				a := t.waiting.pop()
				if a.desk != d || a.admitted.After(since) {
					t.waiting.push(a)
					continue
				}
				t.ahead, t.ended, t.paced = 0, 0, time.Now()
				d.stocks(-1)
				back = append(back, a)
			}
		}
	}
	p.mu.Unlock()
	for _, a := range back {
		a.putBack(ctx, 0, store.LaneChange{})
	}
}

// unhold lets the stock of a lane go on: the settlement that held it back was refused. A lane that was forgotten meanwhile
// has none.
func (d *desk) unhold(l *lane) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	l.holds = time.Time{}
}
