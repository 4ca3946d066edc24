package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicQueue is where one topic's hot lanes of a shard take turns. Lanes in trouble stand apart, because they share only a
// part of the workers.
type topicQueue struct {
	topic       *topic
	lanes       [healthStates]fifo[*lane]
	oddSlot     int  // 0 and 1 in turn: who gets the odd slot
	needsStarts bool // its topic's rate allows no start now

	blocksPrefetch bool // stock takes the place of a lane with a rate, which comes first
}

func (l *topicQueue) push(x *lane) {
	x.queued = true
	l.lanes[x.health].push(x)
}

func (l *topicQueue) len() int {
	n := 0
	for i := range l.lanes {
		n += l.lanes[i].len()
	}
	return n
}

// fairQueue is where the topics with hot lanes of a shard take turns.
type fairQueue struct {
	byTopic    map[*topic]*topicQueue
	topics     fifo[*topicQueue]
	topicsLeft int // topics that were not looked at yet in this round
}

// push puts a hot lane in line. p.mu is held, as for all of rota.
func (r *fairQueue) push(x *lane) {
	l := r.byTopic[x.topic]
	if l == nil {
		l = &topicQueue{topic: x.topic}
		r.byTopic[x.topic] = l
		r.topics.push(l)
	}
	l.push(x)
}

// A pickState is what one pick has chosen so far.
type pickState struct {
	scansLeft int   // how many topics and lanes may still be looked at
	only      *lane // no lane in other trouble is picked; nil: any is
	claims    []store.QueueClaim
	tightest  policy.Rate
}

// maxScans bounds how many topics and lanes one pick looks at.
const maxScans = 2 * store.MaxBatch

// pickQueues chooses for whom to claim: free slots of the process are shared among the topics with hot lanes, those of a topic
// among its lanes, in turn. What is chosen is reserved, and the lanes are marked as asking.
// tightest is the shortest window of a rate that one of the lanes has. Where it has looked at maxScans in vain, the round of
// the topics is not over: rota.topicsLeft is not zero, and another pick goes on.
func (s *shardLoop) pickQueues(p *Pool) (wants []store.QueueClaim, tightest policy.Rate) {
	r, now := &s.runnable, time.Now()
	free := p.limit.current - p.inFlight
	batch := min(free, store.MaxBatch)
	c := pickState{scansLeft: maxScans}
	if x := s.largeLane; x != nil && batch > 0 {
		s.largeLane = nil
		if l := r.byTopic[x.topic]; l != nil && x.queued && l.lanes[x.health].toFront(func(y *lane) bool { return y == x }) {
			c.only = x
			s.pickTopic(l, 1, free, now, &c)
			c.only = nil
		}
		if len(c.claims) > 0 {
			return c.claims, c.tightest
		}
	}
	if r.topicsLeft == 0 {
		r.topicsLeft = r.topics.len()
	}
	for r.topicsLeft = min(r.topicsLeft, r.topics.len()); r.topicsLeft > 0 && batch > 0 && c.scansLeft > 0; r.topicsLeft-- {
		c.scansLeft--
		l := r.topics.pop()
		took := s.pickTopic(l, max(1, batch/r.topicsLeft), free, now, &c)
		free -= took
		batch -= took
		if l.len() > 0 {
			r.topics.push(l)
		} else {
			delete(r.byTopic, l.topic)
		}
	}
	return c.claims, c.tightest
}

// pickTopic picks lanes of a topic for up to share attempts, while free are left of the process's. It answers how many were taken.
func (s *shardLoop) pickTopic(l *topicQueue, share, free int, now time.Time, c *pickState) (took int) {
	p, t := s.p, l.topic
	terms := p.topicPolicy(t.name)
	room := terms.Workers - t.inFlight
	share = min(share, room+l.prefetchLimit(p, terms, room), allowance(t.inFlight, free, p.limit.current, totalWeight))
	l.needsStarts, l.blocksPrefetch = false, false
	if !terms.Rate.Limited() {
		return l.pickLanes(p, share, free, terms, c)
	}
	starts := p.startsLeft(&t.rate, terms.Rate, now)
	if l.needsStarts = starts == 0; l.needsStarts {
		s.needPermit(t, now)
	}
	took = l.pickLanes(p, min(share, starts), free, terms, c)
	t.rate.startsLeft -= took
	return took
}

