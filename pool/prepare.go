package pool

import (
	"time"

	"github.com/ringback/ringback/pool/sched"
	"github.com/ringback/ringback/store"
)

// prepareExchange takes the pending settlements and reserves workers for a claim. more reports that there is nothing to
// do yet, but not all queues were checked.
func (s *shardLoop) prepareExchange() (items []settlement, request store.ClaimRequest, more bool) {
	p := s.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.shouldBatch() {
		return nil, request, false
	}
	s.batchTimedOut = false
	items = s.takeSettlements()
	now := time.Now()
	lanes := make([]*sched.Lane, len(items))
	for i := range items {
		lanes[i] = items[i].lane
	}
	s.scheduler.Settle(lanes, now)
	request, more = s.scheduler.Pick(now)
	request.Margin = store.LeaseMargin + s.scheduler.ExtraLease()
	return items, request, more && len(items) == 0
}

// maxOutboxBytes bounds the bodies in the outboxes of one exchange's settlements; one settlement always fits.
const maxOutboxBytes = 8 << 20

// takeSettlements removes and returns the settlements of the next exchange. The caller holds the pool's mutex.
func (s *shardLoop) takeSettlements() []settlement {
	n, bytes := min(len(s.settlements), store.MaxBatch), 0
	for i := range n {
		for _, b := range s.settlements[i].Outbox {
			bytes += len(b.Body)
		}
		if i > 0 && bytes > maxOutboxBytes {
			n = i
			break
		}
	}
	items := s.settlements[:n:n]
	if s.settlements = s.settlements[n:]; len(s.settlements) == 0 {
		s.settlements = nil
	}
	return items
}

// renewBytes replaces the claim's reservation of bytes by the current limit, and returns it.
func (s *shardLoop) renewBytes() int {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return s.scheduler.RenewBytes()
}
