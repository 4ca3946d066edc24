package pool

import (
	"context"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// startClaimed hands claimed jobs to workers and notes what the claim said of the queues.
func (s *shardLoop) startClaimed(ctx, work context.Context, request store.ClaimRequest, claimed store.ClaimResult, at callTimes) {
	p := s.p
	if len(request.Queues) == 0 {
		return
	}
	current := p.opts.Policies.Sync(ctx, claimed.Revision)
	changed := s.changedSettings(claimed.Queues)
	attempts, begun := make([]attempt, len(claimed.Jobs)), make([]*attempt, len(claimed.Jobs))
	p.mu.Lock()
	s.releaseBytes()
	var of *lane
	for i := range claimed.Jobs {
		h := &claimed.Jobs[i]
		if i == 0 || h.Queue != claimed.Jobs[i-1].Queue { // those of a lane come together
			of = p.lanes[h.Queue]
		}
		of.claimed++
		begun[i] = &attempts[i]
		attempts[i] = attempt{
			shard: s, lane: of, job: h, claimStarted: at.last, leaseEnds: at.last.Add(h.LeaseFor), startWindow: request.Slack, policyStale: !current,
		}
	}
	var back *attempt // there is no room for its body
	if len(begun) > 0 && !begun[0].takeBytes(request.MaxBytes, true) {
		back = begun[0]
	}
	for _, a := range begun[min(1, len(begun)):] {
		a.takeBytes(request.MaxBytes, false)
	}
	s.working += len(begun)
	var used []*topic // of those with a rate
	for i, w := range request.Queues {
		l := p.lanes[w.Queue]
		unused := w.Max - l.claimed
		l.claimed = 0
		p.inFlight -= unused
		l.subInFlight(unused)
		if !l.grantEnds.IsZero() {
			l.topic.rate.addUnused(l.grant, unused)
			used = append(used, l.topic)
		}
		if i < len(changed) && changed[i] != nil {
			l.settings = changed[i]
		}
		left := store.QueueStatus{}
		if i < len(claimed.Queues) {
			left = claimed.Queues[i]
		}
		s.updateLane(l, left)
	}
	for _, t := range used {
		s.returnUnusedPermits(t)
	}
	for _, a := range begun {
		a.settings, a.startBy, a.grant, a.rate = a.lane.settings, a.lane.grantEnds, a.lane.grant, a.lane.grantRate
		// A rate counts from the claim that took effect: that may be the first call, whose answer was lost.
		if by := at.first.Add(request.Slack); a.job.Rated && (a.startBy.IsZero() || by.Before(a.startBy)) {
			a.startBy = by
		}
	}
	stopping := p.stopping
	if back != nil {
		begun = begun[1:]
	}
	if !stopping {
		begun = s.queueClaimed(begun, time.Now())
	}
	scarce := p.awaitingBytes
	p.awaitingBytes = false
	p.mu.Unlock()
	s.wake()
	if scarce {
		p.wakeAll() // what was reserved and not needed
	}
	if back != nil {
		back.releaseUnrecorded(work, 0, store.LaneChange{})
	}
	for _, a := range begun {
		if stopping {
			a.release(work, 0)
			continue
		}
		p.assign(work, a)
	}
}

// changedSettings are those of the lanes of a claim that have others than were known; nil: they are known.
func (s *shardLoop) changedSettings(queues []store.QueueStatus) []*settings {
	var changed []*settings
	for i := range queues {
		if queues[i].Lane == nil {
			continue
		}
		if changed == nil {
			changed = make([]*settings, len(queues))
		}
		own := &settings{Lane: *queues[i].Lane}
		if len(own.Settings.Secrets) > 0 {
			own.signer, own.err = s.p.opts.Policies.Signer(own.Lane)
		}
		changed[i] = own
	}
	return changed
}

// updateLane notes how a queue stands after a claim. p.mu is held.
func (s *shardLoop) updateLane(l *lane, left store.QueueStatus) {
	l.claiming = false
	switch {
	case left.BreakerOpen:
		l.slots = 1 // it comes back slowly
	case l.breaker != nil && l.breaker.State() != gobreaker.StateClosed:
		l.breaker = nil // another process had the probe
	}
	switch {
	case left.More || l.markedWhileClaiming:
		l.runnable = true
	case left.Blocked && l.inFlight > 0:
		l.runnable = true // its own settlements may unblock it
	default:
		l.runnable = false
	}
	waits := left.Blocked && !l.markedWhileClaiming
	l.markedWhileClaiming = false
	if l.runnable && !waits {
		s.runnable.push(l)
	}
	s.p.markIdle(l)
}

// markRunnable notes that queues have claimable jobs.
func (s *shardLoop) markRunnable(queues []job.Queue) {
	s.p.mu.Lock()
	for _, q := range queues {
		l := s.p.useLane(s, q)
		switch {
		case l.claiming:
			l.markedWhileClaiming = true
		case !l.queued && s.runnable.isFull(l.topic):
			s.p.markIdle(l) // it is rung for again within a second
		case !l.queued:
			l.runnable = true
			s.runnable.push(l)
		}
	}
	s.p.mu.Unlock()
	s.wake()
}
