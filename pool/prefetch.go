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
	// maxPrefetch bounds the attempts of a topic that wait for a worker.
	maxPrefetch = 512
	// minExchangeTime is what a trip is taken to last at least, with the time in which settlements gather.
	minExchangeTime = 3 * time.Millisecond
	// maxBatchedSettlements is how many settlements a desk lets gather while there is stock for the workers, and maxBatchWait how long
	// the first of them waits at most.
	maxBatchedSettlements = 128
	maxBatchWait          = 2 * time.Millisecond
	// maxTopicsToBatch is with how many topics in line at most a desk lets settlements gather.
	maxTopicsToBatch = 8
	// minPrefetchMaxAge is how long an attempt may wait for a worker at least before another process may have it.
	minPrefetchMaxAge = 250 * time.Millisecond
)

// measureRate notes what a trip settles of each topic, and what that is in time. p.mu is held.
func (s *shardLoop) measureRate(items []settlement, now time.Time) {
	for i := range items {
		if items[i].Verdict.Kind != policy.Released {
			items[i].lane.topic.endedSinceMeasured++
		}
	}
	for i := range items {
		t := items[i].lane.topic
		trip := max(s.callTime, minExchangeTime)
		if past := now.Sub(t.measuredAt); past >= 4*trip { // else attempts that end together would look like a crowd
			t.prefetchTarget = int(min(maxPrefetch, 3*int64(t.endedSinceMeasured)*int64(trip)/int64(past)))
			t.endedSinceMeasured, t.measuredAt = 0, now
		}
	}
}

// prefetchLimit is how many jobs may be claimed ahead for a topic with lanes in line, whose workers have room: none under a
// rate, whose starts count from their claim; none while lanes are in line that share only a part of the workers, or that
// have a rate and come first, since stock would take their place; and all stock has at most half of what the process's
// workers do not use. p.mu is held.
func (l *topicQueue) prefetchLimit(p *Pool, terms policy.Topic, room int) int {
	if l.topic.prefetchTarget == 0 || terms.Rate.Limited() || p.bytes.total > p.opts.MaxBytes/2 {
		return 0
	}
	for _, s := range p.shards { // stock of one desk would take the place of lanes of all
		if other := s.runnable.byTopic[l.topic]; other != nil && (other.blocksPrefetch || other.lanes[healthSlow].len()+other.lanes[healthTimingOut].len() > 0) {
			return 0
		}
	}
	return min(l.topic.prefetchTarget, max(0, (p.limit.current-p.inFlight-max(0, room)-p.prefetched)/2))
}

// queueClaimed takes in claimed attempts of a desk, and answers those with which workers can begin. p.mu is held.
func (s *shardLoop) queueClaimed(begun []*attempt, now time.Time) (ready []*attempt) {
	for _, a := range begun {
		a.queuedAt = now
		a.lane.topic.prefetched.push(a)
	}
	s.countPrefetched(len(begun))
	ready = make([]*attempt, 0, len(begun))
	var served *topic
	for _, a := range begun {
		t := a.lane.topic
		if t == served || t.prefetched.len() == 0 {
			continue // its workers have what they take
		}
		served = t
		for workers := s.p.topicPolicy(t.name).Workers; t.busy < workers && t.prefetched.len() > 0; t.busy++ {
			ready = append(ready, s.p.startPrefetched(t, now))
		}
	}
	return ready
}

// startPrefetched takes the attempt out that has waited longest, for a worker that makes it now. p.mu is held.
func (p *Pool) startPrefetched(t *topic, now time.Time) *attempt {
	a := t.prefetched.pop()
	a.shard.countPrefetched(-1)
	p.startHangTimer(a, now)
	return a
}

// countPrefetched counts attempts that wait for a worker. p.mu is held.
func (s *shardLoop) countPrefetched(n int) {
	s.prefetched += n
	s.p.prefetched += n
}

// nextPrefetched is the attempt with which a worker goes on; nil: there is none, or the topic has more workers than it may. One whose
// lane was held back or paused while it waited is not to be made.
func (p *Pool) nextPrefetched(t *topic) *attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.stopping && t.prefetched.len() > 0 {
		if terms := p.topicPolicy(t.name); t.busy <= terms.Workers {
			now := time.Now()
			a := p.startPrefetched(t, now)
			a.cancelled = now.Before(a.lane.cooldownUntil) || a.lane.limits(terms).Paused
			return a
		}
	}
	t.busy--
	return nil
}

// shouldBatch reports whether settlements wait for more: the workers have as much to go on with. They do not where a topic in
// topicQueue has nothing in stock. p.mu is held.
func (s *shardLoop) shouldBatch() bool {
	if s.batchTimedOut || s.p.stopping || len(s.ended) == 0 || len(s.ended) >= min(s.prefetched/2, maxBatchedSettlements) {
		return false
	}
	n := 0
	for l := range s.runnable.topics.all() {
		if n++; n > maxTopicsToBatch || l.topic.prefetched.len() == 0 {
			return false
		}
	}
	return true
}

// endBatching has the next trip made whatever might be gathered.
func (s *shardLoop) endBatching() {
	s.p.mu.Lock()
	s.batchTimedOut = true
	s.p.mu.Unlock()
}

// pending reports whether the last look at it left settlements, and whether attempts wait for workers.
func (s *shardLoop) pending() (left, stocked bool) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return len(s.ended) > 0, s.prefetched > 0
}

// prefetchMaxAge is how long an attempt may wait for a worker: a slow store brings stock for longer.
func (s *shardLoop) prefetchMaxAge() time.Duration {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	return max(minPrefetchMaxAge, 4*s.callTime)
}

// dropStalePrefetch puts attempts back that no worker took within a time: their workers hang, and another process may have some.
func (s *shardLoop) dropStalePrefetch(ctx context.Context, after time.Duration) {
	p := s.p
	p.mu.Lock()
	var back []*attempt
	if s.prefetched > 0 {
		since := time.Now().Add(-after)
		for _, t := range p.topics {
			for n := t.prefetched.len(); n > 0; n-- {
				a := t.prefetched.pop()
				if a.shard != s || a.queuedAt.After(since) {
					t.prefetched.push(a)
					continue
				}
				t.prefetchTarget, t.endedSinceMeasured, t.measuredAt = 0, 0, time.Now()
				s.countPrefetched(-1)
				back = append(back, a)
			}
		}
	}
	p.mu.Unlock()
	for _, a := range back {
		a.releaseUnrecorded(ctx, 0, store.LaneChange{})
	}
}

// endCooldown lets the stock of a lane go on: the settlement that held it back was refused. A lane that was forgotten meanwhile
// has none.
func (s *shardLoop) endCooldown(l *lane) {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	l.cooldownUntil = time.Time{}
}
