package sched

import (
	"container/list"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// health is what a lane's attempts show of its receiver.
type health uint8

const (
	healthOK      health = iota // its last answer was quick
	healthUnknown               // no answer yet
	// its last answer took longer than SlowAfter, or an attempt is under way for that long
	healthSlow
	healthTimingOut // its last attempt timed out, or it has never answered and one is under way for that long
	healthStates
)

// SlowAfter is how long an answer may take before its lane counts as slow.
const SlowAfter = time.Second

// Topic is the state of a topic that has lanes in use.
type Topic struct {
	name     TopicName
	lanes    int // known lanes; the topic is forgotten with the last
	inFlight int
	byHealth healthCounts
	okBytes  int // of bodies that are not sent yet: those of lanes with healthOK
	bytes    int // those of other lanes
	rate     rateState

	busy               int       // workers at work
	ready              laneQueue // lanes with prefetched jobs and a free slot
	prefetched         int       // claimed jobs that wait for a worker
	prefetchedOf       map[*Shard]int
	prefetchTarget     int
	endedSinceMeasured int
	measuredAt         time.Time
}

// Name returns the topic's name.
func (t *Topic) Name() TopicName { return t.name }

// Lane is the state of a queue.
//
// A runnable lane is queued in its shard, unless all its slots are in use: then its next settlement queues it again.
type Lane struct {
	queue    job.Queue
	topic    *Topic
	shard    *Shard
	inFlight int // jobs asked for or claimed, until their settlement is on its way
	running  int // attempts that workers make
	slots    int // attempts that it may have under way
	health   health

	lastHealth    health  // by the attempt that ended last; health is worse while one hangs
	hanging       int     // attempts under way for longer than SlowAfter
	breaker       Breaker // nil while nothing failed
	breakerPolicy policy.Breaker
	settings      *LaneSettings  // its own; nil: none
	grant         *grant         // of the claim under way; nil: the topic has no rate
	deliver       policy.Deliver // of the claim under way

	runnable            bool // may have claimable jobs
	queued              bool
	claiming            bool // named in the claim under way
	markedWhileClaiming bool // the claim's answer may be out of date
	backlogged          bool // its last claim left jobs or filled its slots; else a wake-up has made it runnable
	likely              int  // jobs that it probably has: one after a wake-up, twice those of a claim that left some
	claimed             int  // jobs that the claim brought whose answer is being read
	leftOut             int  // claims in a row that brought none of its jobs though it had some
	bytes               int  // of bodies that are not sent yet
	nextBody            int  // bytes of its next job's body, which did not fit; zero: not known

	prefetched    fifo[*Job]
	ready         bool      // is in Topic.ready
	cooldownUntil time.Time // prefetched jobs are not attempted before

	idleElement *list.Element // in Scheduler.idle
}

// Topic returns the lane's topic.
func (l *Lane) Topic() *Topic { return l.topic }

// LaneSettings are a lane's own settings. The Scheduler reads their limits; signer and error are for the attempts.
type LaneSettings struct {
	store.Lane

	Signer job.Signer // nil: the topic's signs
	Err    error      // why the settings, or their secrets, cannot be used
}

// Policy returns the settings of the lane; nil: none is set.
func (s *LaneSettings) Policy() policy.Lane {
	if s == nil {
		return policy.Lane{}
	}
	return s.Settings
}

// Limits returns the limits by the policies of topic and lane; nil: the topic's.
func (s *LaneSettings) Limits(topicPolicy policy.Topic) policy.Limits {
	if s == nil {
		return topicPolicy.Limits()
	}
	return s.Settings.Limits().Over(topicPolicy.Limits())
}

// revision returns that of the lane's settings; 0: none.
func (l *Lane) revision() int64 {
	if l.settings == nil {
		return 0
	}
	return l.settings.Revision
}

const (
	// initialSlots is how many attempts a lane may have in flight before its receiver is known.
	initialSlots = 2
	// maxIdleLanes bounds how many lanes without attempts are remembered for their slots.
	maxIdleLanes = 16_384
)

// updateSlots adapts slots and health to a result: an answer doubles the slots up to limit; a timeout, and an answer
// that asks for less, halve them.
func (l *Lane) updateSlots(result policy.Result, limit int) {
	switch {
	case result.Class.Timeout():
		l.slots = max(l.slots/2, 1)
		l.lastHealth = healthTimingOut
	case result.Class == policy.ClassNone:
		if result.Throttled() {
			l.slots = max(l.slots/2, 1)
		} else {
			l.slots = min(l.slots*2, limit)
		}
		l.lastHealth = healthOfDuration(result.Duration)
	case l.lastHealth == healthUnknown && result.Unavailable():
		l.lastHealth = healthOfDuration(result.Duration)
	}
	l.updateHealth()
}

// healthOfDuration classifies a result that is no timeout.
func healthOfDuration(took time.Duration) health {
	if took > SlowAfter {
		return healthSlow
	}
	return healthOK
}

// updateHealth sets the lane's health. Its attempts and bytes are counted under the new one.
func (l *Lane) updateHealth() {
	now := l.lastHealth
	if l.hanging > 0 {
		switch now {
		case healthOK:
			now = healthSlow
		case healthUnknown:
			now = healthTimingOut
		case healthSlow, healthTimingOut, healthStates:
		}
	}
	if n, bytes := l.inFlight, l.bytes; now != l.health {
		l.addInFlight(-n)
		l.addBytes(-bytes)
		l.health = now
		l.addInFlight(n)
		l.addBytes(bytes)
	}
}

// addInFlight counts attempts of the lane.
func (l *Lane) addInFlight(n int) {
	l.inFlight += n
	l.topic.inFlight += n
	l.topic.byHealth[l.health] += n
	l.shard.s.byHealth[l.health] += n
}

// Lane returns the state of a queue that Pick has named; nil for one that is not known.
func (s *Scheduler) Lane(q job.Queue) *Lane { return s.lanes[q] }

// useLane returns the state of a queue, which is not idle any more.
func (sh *Shard) useLane(q job.Queue) *Lane {
	s := sh.s
	if l := s.lanes[q]; l != nil {
		if l.idleElement != nil {
			s.idle.Remove(l.idleElement)
			l.idleElement = nil
		}
		return l
	}
	name := TopicName{q.Namespace, q.Topic}
	t := s.topics[name]
	if t == nil {
		t = &Topic{name: name}
		s.topics[name] = t
	}
	t.lanes++
	l := &Lane{queue: q, topic: t, shard: sh, slots: initialSlots, health: healthUnknown, lastHealth: healthUnknown}
	s.lanes[q] = l
	return l
}

// markIdle notes that a lane may be idle, and forgets the longest idle lanes beyond maxIdleLanes.
func (s *Scheduler) markIdle(l *Lane) {
	if l.runnable || l.claiming || l.inFlight > 0 || l.idleElement != nil {
		return
	}
	l.idleElement = s.idle.PushBack(l)
	for s.idle.Len() > maxIdleLanes {
		oldest, _ := s.idle.Remove(s.idle.Front()).(*Lane)
		delete(s.lanes, oldest.queue)
		if oldest.topic.lanes--; oldest.topic.lanes == 0 {
			delete(s.topics, oldest.topic.name)
		}
	}
}