// maxLaneBatch is how many jobs of a lane are claimed in its turn at most while others wait, where there is room for 16 lanes
// with as many: what a lane costs a trip is much the same whatever it gives.
const maxLaneBatch = 8

// pickHealth takes lanes of one trouble out of a line as far as there is room. Those with more come back after the claim.
func (l *topicQueue) pickHealth(p *Pool, from health, room int, terms policy.Topic, c *pickState) (took int) {
	lanes, turn := &l.lanes[from], min(max(1, room/16), maxLaneBatch)
	if lanes.len() == 0 || c.only != nil && c.only.health != from {
		return 0
	}
	if !p.mayAskForBytes(l.topic, from) {
		p.awaitingBytes = true
		return 0
	}
	for waiting := lanes.len(); waiting > 0 && c.scansLeft > 0 && len(c.claims) < store.MaxBatch; waiting-- {
		if x := lanes.first(); x.runnable && x.limits(terms).Rate.Limited() && l.topic.inFlight >= terms.Workers {
			l.blocksPrefetch = true
			break // until the stock is gone: starts count from their claim
		}
		if room <= took {
			break // looked at after the above, since it may be stock that leaves none
		}
		c.scansLeft--
		x := lanes.pop()
		x.queued = false
		if !x.runnable {
			continue
		}
		if x.health != from {
			l.push(x) // it changed sides while it stood in line
			continue
		}
		limits := x.limits(terms)
		x.slots = min(x.slots, limits.Concurrency)
		n := min(x.slots-x.inFlight, max(turn, (room-took)/waiting), room-took)
		if n <= 0 {
			continue // its own next settlement brings it back
		}
		if x.nextBody > p.claimBytes() {
			if ok, _ := p.bodyFits(x, x.nextBody); !ok || len(c.claims) > 0 {
				p.awaitingBytes = true
				l.push(x) // it waits for room, or for a claim that is its own
				if ok {
					x.desk.largeLane = x
				}
				continue
			}
			n = 1
		}
		if limits.Rate.Limited() {
			n = min(n, terms.Workers-l.topic.inFlight)
			if !c.tightest.Limited() || limits.Rate.Per < c.tightest.Per {
				c.tightest = limits.Rate
			}
		}
		x.claiming = true
		x.addInFlight(n)
		took += n
		x.grant, x.grantEnds, x.grantRate = store.Permit{}, time.Time{}, terms.Rate
		if terms.Rate.Limited() {
			x.grant, x.grantEnds = l.topic.rate.grant, l.topic.rate.grantEnds
		}
		c.claims = append(c.claims, store.QueueClaim{Queue: x.queue, Max: n, Timeout: terms.Timeout, Lane: x.revision()})
	}
	return took
}

// maxLanesWithoutStarts bounds the lanes of a topic that stand in line while its rate allows no start: there may be very many, and
// those of other topics must not go unheard for them.
const maxLanesWithoutStarts = 1024

// isFull reports whether no more lanes of a topic may stand in line for now.
func (r *fairQueue) isFull(t *topic) bool {
	l := r.byTopic[t]
	return l != nil && l.needsStarts && l.len() >= maxLanesWithoutStarts
}

// hasWaiting reports whether lanes stand in line that another process might serve: none does while a rate allows no start.
func (r *fairQueue) hasWaiting() bool {
	for l := range r.topics.all() {
		if !l.needsStarts {
			return true
		}
	}
	return false
}

// firstWaiting names up to n hot lanes that stand in line and that another process might serve, from its head.
func (r *fairQueue) firstWaiting(n int) []*lane {
	var lanes []*lane
	for l := range r.topics.all() {
		if l.needsStarts {
			continue
		}
		for i := range l.lanes {
			for x := range l.lanes[i].all() {
				if len(lanes) >= n {
					return lanes
				}
				lanes = append(lanes, x)
			}
		}
	}
	return lanes
}
