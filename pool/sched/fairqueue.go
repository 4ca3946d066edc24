package sched

import (
	"iter"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicQueue holds one topic's runnable lanes of a shard by their health, since those in trouble share only a part of
// the workers.
type topicQueue struct {
	topic       *Topic
	lanes       [healthStates]laneQueue
	oddSlot     int  // 0 and 1 in turn: who gets an odd slot
	needsStarts bool // its topic's rate allows no start now

	blocksPrefetch bool // prefetched jobs take the place of a lane with a rate, which comes first
}

func (q *topicQueue) push(l *Lane) {
	l.queued = true
	q.lanes[l.health].push(l, !l.backlogged)
}

func (q *topicQueue) len() int {
	n := 0
	for i := range q.lanes {
		n += q.lanes[i].len()
	}
	return n
}

// laneQueue holds lanes. Woken ones take turns with backlogged ones: a job in a lane without others does
// not wait for every lane with a backlog, and neither kind starves.
type laneQueue struct {
	woken, backlogged fifo[*Lane]
	lastWoken         bool // the last pop took a woken lane
}

func (q *laneQueue) len() int { return q.woken.len() + q.backlogged.len() }

func (q *laneQueue) push(l *Lane, woken bool) {
	if woken {
		q.woken.push(l)
	} else {
		q.backlogged.push(l)
	}
}

// next returns the fifo that pop takes from.
func (q *laneQueue) next() *fifo[*Lane] {
	if q.woken.len() > 0 && (!q.lastWoken || q.backlogged.len() == 0) {
		return &q.woken
	}
	return &q.backlogged
}

// first returns the lane that pop takes next. The queue must not be empty.
func (q *laneQueue) first() *Lane { return q.next().first() }

// pop takes the first lane. The queue must not be empty.
func (q *laneQueue) pop() *Lane {
	from := q.next()
	q.lastWoken = from == &q.woken
	return from.pop()
}

// all goes over the lanes in turn.
func (q *laneQueue) all() iter.Seq[*Lane] {
	return func(yield func(*Lane) bool) {
		for i := range max(q.woken.len(), q.backlogged.len()) {
			for _, lanes := range []*fifo[*Lane]{&q.woken, &q.backlogged} {
				if i < lanes.len() && !yield(lanes.at(i)) {
					return
				}
			}
		}
	}
}

// toFront makes l the lane that pop takes next, and reports whether it is queued.
func (q *laneQueue) toFront(l *Lane) bool {
	isIt := func(x *Lane) bool { return x == l }
	woken := q.woken.toFront(isIt)
	if !woken && !q.backlogged.toFront(isIt) {
		return false
	}
	q.lastWoken = !woken
	return true
}

// fairQueue holds the topics with runnable lanes of a shard, which take turns.
type fairQueue struct {
	byTopic    map[*Topic]*topicQueue
	topics     fifo[*topicQueue]
	topicsLeft int // topics that were not looked at yet in this round
}

// push queues a runnable lane.
func (f *fairQueue) push(l *Lane) {
	q := f.byTopic[l.topic]
	if q == nil {
		q = &topicQueue{topic: l.topic}
		f.byTopic[l.topic] = q
		f.topics.push(q)
	}
	q.push(l)
}

// pickState is what one pick has chosen so far.
type pickState struct {
	now       time.Time
	scansLeft int   // how many topics and lanes may still be looked at
	only      *Lane // no lane of other health is picked; nil: any is
	onlyCount bool  // jobs that can probably begin are counted, and no lane is picked
	ahead     int   // jobs that the lanes of the topic may have beyond their slots
	claims    []store.QueueClaim
	tightest  policy.Rate
}

const (
	// maxScans bounds how many topics and lanes one pick looks at.
	maxScans = 2 * store.MaxBatch
	// maxLaneBatch is how many jobs of a lane are claimed in its turn at most while others wait, where there is room
	// for eight lanes with as many: what a lane costs a call is much the same whatever it gives.
	maxLaneBatch = 16
	// maxLanesWithoutStarts bounds the queued lanes of a topic whose rate allows no start.
	maxLanesWithoutStarts = 1024
)

// pickQueues shares the free slots of the process among the topics with runnable lanes, and those of a topic among its
// lanes, in turn. It reserves what it chooses and marks the lanes as claiming. tightest is the shortest window of their
// rates. A pick that ends after maxScans is continued by the next one: topicsLeft is then not zero.
func (sh *Shard) pickQueues(now time.Time) (claims []store.QueueClaim, tightest policy.Rate) {
	s, f := sh.s, &sh.runnable
	free := s.limit.current - s.inFlight
	batch := min(free, store.MaxBatch)
	c := pickState{now: now, scansLeft: maxScans}
	if l := sh.largeLane; l != nil && batch > 0 {
		sh.largeLane = nil
		if q := f.byTopic[l.topic]; q != nil && l.queued && q.lanes[l.health].toFront(l) {
			c.only = l
			sh.pickTopic(q, 1, free, &c)
			c.only = nil
		}
		if len(c.claims) > 0 {
			return c.claims, c.tightest
		}
	}
	if f.topicsLeft == 0 {
		if f.topicsLeft = f.topics.len(); f.topicsLeft > 1 {
			f.topics.push(f.topics.pop()) // a round that reaches all topics must not always begin with the same one
		}
	}
	for f.topicsLeft = min(f.topicsLeft, f.topics.len()); f.topicsLeft > 0 && batch > 0 &&
		c.scansLeft > 0; f.topicsLeft-- {
		c.scansLeft--
		q := f.topics.pop()
		took := sh.pickTopic(q, max(1, batch/f.topicsLeft), free, &c)
		free -= took
		batch -= took
		if q.len() > 0 {
			f.topics.push(q)
		} else {
			delete(f.byTopic, q.topic)
		}
	}
	return c.claims, c.tightest
}

// pickTopic picks lanes of a topic for up to share attempts, while free are left of the process's. It returns how many
// were taken.
func (sh *Shard) pickTopic(q *topicQueue, share, free int, c *pickState) (took int) {
	s, t := sh.s, q.topic
	if s.opts.IsFull != nil && s.opts.IsFull(t.name) {
		return 0
	}
	topicPolicy := s.opts.Policy(t.name)
	room := topicPolicy.Workers - t.inFlight + t.prefetched
	c.ahead = sh.prefetchRoom(t, topicPolicy, room)
	share = min(share, room+c.ahead, capacity.Allowance(t.inFlight, free, s.limit.current, capacity.AttemptsWeight))
	q.needsStarts, q.blocksPrefetch = false, false
	if !topicPolicy.Rate.Limited() {
		return q.pickLanes(s, share, free, topicPolicy, c)
	}
	starts := t.startsLeft(topicPolicy.Rate, c.now)
	if q.needsStarts = starts == 0; q.needsStarts {
		s.needPermit(t, share, free, topicPolicy, c)
		return 0
	}
	took = q.pickLanes(s, min(share, starts), free, topicPolicy, c)
	t.rate.grant.left -= took
	return took
}

// pickLanes picks lanes of a topic for share of the process's attempts, while free are left. First come lanes that time
// out, then slow ones, both of which get at most half of the share while others wait. Then come lanes without an answer
// and those that answer quickly, by how many of each are queued. It returns how many attempts were taken.
func (q *topicQueue) pickLanes(s *Scheduler, share, free int, topicPolicy policy.Topic, c *pickState) int {
	pick := func(of health, room int) int { return q.pickHealth(s, of, room, topicPolicy, c) }
	n, all, workers := &q.topic.byHealth, &s.byHealth, s.limit.current
	unproven := capacity.Allowance(
		n[healthUnknown]+n[healthTimingOut], free-unprovenReserve(workers), workers, unprovenWeight,
	)
	bad, fresh, others := share, q.lanes[healthUnknown].len(), q.lanes[healthUnknown].len()+q.lanes[healthOK].len()
	if others > 0 {
		q.oddSlot = 1 - q.oddSlot
		bad = (share + q.oddSlot) / 2
	}
	took := pick(healthTimingOut, min(bad, unproven, timingOutShare(topicPolicy.Workers)-n[healthTimingOut],
		timingOutShare(workers)-all[healthTimingOut]))
	unproven -= took
	took += pick(healthSlow, min(
		bad-took, slowShare(topicPolicy.Workers)-n[healthTimingOut]-n[healthSlow],
		slowShare(workers)-all[healthTimingOut]-all[healthSlow],
	))
	left := share - took
	unproven = min(unproven, unknownShare(topicPolicy.Workers)-n[healthTimingOut]-n[healthSlow]-n[healthUnknown])
	if others > 0 {
		fresh = (left*fresh + others - 1) / others
	}
	first := pick(healthUnknown, min(fresh, unproven))
	left -= first
	left -= pick(healthOK, left)
	left -= pick(healthUnknown, min(left, unproven-first))
	return share - left
}

// pickHealth picks lanes of one health as far as there is room. Those with more jobs are queued again after the claim.
func (q *topicQueue) pickHealth(s *Scheduler, of health, room int, topicPolicy policy.Topic, c *pickState) (took int) {
	lanes, turn := &q.lanes[of], min(max(1, room/8), maxLaneBatch)
	if lanes.len() == 0 || c.only != nil && c.only.health != of {
		return 0
	}
	if !s.mayAskForBytes(q.topic, of) {
		s.awaitingBytes = true
		return 0
	}
	if c.onlyCount {
		for l := range lanes.all() {
			if c.scansLeft--; took >= room || c.scansLeft < 0 {
				break
			}
			took += max(0, min(l.likely, l.slots-l.inFlight, room-took))
		}
		return took
	}
	var later []*Lane // seen once in a pick
	for waiting := lanes.len(); waiting > 0 && c.scansLeft > 0 && len(c.claims) < store.MaxBatch; waiting-- {
		if l := lanes.first(); l.runnable && l.settings.Limits(topicPolicy).Rate.Limited() &&
			q.topic.inFlight >= topicPolicy.Workers {
			q.blocksPrefetch = true
			break // until the prefetched jobs are gone: starts count from their claim
		}
		if room <= took {
			break // checked after the above, since prefetched jobs may be what leaves no room
		}
		c.scansLeft--
		l := lanes.pop()
		l.queued = false
		if !l.runnable {
			continue
		}
		if l.health != of {
			q.push(l) // it changed while it was queued
			continue
		}
		limits := l.settings.Limits(topicPolicy)
		l.slots = min(l.slots, limits.Concurrency)
		free := l.slots - l.inFlight
		if l.slots == limits.Concurrency && of == healthOK && !limits.Rate.Limited() && !limits.Ordered {
			free += c.ahead
		}
		n := min(free, max(turn, (room-took)/waiting), room-took)
		if n <= 0 {
			continue // its own next settlement queues it again
		}
		if l.nextBody > s.claimBytes() {
			if ok, _ := s.bodyFits(l, l.nextBody); !ok || len(c.claims) > 0 {
				s.awaitingBytes = true
				later = append(later, l) // it waits for room, or to be claimed alone
				if ok {
					l.shard.largeLane = l
				}
				continue
			}
			n = 1
		}
		if limits.Rate.Limited() {
			n = min(n, topicPolicy.Workers-q.topic.inFlight)
			if !c.tightest.Limited() || limits.Rate.Per < c.tightest.Per {
				c.tightest = limits.Rate
			}
		}
		ahead := max(0, l.inFlight+n-l.slots)
		c.ahead -= min(n, ahead)
		l.claiming = true
		l.addInFlight(n)
		took += n
		l.grant, l.deliver = nil, policy.DeliverPush
		if s.opts.Deliver != nil {
			l.deliver = s.opts.Deliver(q.topic.name)
		}
		if topicPolicy.Rate.Limited() {
			l.grant = q.topic.rate.grant
		}
		c.claims = append(c.claims, store.QueueClaim{
			Queue: l.queue, Max: n, Timeout: topicPolicy.Timeout, LaneRevision: l.revision(),
			Ahead: ahead, Deliver: l.deliver,
		})
	}
	for _, l := range later {
		q.push(l)
	}
	return took
}

// isFull reports whether no more lanes of a topic may be queued: its rate allows no start, and lanes of other topics
// need the room.
func (f *fairQueue) isFull(t *Topic) bool {
	q := f.byTopic[t]
	return q != nil && q.needsStarts && q.len() >= maxLanesWithoutStarts
}

// hasWaiting reports whether lanes are queued that another process could serve: none of a topic without starts.
func (f *fairQueue) hasWaiting() bool {
	for q := range f.topics.all() {
		if !q.needsStarts {
			return true
		}
	}
	return false
}

// firstWaiting returns up to n queues that another process could serve, about as they take turns.
func (f *fairQueue) firstWaiting(n int) (queues []job.Queue) {
	for q := range f.topics.all() {
		if q.needsStarts {
			continue
		}
		for i := range q.lanes {
			for l := range q.lanes[i].all() {
				if len(queues) >= n {
					return queues
				}
				queues = append(queues, l.queue)
			}
		}
	}
	return queues
}
