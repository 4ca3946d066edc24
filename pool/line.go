package pool

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// line is where one topic's hot lanes of a shard take turns. Lanes in trouble stand apart, because they share only a
// part of the workers.
type line struct {
	topic *topic
	lanes [troubles]fifo[*lane]
	odd   int // 0 and 1 in turn: who gets the odd slot
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

// maxLooks bounds how many lanes one pick looks at.
const maxLooks = 2 * store.MaxBatch

// Of a topic's workers, and of the process's, lanes that time out get at most half, and together with slow ones at most
// three quarters: the rest is for lanes that answer quickly, or that nothing is known of.
func stuckShare(workers int) int   { return max(1, workers/2) }
func troubleShare(workers int) int { return max(1, workers*3/4) }

// pick chooses for whom to claim: free slots of the process are shared among the topics with hot lanes, those of a topic
// among its lanes, in turn. What is chosen is reserved, and the lanes are marked as asking.
func (r *rota) pick(p *Pool) []store.Want {
	var wants []store.Want
	free := min(p.opts.Workers-p.inFlight, store.MaxBatch)
	looks := maxLooks
	for turns := r.topics.len(); turns > 0 && free > 0 && looks > 0; turns-- {
		l := r.topics.pop()
		terms := p.policy(l.topic.name)
		share := min(max(1, free/turns), terms.Workers-l.topic.inFlight)
		bad := share // of it, for lanes in trouble: at most half while others wait
		if l.lanes[none].len() > 0 {
			l.odd = 1 - l.odd
			bad = (share + l.odd) / 2
		}
		took := l.pick(stuck, min(bad,
			stuckShare(terms.Workers)-l.topic.inTrouble[stuck], stuckShare(p.opts.Workers)-p.inTrouble[stuck]),
			terms, &looks, &wants)
		took += l.pick(slow, min(bad-took,
			troubleShare(terms.Workers)-l.topic.inTrouble[stuck]-l.topic.inTrouble[slow],
			troubleShare(p.opts.Workers)-p.inTrouble[stuck]-p.inTrouble[slow]),
			terms, &looks, &wants)
		took += l.pick(none, share-took, terms, &looks, &wants)
		free -= took
		if l.len() > 0 {
			r.topics.push(l)
		} else {
			delete(r.lines, l.topic)
		}
	}
	return wants
}

// pick takes lanes of one trouble out of a line as far as there is room. Those with more come back after the claim.
func (l *line) pick(from trouble, room int, terms policy.Topic, looks *int, wants *[]store.Want) (took int) {
	lanes := &l.lanes[from]
	for waiting := lanes.len(); waiting > 0 && room > took && *looks > 0 && len(*wants) < store.MaxBatch; waiting-- {
		*looks--
		x := lanes.pop()
		x.inLine = false
		if !x.hot {
			continue
		}
		if x.trouble != from {
			l.push(x) // it changed sides while it stood in line
			continue
		}
		x.slots = min(x.slots, terms.LaneConcurrency)
		n := min(x.slots-x.inFlight, max(1, (room-took)/waiting))
		if n <= 0 {
			continue // its own next settlement brings it back
		}
		x.asking = true
		x.take(n)
		took += n
		*wants = append(*wants, store.Want{Queue: x.queue, Max: n, Timeout: terms.Timeout})
	}
	return took
}

// some names up to n hot lanes that stand in line, from its head.
func (r *rota) some(n int) []*lane {
	var lanes []*lane
	for l := range r.topics.all() {
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
