package pool

import (
	"slices"

	"github.com/ringback/ringback/policy"
)

// The process's budget of bytes is for bodies that are not sent yet: a receiver that has taken its request, and hangs, holds none
// of it. Nor do topics share it otherwise than attempts (see threshold), or bodies for receivers that cannot be connected to
// would keep all others from being claimed. For the same reason a topic counts as two: its lanes that answer quickly, and the
// others.
//
// How large a body is shows when it is claimed. So a topic is asked while it holds no more than half of its threshold, and a claim
// may bring as much as the other half. Only its first job may be longer than that: it is taken if it fits below the threshold, or
// if its topic holds nothing and nobody else has the place that there is for one job beyond the budget. Else it is put back, and
// its lane waits until it would be taken.
const (
	// bytesWeight is that of the threshold of a topic's bytes.
	bytesWeight = 1
	// claimShare is what part of the budget a claim may bring at most.
	claimShare = 8
)

// unsent counts bytes of bodies.
type unsent struct {
	total  int
	beyond int // of the job that has the place beyond the budget, which is not in total; zero: nobody has it
}

// threshold is how many bytes a topic may hold. p.mu is held.
func (p *Pool) threshold() int {
	return int(threshold(p.opts.MaxBytes-p.bytes.total, p.opts.MaxBytes, bytesWeight))
}

// mayClaim is how many bytes a claim may bring. p.mu is held.
func (p *Pool) mayClaim() int {
	return min(p.threshold()/2, p.opts.MaxBytes/claimShare)
}

// reserve counts what a claim may bring until its answer is there. p.mu is held, as for unreserve.
func (d *desk) reserve(bytes int) {
	d.reserved = bytes
	d.p.bytes.total += bytes
}

// reserveAgain counts what a claim may bring by now, instead of what was reserved before.
func (d *desk) reserveAgain() int {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.unreserve()
	d.reserve(d.p.mayClaim())
	return d.reserved
}

func (d *desk) unreserve() {
	d.p.bytes.total -= d.reserved
	d.reserved = 0
}

// mayHold reports whether lanes of a topic may be asked for more. p.mu is held.
func (p *Pool) mayHold(t *topic, of trouble) bool {
	return *t.unsent(of) <= p.threshold()/2
}

// unsent counts the bytes of a topic's lanes that answer quickly, and those of all others.
func (t *topic) unsent(of trouble) *int {
	if of == none {
		return &t.quick
	}
	return &t.others
}

// fits reports whether a body may be taken that is longer than what a claim may bring, and whether it takes the place beyond the
// budget. p.mu is held.
func (p *Pool) fits(l *lane, body int) (ok, beyond bool) {
	held := *l.topic.unsent(l.trouble)
	switch free := p.opts.MaxBytes - p.bytes.total; {
	case body <= free/2 && held+body <= p.threshold():
		return true, false
	case held == 0 && p.bytes.beyond == 0:
		return true, true
	}
	return false, false
}

// holds counts the body of a claimed job, unless it does not fit. first says that it is the claim's, which may be of any length.
// p.mu is held.
func (a *attempt) holds(room int, first bool) bool {
	p, body := a.desk.p, len(a.held.Body)
	beyond := false
	if first && body > room {
		var ok bool
		if ok, beyond = p.fits(a.lane, body); !ok {
			a.lane.large = body
			return false
		}
	}
	a.lane.large = 0
	a.bytes, a.beyond = body, beyond
	a.lane.addBytes(body)
	if beyond {
		p.bytes.beyond = body
	} else {
		p.bytes.total += body
	}
	return true
}

// addBytes counts bytes of a lane's bodies. p.mu is held.
func (l *lane) addBytes(n int) {
	l.bytes += n
	*l.topic.unsent(l.trouble) += n
}

// letGo takes the body out of the count, and forgets it. p.mu is held.
func (a *attempt) letGo() {
	p := a.desk.p
	a.lane.addBytes(-a.bytes)
	if a.beyond {
		p.bytes.beyond = 0
	} else {
		p.bytes.total -= a.bytes
	}
	a.bytes, a.beyond = 0, false
	a.held.Body = nil // the jobs of a claim lie side by side: one that hangs is not to keep the bodies of all
}

// sent is called by the deliverer when it holds the body no more. Others may have waited for its room.
func (a *attempt) sent() {
	p := a.desk.p
	p.mu.Lock()
	a.letGo()
	scarce := p.scarce
	p.scarce = false
	p.mu.Unlock()
	if scarce {
		p.nudgeAll()
	}
}

// wantsSent reports whether it matters when the attempt's body was sent: short ones stay in the count, since the process has room for
// as many as it has workers, and so do those that a callback repeats.
func (a *attempt) wantsSent(terms policy.Terms) bool {
	p := a.desk.p
	if len(a.held.Body) <= p.opts.MaxBytes/(2*p.opts.Workers) {
		return false
	}
	for _, to := range []*policy.Callback{terms.OnDelivered, terms.OnDead} {
		if to != nil && slices.Contains(to.Include, policy.IncludeBody) {
			return false
		}
	}
	return true
}
