package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// prepare takes the settlements that wait and reserves room for a claim. What is settled gives its room back now, since
// the store settles before it claims. more says that nothing was found to be done, but not all were looked at.
func (d *desk) prepare() (items []settled, request store.ClaimRequest, more bool) {
	p := d.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if d.gathers() {
		return nil, store.ClaimRequest{}, false
	}
	d.hurried = false
	n := d.portion()
	items = d.ended[:n:n]
	d.ended = d.ended[n:]
	if len(d.ended) == 0 {
		d.ended = nil
	}
	d.pace(items, time.Now())
	for i := range items {
		l := items[i].lane
		p.inFlight--
		l.give(1)
		if l.hot && !l.inLine && !l.asking {
			d.rota.push(l)
		}
		p.rest(l)
	}
	if n > 0 {
		p.freed(d)
	}
	request = store.ClaimRequest{Margin: p.opts.Margin + min(2*d.lag, mostLag), MaxBytes: p.mayClaim()}
	if p.stopping || time.Now().Before(p.limit.resume) {
		return items, request, false
	}
	if p.last == d && p.hungry(d) {
		// Who settles would always be the first to take the room: let another desk have its turn.
		p.last = nil
		d.nudge()
		return items, request, false
	}
	p.onTime()
	var tightest policy.Rate
	request.Queues, tightest = d.pick(p)
	request.Slack = p.slack(d.lag, tightest)
	if len(request.Queues) > 0 {
		p.last = d
	}
	for _, w := range request.Queues {
		request.Max += w.Max
	}
	p.inFlight += request.Max
	if request.Max > 0 {
		d.reserve(request.MaxBytes)
	}
	return items, request, len(items)+len(request.Queues) == 0 && d.rota.left > 0 && p.inFlight < p.limit.now
}

// birthBytes bounds the bodies of what the settlements of one trip give birth to; one settlement always fits.
const birthBytes = 8 << 20

// portion is how many of the settlements that wait go with the next trip. p.mu is held.
func (d *desk) portion() int {
	n := min(len(d.ended), store.MaxBatch)
	bytes := 0
	for i := range n {
		for _, b := range d.ended[i].Outbox {
			bytes += len(b.Body)
		}
		if i > 0 && bytes > birthBytes {
			return i
		}
	}
	return n
}

// freed tells other desks with lanes in line, which may have waited for room. p.mu is held.
func (p *Pool) freed(by *desk) {
	for _, d := range p.desks {
		if d != by && d.rota.parked() {
			d.nudge()
		}
	}
}

// hungry reports whether lanes of another desk stand in line. p.mu is held.
func (p *Pool) hungry(but *desk) bool {
	for _, d := range p.desks {
		if d != but && d.rota.parked() {
			return true
		}
	}
	return false
}
