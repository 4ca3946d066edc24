package pool

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// start hands claimed jobs to workers and notes what the claim said of the queues.
func (d *desk) start(ctx, work context.Context, request store.ClaimRequest, claimed store.ClaimResult, at asked) {
	p := d.p
	if len(request.Queues) == 0 {
		return
	}
	current := p.opts.Policies.Sync(ctx, claimed.Revision)
	changed := d.settings(claimed.Queues)
	attempts, begun := make([]attempt, len(claimed.Jobs)), make([]*attempt, len(claimed.Jobs))
	p.mu.Lock()
	d.unreserve()
	var of *lane
	for i := range claimed.Jobs {
		h := &claimed.Jobs[i]
		if i == 0 || h.Queue != claimed.Jobs[i-1].Queue { // those of a lane come together
			of = p.lanes[h.Queue]
		}
		of.came++
		begun[i] = &attempts[i]
		attempts[i] = attempt{
			desk: d, lane: of, held: h, began: at.last, until: at.last.Add(h.LeaseFor), slack: request.Slack, stale: !current,
		}
	}
	var back *attempt // there is no room for its body
	if len(begun) > 0 && !begun[0].holds(request.MaxBytes, true) {
		back = begun[0]
	}
	for _, a := range begun[min(1, len(begun)):] {
		a.holds(request.MaxBytes, false)
	}
	d.working += len(begun)
	var used []*topic // of those with a rate
	for i, w := range request.Queues {
		l := p.lanes[w.Queue]
		unused := w.Max - l.came
		l.came = 0
		p.inFlight -= unused
		l.give(unused)
		if !l.by.IsZero() {
			l.topic.rated.unused(l.grant, unused)
			used = append(used, l.topic)
		}
		if i < len(changed) && changed[i] != nil {
			l.settings = changed[i]
		}
		left := store.QueueStatus{}
		if i < len(claimed.Queues) {
			left = claimed.Queues[i]
		}
		d.after(l, left)
	}
	for _, t := range used {
		d.idle(t)
	}
	for _, a := range begun {
		a.settings, a.by, a.grant, a.rate = a.lane.settings, a.lane.by, a.lane.grant, a.lane.rate
		// A rate counts from the claim that took effect: that may be the first call, whose answer was lost.
		if by := at.first.Add(request.Slack); a.held.Rated && (a.by.IsZero() || by.Before(a.by)) {
			a.by = by
		}
	}
	stopping := p.stopping
	if back != nil {
		begun = begun[1:]
	}
	if !stopping {
		begun = d.admit(begun, time.Now())
	}
	scarce := p.scarce
	p.scarce = false
	p.mu.Unlock()
	d.nudge()
	if scarce {
		p.nudgeAll() // what was reserved and not needed
	}
	if back != nil {
		back.putBack(work, 0, store.LaneChange{})
	}
	for _, a := range begun {
		if stopping {
			a.release(work, 0)
			continue
		}
		p.hand(work, a)
	}
}

// settings are those of the lanes of a claim that have others than were known; nil: they are known.
func (d *desk) settings(queues []store.QueueStatus) []*settings {
	var changed []*settings
	for i := range queues {
		if queues[i].Lane == nil {
			continue
		}
		if changed == nil {
			changed = make([]*settings, len(queues))
		}
		s := &settings{Lane: *queues[i].Lane}
		if len(s.Settings.Secrets) > 0 {
			s.signer, s.err = d.p.opts.Policies.Signer(s.Lane)
		}
		changed[i] = s
	}
	return changed
}

// after notes how a queue stands after a claim. p.mu is held.
func (d *desk) after(l *lane, left store.QueueStatus) {
	l.asking = false
	switch {
	case left.BreakerOpen:
		l.slots = 1 // it comes back slowly
	case l.breaker != nil && l.breaker.State() != gobreaker.StateClosed:
		l.breaker = nil // another process had the probe
	}
	switch {
	case left.More || l.again:
		l.hot = true
	case left.Blocked && l.inFlight > 0:
		l.hot = true // its own settlements may unblock it
	default:
		l.hot = false
	}
	waits := left.Blocked && !l.again
	l.again = false
	if l.hot && !waits {
		d.rota.push(l)
	}
	d.p.rest(l)
}

// heat notes that queues have claimable jobs.
func (d *desk) heat(queues []job.Queue) {
	d.p.mu.Lock()
	for _, q := range queues {
		l := d.p.lane(d, q)
		switch {
		case l.asking:
			l.again = true
		case !l.inLine && d.rota.full(l.topic):
			d.p.rest(l) // it is rung for again within a second
		case !l.inLine:
			l.hot = true
			d.rota.push(l)
		}
	}
	d.p.mu.Unlock()
	d.nudge()
}
