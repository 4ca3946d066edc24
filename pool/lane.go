package pool

import (
	"container/list"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// topicName names a topic in a namespace.
type topicName struct{ namespace, name string }

// health says what a lane's last attempt showed of its receiver.
type health uint8

const (
	healthOK        health = iota // it answered quickly
	healthUnknown                 // it has not answered yet
	healthSlow                    // it answered after more than slowAfter, or quickly before and not for so long now
	healthTimingOut               // it timed out, or has never answered and not for so long now
	healthStates
)

// slowAfter is how long an answer may take before its lane counts as slow: also while it is waited for.
const slowAfter = time.Second

// topic is what the pool knows of a topic while it has lanes in use.
type topic struct {
	name               topicName
	idleWorkers        chan *attempt  // takes an attempt when a worker is idle
	lanes              int            // known lanes, to forget the topic with the last
	busy               int            // workers at work
	prefetched         fifo[*attempt] // claimed ahead of a worker
	prefetchTarget     int            // how many may be
	endedSinceMeasured int            // since paced
	measuredAt         time.Time      // when a trip settled attempts of it last
	inFlight           int
	byHealth           healthCounts
	okBytes            int // bytes of bodies that are not sent yet: of lanes that answer quickly
	otherBytes         int // and of all others
	rate               rateState
}

// lane is what the pool knows of a queue.
//
// A hot lane is either in its desk's line, where it takes turns, or out of it because all its slots are in use; then the
// next settlement of its own brings it back.
type lane struct {
	queue      job.Queue
	topic      *topic
	desk       *shardLoop
	inFlight   int // reserved or claimed, until their settlement is on its way
	slots      int
	health     health
	lastHealth health       // by the attempt that ended last; trouble is worse while one hangs
	hanging    int          // attempts in flight for longer than slowAfter
	breaker    *breaker     // nil while nothing failed
	settings   *settings    // of its own; nil: none
	grant      store.Permit // under which the claim under way asks, where the topic has a rate; by is when it ends
	grantEnds  time.Time
	grantRate  policy.Rate // the topic's, under which it asks

	runnable            bool // may have claimable jobs
	queued              bool
	claiming            bool // named in the trip under way
	markedWhileClaiming bool // rung while asking: what the trip answers may be out of date
	claimed             int  // jobs that the claim brought whose answer is being taken in
	bytes               int  // of bodies that are not sent yet
	nextBody            int  // the body of its next job, which was put back because there was no room for it; zero: not known

	cooldownUntil time.Time // what waits in stock is not attempted before: an attempt showed so

	idleElement *list.Element // where it is among the idle lanes, when it is
}

// settings are a lane's own, with what they amount to.
type settings struct {
	store.Lane
	signer job.Signer // nil: the topic's signs
	err    error      // why the lane's secrets cannot be used
}

// limits are what holds for the lane of its topic's and its own.
func (l *lane) limits(terms policy.Topic) policy.Limits {
	if l.settings == nil {
		return terms.Limits(policy.Lane{})
	}
	return terms.Limits(l.settings.Settings)
}

// revision is that of the lane's settings.
func (l *lane) revision() int64 {
	if l.settings == nil {
		return 0
	}
	return l.settings.Revision
}

// initialSlots is how many attempts a lane may have in flight before anything is known of its receiver.
const initialSlots = 2

// maxIdleLanes bounds how many lanes are remembered that have nothing in flight, for their slots.
const maxIdleLanes = 16_384

// updateSlots adapts the lane to what an attempt showed: an answer doubles its slots; a timeout, and an answer that asks for
// less, halve them.
func (l *lane) updateSlots(result policy.Result, most int) {
	switch {
	case result.Class.Timeout():
		l.slots = max(l.slots/2, 1)
		l.lastHealth = healthTimingOut
	case result.Class == policy.ClassNone:
		if result.Throttled() {
			l.slots = max(l.slots/2, 1)
		} else {
			l.slots = min(l.slots*2, most)
		}
		l.lastHealth = healthOfDuration(result)
	case l.lastHealth == healthUnknown && result.Unavailable():
		l.lastHealth = healthOfDuration(result)
	}
	l.updateHealth()
}

// healthOfDuration is what the time shows that a result took which is no timeout.
func healthOfDuration(result policy.Result) health {
	if result.Duration > slowAfter {
		return healthSlow
	}
	return healthOK
}

// updateHealth sets the lane's trouble to what is known of it now. Attempts under way change sides with their lane.
func (l *lane) updateHealth() {
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

// addInFlight and give move the counts of attempts in flight.
func (l *lane) addInFlight(n int) {
	l.inFlight += n
	l.topic.inFlight += n
	l.topic.byHealth[l.health] += n
	l.desk.p.byHealth[l.health] += n
}

func (l *lane) subInFlight(n int) { l.addInFlight(-n) }

// laneLRU remembers idle lanes, the longest idle first.
type laneLRU struct{ order list.List }

// useLane finds or makes what is known of a queue. p.mu is held.
func (p *Pool) useLane(s *shardLoop, q job.Queue) *lane {
	if l := p.lanes[q]; l != nil {
		if l.idleElement != nil {
			p.idleLanes.order.Remove(l.idleElement)
			l.idleElement = nil
		}
		return l
	}
	name := topicName{q.Namespace, q.Topic}
	t := p.topics[name]
	if t == nil {
		t = &topic{name: name, idleWorkers: make(chan *attempt)}
		p.topics[name] = t
	}
	t.lanes++
	l := &lane{queue: q, topic: t, desk: s, slots: initialSlots, health: healthUnknown, lastHealth: healthUnknown}
	p.lanes[q] = l
	return l
}

// markIdle notes that a lane may be idle now, and forgets the longest idle ones beyond what is remembered. p.mu is held.
func (p *Pool) markIdle(l *lane) {
	if l.runnable || l.claiming || l.inFlight > 0 || l.idleElement != nil {
		return
	}
	l.idleElement = p.idleLanes.order.PushBack(l)
	for p.idleLanes.order.Len() > maxIdleLanes {
		oldest, _ := p.idleLanes.order.Remove(p.idleLanes.order.Front()).(*lane)
		delete(p.lanes, oldest.queue)
		if oldest.topic.lanes--; oldest.topic.lanes == 0 {
			delete(p.topics, oldest.topic.name)
		}
	}
}
