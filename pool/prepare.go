package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// prepareExchange takes the settlements that wait and reserves room for a claim. What is settled gives its room back now, since
// the store settles before it claims. more says that nothing was found to be done, but not all were looked at.
func (s *shardLoop) prepareExchange() (items []settlement, request store.ClaimRequest, more bool) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.shouldBatch() {
		return nil, store.ClaimRequest{}, false
	}
	s.batchTimedOut = false
	n := s.settlementBatch()
	items = s.ended[:n:n]
	s.ended = s.ended[n:]
	if len(s.ended) == 0 {
		s.ended = nil
	}
	s.measureRate(items, time.Now())
	for i := range items {
		l := items[i].lane
		p.inFlight--
		l.subInFlight(1)
		if l.runnable && !l.queued && !l.claiming {
			s.runnable.push(l)
		}
		p.markIdle(l)
	}
	if n > 0 {
		p.notifyOthers(s)
	}
	request = store.ClaimRequest{Margin: p.opts.Margin + min(2*s.callTime, maxExtraLease), MaxBytes: p.claimBytes()}
	if p.stopping || time.Now().Before(p.limit.resumeAt) {
		return items, request, false
	}
	if p.lastClaimer == s && p.othersWaiting(s) {
		// Who settles would always be the first to take the room: let another desk have its turn.
		p.lastClaimer = nil
		s.wake()
		return items, request, false
	}
	p.narrowStartWindow()
	var tightest policy.Rate
	request.Queues, tightest = s.pickQueues(p)
	request.Slack = p.startWindow(s.callTime, tightest)
	if len(request.Queues) > 0 {
		p.lastClaimer = s
	}
	for _, w := range request.Queues {
		request.Max += w.Max
	}
	p.inFlight += request.Max
	if request.Max > 0 {
		s.reserveBytes(request.MaxBytes)
	}
	return items, request, len(items)+len(request.Queues) == 0 && s.runnable.topicsLeft > 0 && p.inFlight < p.limit.current
}

// maxOutboxBytes bounds the bodies of what the settlements of one trip give birth to; one settlement always fits.
const maxOutboxBytes = 8 << 20

// settlementBatch is how many of the settlements that wait go with the next trip. p.mu is held.
func (s *shardLoop) settlementBatch() int {
	n := min(len(s.ended), store.MaxBatch)
	bytes := 0
	for i := range n {
		for _, b := range s.ended[i].Outbox {
			bytes += len(b.Body)
		}
		if i > 0 && bytes > maxOutboxBytes {
			return i
		}
	}
	return n
}

// notifyOthers tells other desks with lanes in line, which may have waited for room. p.mu is held.
func (p *Pool) notifyOthers(by *shardLoop) {
	for _, s := range p.shards {
		if s != by && s.runnable.hasWaiting() {
			s.wake()
		}
	}
}

// othersWaiting reports whether lanes of another desk stand in line. p.mu is held.
func (p *Pool) othersWaiting(but *shardLoop) bool {
	for _, s := range p.shards {
		if s != but && s.runnable.hasWaiting() {
			return true
		}
	}
	return false
}
