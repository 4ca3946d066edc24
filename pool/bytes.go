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

// byteBudget counts bytes of bodies.
type byteBudget struct {
	total     int
	oversized int // of the job that has the place beyond the budget, which is not in total; zero: nobody has it
}

// dynamicThreshold is how many bytes a topic may hold. p.mu is held.
func (p *Pool) byteThreshold() int {
	return int(dynamicThreshold(p.opts.MaxBytes-p.bytes.total, p.opts.MaxBytes, bytesWeight))
}

// claimBytes is how many bytes a claim may bring. p.mu is held.
func (p *Pool) claimBytes() int {
	return min(p.byteThreshold()/2, p.opts.MaxBytes/claimShare)
}

// reserveBytes counts what a claim may bring until its answer is there. p.mu is held, as for unreserve.
func (s *shardLoop) reserveBytes(bytes int) {
	s.reservedBytes = bytes
	s.p.bytes.total += bytes
}

// renewByteReservation counts what a claim may bring by now, instead of what was reserved before.
func (s *shardLoop) renewByteReservation() int {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	s.releaseBytes()
	s.reserveBytes(s.p.claimBytes())
	return s.reservedBytes
}

func (s *shardLoop) releaseBytes() {
	s.p.bytes.total -= s.reservedBytes
	s.reservedBytes = 0
}

// mayAskForBytes reports whether lanes of a topic may be asked for more. p.mu is held.
func (p *Pool) mayAskForBytes(t *topic, of health) bool {
	return *t.unsentBytes(of) <= p.byteThreshold()/2
}

// byteBudget counts the bytes of a topic's lanes that answer quickly, and those of all others.
func (t *topic) unsentBytes(of health) *int {
	if of == healthOK {
		return &t.okBytes
	}
	return &t.otherBytes
}

// bodyFits reports whether a body may be taken that is longer than what a claim may bring, and whether it takes the place beyond the
// budget. p.mu is held.
func (p *Pool) bodyFits(l *lane, body int) (ok, beyond bool) {
	held := *l.topic.unsentBytes(l.health)
	switch free := p.opts.MaxBytes - p.bytes.total; {
	case body <= free/2 && held+body <= p.byteThreshold():
		return true, false
	case held == 0 && p.bytes.oversized == 0:
		return true, true
	}
	return false, false
}

// takeBytes counts the body of a claimed job, unless it does not fit. first says that it is the claim's, which may be of any length.
// p.mu is held.
func (a *attempt) takeBytes(room int, first bool) bool {
	p, body := a.shard.p, len(a.job.Body)
	beyond := false
	if first && body > room {
		var ok bool
		if ok, beyond = p.bodyFits(a.lane, body); !ok {
			a.lane.nextBody = body
			return false
		}
	}
	a.lane.nextBody = 0
	a.bytes, a.oversized = body, beyond
	a.lane.addBytes(body)
	if beyond {
		p.bytes.oversized = body
	} else {
		p.bytes.total += body
	}
	return true
}

// addBytes counts bytes of a lane's bodies. p.mu is held.
func (l *lane) addBytes(n int) {
	l.bytes += n
	*l.topic.unsentBytes(l.health) += n
}

// releaseBytes takes the body out of the count, and forgets it. p.mu is held.
func (a *attempt) releaseBytes() {
	p := a.shard.p
	a.lane.addBytes(-a.bytes)
	if a.oversized {
		p.bytes.oversized = 0
	} else {
		p.bytes.total -= a.bytes
	}
	a.bytes, a.oversized = 0, false
	a.job.Body = nil // the jobs of a claim lie side by side: one that hangs is not to keep the bodies of all
}

// bodySent is called by the deliverer when it holds the body no more. Others may have waited for its room.
func (a *attempt) bodySent() {
	p := a.shard.p
	p.mu.Lock()
	a.releaseBytes()
	scarce := p.awaitingBytes
	p.awaitingBytes = false
	p.mu.Unlock()
	if scarce {
		p.wakeAll()
	}
}

// tracksSent reports whether it matters when the attempt's body was sent: short ones stay in the count, since the process has room for
// as many as it has workers, and so do those that a callback repeats.
func (a *attempt) tracksSent(terms policy.Terms) bool {
	p := a.shard.p
	if len(a.job.Body) <= p.opts.MaxBytes/(2*p.opts.Workers) {
		return false
	}
	for _, to := range []*policy.Callback{terms.OnDelivered, terms.OnDead} {
		if to != nil && slices.Contains(to.Include, policy.IncludeBody) {
			return false
		}
	}
	return true
}
