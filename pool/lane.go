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

// trouble says what a lane's last attempt showed of its receiver.
type trouble uint8

const (
	none    trouble = iota // it answered quickly
	unknown                // it has not answered yet
	slow                   // it answered after more than slowAnswer, or quickly before and not for so long now
	stuck                  // it timed out, or has never answered and not for so long now
	troubles
)

// slowAnswer is how long an answer may take before its lane counts as slow: also while it is waited for.
const slowAnswer = time.Second

// topic is what the pool knows of a topic while it has lanes in use.
type topic struct {
	name      topicName
	work      chan *attempt  // takes an attempt when a worker is idle
	lanes     int            // known lanes, to forget the topic with the last
	busy      int            // workers at work
	waiting   fifo[*attempt] // claimed ahead of a worker
	ahead     int            // how many may be
	ended     int            // since paced
	paced     time.Time      // when a trip settled attempts of it last
	inFlight  int
	inTrouble byTrouble
	quick     int // bytes of bodies that are not sent yet: of lanes that answer quickly
	others    int // and of all others
	rated     rated
}

// lane is what the pool knows of a queue.
//
// A hot lane is either in its desk's line, where it takes turns, or out of it because all its slots are in use; then the
// next settlement of its own brings it back.
type lane struct {
	queue    job.Queue
	topic    *topic
	desk     *desk
	inFlight int // reserved or claimed, until their settlement is on its way
	slots    int
	trouble  trouble
	shown    trouble      // by the attempt that ended last; trouble is worse while one hangs
	hanging  int          // attempts in flight for longer than slowAnswer
	breaker  *breaker     // nil while nothing failed
	settings *settings    // of its own; nil: none
	grant    store.Permit // under which the claim under way asks, where the topic has a rate; by is when it ends
	by       time.Time
	rate     policy.Rate // the topic's, under which it asks

	hot    bool // may have claimable jobs
	inLine bool
	asking bool // named in the trip under way
	again  bool // rung while asking: what the trip answers may be out of date
	came   int  // jobs that the claim brought whose answer is being taken in
	bytes  int  // of bodies that are not sent yet
	large  int  // the body of its next job, which was put back because there was no room for it; zero: not known

	holds time.Time // what waits in stock is not attempted before: an attempt showed so

	idle *list.Element // where it is among the idle lanes, when it is
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

// firstSlots is how many attempts a lane may have in flight before anything is known of its receiver.
const firstSlots = 2

// maxIdleLanes bounds how many lanes are remembered that have nothing in flight, for their slots.
const maxIdleLanes = 16_384

// learn adapts the lane to what an attempt showed: an answer doubles its slots; a timeout, and an answer that asks for
// less, halve them.
func (l *lane) learn(result policy.Result, most int) {
	switch {
	case result.Class.Timeout():
		l.slots = max(l.slots/2, 1)
		l.shown = stuck
	case result.Class == policy.ClassNone:
		if result.Throttled() {
			l.slots = max(l.slots/2, 1)
		} else {
			l.slots = min(l.slots*2, most)
		}
		l.shown = speed(result)
	case l.shown == unknown && result.Unavailable():
		l.shown = speed(result)
	}
	l.judge()
}

// speed is what the time shows that a result took which is no timeout.
func speed(result policy.Result) trouble {
	if result.Duration > slowAnswer {
		return slow
	}
	return none
}

// judge sets the lane's trouble to what is known of it now. Attempts under way change sides with their lane.
func (l *lane) judge() {
	now := l.shown
	if l.hanging > 0 {
		switch now {
		case none:
			now = slow
		case unknown:
			now = stuck
		case slow, stuck, troubles:
		}
	}
	if n, bytes := l.inFlight, l.bytes; now != l.trouble {
		l.take(-n)
		l.addBytes(-bytes)
		l.trouble = now
		l.take(n)
		l.addBytes(bytes)
	}
}

// take and give move the counts of attempts in flight.
func (l *lane) take(n int) {
	l.inFlight += n
	l.topic.inFlight += n
	l.topic.inTrouble[l.trouble] += n
	l.desk.p.inTrouble[l.trouble] += n
}

func (l *lane) give(n int) { l.take(-n) }

// lanesByUse remembers idle lanes, the longest idle first.
type lanesByUse struct{ order list.List }

// lane finds or makes what is known of a queue. p.mu is held.
func (p *Pool) lane(d *desk, q job.Queue) *lane {
	if l := p.lanes[q]; l != nil {
		if l.idle != nil {
			p.idle.order.Remove(l.idle)
			l.idle = nil
		}
		return l
	}
	name := topicName{q.Namespace, q.Topic}
	t := p.topics[name]
	if t == nil {
		t = &topic{name: name, work: make(chan *attempt)}
		p.topics[name] = t
	}
	t.lanes++
	l := &lane{queue: q, topic: t, desk: d, slots: firstSlots, trouble: unknown, shown: unknown}
	p.lanes[q] = l
	return l
}

// rest notes that a lane may be idle now, and forgets the longest idle ones beyond what is remembered. p.mu is held.
func (p *Pool) rest(l *lane) {
	if l.hot || l.asking || l.inFlight > 0 || l.idle != nil {
		return
	}
	l.idle = p.idle.order.PushBack(l)
	for p.idle.order.Len() > maxIdleLanes {
		oldest, _ := p.idle.order.Remove(p.idle.order.Front()).(*lane)
		delete(p.lanes, oldest.queue)
		if oldest.topic.lanes--; oldest.topic.lanes == 0 {
			delete(p.topics, oldest.topic.name)
		}
	}
}
