package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// line is where one topic's hot lanes of a shard take turns. Lanes in trouble stand apart, because they share only a
// part of the workers.
type line struct {
	topic *topic
	lanes [troubles]fifo[*lane]
	odd   int  // 0 and 1 in turn: who gets the odd slot
	short bool // its topic's rate allows no start now

	yields bool // stock takes the place of a lane with a rate, which comes first
}

func (l *line) push(x *lane) {
	x.inLine = true
	l.lanes[x.trouble].push(x)
}

func (l *line) len() int {
	n := 0
	for i := range l.lanes {
		n += l.lanes[i].len()
	}
	return n
}

// rota is where the topics with hot lanes of a shard take turns.
type rota struct {
	lines  map[*topic]*line
	topics fifo[*line]
	left   int // topics that were not looked at yet in this round
}

// push puts a hot lane in line. p.mu is held, as for all of rota.
func (r *rota) push(x *lane) {
	l := r.lines[x.topic]
	if l == nil {
		l = &line{topic: x.topic}
		r.lines[x.topic] = l
		r.topics.push(l)
	}
	l.push(x)
}

// A choice is what one pick has chosen so far.
type choice struct {
	looks    int   // how many topics and lanes may still be looked at
	only     *lane // no lane in other trouble is picked; nil: any is
	wants    []store.QueueClaim
	tightest policy.Rate
}

// maxLooks bounds how many topics and lanes one pick looks at.
const maxLooks = 2 * store.MaxBatch

// pick chooses for whom to claim: free slots of the process are shared among the topics with hot lanes, those of a topic
// among its lanes, in turn. What is chosen is reserved, and the lanes are marked as asking.
// tightest is the shortest window of a rate that one of the lanes has. Where it has looked at maxLooks in vain, the round of
// the topics is not over: rota.left is not zero, and another pick goes on.
func (d *desk) pick(p *Pool) (wants []store.QueueClaim, tightest policy.Rate) {
	r, now := &d.rota, time.Now()
	free := p.limit.now - p.inFlight
	batch := min(free, store.MaxBatch)
	c := choice{looks: maxLooks}
	if x := d.large; x != nil && batch > 0 {
		d.large = nil
		if l := r.lines[x.topic]; l != nil && x.inLine && l.lanes[x.trouble].toFront(func(y *lane) bool { return y == x }) {
			c.only = x
			d.turn(l, 1, free, now, &c)
			c.only = nil
		}
		if len(c.wants) > 0 {
			return c.wants, c.tightest
		}
	}
	if r.left == 0 {
		r.left = r.topics.len()
	}
	for r.left = min(r.left, r.topics.len()); r.left > 0 && batch > 0 && c.looks > 0; r.left-- {
		c.looks--
		l := r.topics.pop()
		took := d.turn(l, max(1, batch/r.left), free, now, &c)
		free -= took
		batch -= took
		if l.len() > 0 {
			r.topics.push(l)
		} else {
			delete(r.lines, l.topic)
		}
	}
	return c.wants, c.tightest
}

// turn picks lanes of a topic for up to share attempts, while free are left of the process's. It answers how many were taken.
func (d *desk) turn(l *line, share, free int, now time.Time, c *choice) (took int) {
	p, t := d.p, l.topic
	terms := p.policy(t.name)
	room := terms.Workers - t.inFlight
	share = min(share, room+l.mayStock(p, terms, room), allowance(t.inFlight, free, p.limit.now, totalWeight))
	l.short, l.yields = false, false
	if !terms.Rate.Limited() {
		return l.serve(p, share, free, terms, c)
	}
	starts := p.starts(&t.rated, terms.Rate, now)
	if l.short = starts == 0; l.short {
		d.permit(t, now)
	}
	took = l.serve(p, min(share, starts), free, terms, c)
	t.rated.left -= took
	return took
}

// mostTurn is how many jobs of a lane are claimed in its turn at most while others wait, where there is room for 16 lanes
// with as many: what a lane costs a trip is much the same whatever it gives.
const mostTurn = 8

// pick takes lanes of one trouble out of a line as far as there is room. Those with more come back after the claim.
func (l *line) pick(p *Pool, from trouble, room int, terms policy.Topic, c *choice) (took int) {
	lanes, turn := &l.lanes[from], min(max(1, room/16), mostTurn)
	if lanes.len() == 0 || c.only != nil && c.only.trouble != from {
		return 0
	}
	if !p.mayHold(l.topic, from) {
		p.scarce = true
		return 0
	}
	for waiting := lanes.len(); waiting > 0 && c.looks > 0 && len(c.wants) < store.MaxBatch; waiting-- {
		if x := lanes.first(); x.hot && x.limits(terms).Rate.Limited() && l.topic.inFlight >= terms.Workers {
			l.yields = true
			break // until the stock is gone: starts count from their claim
		}
		if room <= took {
			break // looked at after the above, since it may be stock that leaves none
		}
		c.looks--
		x := lanes.pop()
		x.inLine = false
		if !x.hot {
			continue
		}
		if x.trouble != from {
			l.push(x) // it changed sides while it stood in line
			continue
		}
		limits := x.limits(terms)
		x.slots = min(x.slots, limits.Concurrency)
		n := min(x.slots-x.inFlight, max(turn, (room-took)/waiting), room-took)
		if n <= 0 {
			continue // its own next settlement brings it back
		}
		if x.large > p.mayClaim() {
			if ok, _ := p.fits(x, x.large); !ok || len(c.wants) > 0 {
				p.scarce = true
				l.push(x) // it waits for room, or for a claim that is its own
				if ok {
					x.desk.large = x
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
		x.asking = true
		x.take(n)
		took += n
		x.grant, x.by, x.rate = store.Permit{}, time.Time{}, terms.Rate
		if terms.Rate.Limited() {
			x.grant, x.by = l.topic.rated.grant, l.topic.rated.by
		}
		c.wants = append(c.wants, store.QueueClaim{Queue: x.queue, Max: n, Timeout: terms.Timeout, Lane: x.revision()})
	}
	return took
}

// mostShort bounds the lanes of a topic that stand in line while its rate allows no start: there may be very many, and
// those of other topics must not go unheard for them.
const mostShort = 1024

// full reports whether no more lanes of a topic may stand in line for now.
func (r *rota) full(t *topic) bool {
	l := r.lines[t]
	return l != nil && l.short && l.len() >= mostShort
}

// parked reports whether lanes stand in line that another process might serve: none does while a rate allows no start.
func (r *rota) parked() bool {
	for l := range r.topics.all() {
		if !l.short {
			return true
		}
	}
	return false
}

// some names up to n hot lanes that stand in line and that another process might serve, from its head.
func (r *rota) some(n int) []*lane {
	var lanes []*lane
	for l := range r.topics.all() {
		if l.short {
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
