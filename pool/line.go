package pool

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// line is where one topic's hot lanes of a shard take turns. Lanes whose last attempt timed out stand apart, because
// they share at most half of the topic's workers.
type line struct {
	topic    *topic
	well     fifo[*lane]
	suspects fifo[*lane]
	odd      int // 0 and 1 in turn: who gets the odd slot
}

func (l *line) push(x *lane) {
	x.inLine = true
	if x.suspect {
		l.suspects.push(x)
	} else {
		l.well.push(x)
	}
}

func (l *line) len() int { return l.well.len() + l.suspects.len() }

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

// pick chooses for whom to claim: free slots of the process are shared among the topics with hot lanes, those of a topic
// among its lanes, in turn. What is chosen is reserved, and the lanes are marked as asking.
func (r *rota) pick(free int, policyOf func(topicName) policy.Topic) []store.Want {
	var wants []store.Want
	free = min(free, store.MaxBatch)
	looks := maxLooks
	for turns := r.topics.len(); turns > 0 && free > 0 && looks > 0; turns-- {
		l := r.topics.pop()
		terms := policyOf(l.topic.name)
		share := max(1, free/turns)
		suspects := min(share, terms.Workers/2-l.topic.suspects)
		share = min(share, terms.Workers-l.topic.inFlight)
		// Lanes in trouble get at most half of the topic's workers, and of this share while others wait.
		if l.well.len() > 0 {
			l.odd = 1 - l.odd
			suspects = min(suspects, (share+l.odd)/2)
		}
		took := l.pick(&l.suspects, min(suspects, share), terms, &looks, &wants)
		took += l.pick(&l.well, share-took, terms, &looks, &wants)
		free -= took
		if l.len() > 0 {
			r.topics.push(l)
		} else {
			delete(r.lines, l.topic)
		}
	}
	return wants
}

// pick takes lanes out of a line as far as there is room, and puts back those that want more than they got.
func (l *line) pick(from *fifo[*lane], room int, terms policy.Topic, looks *int, wants *[]store.Want) (took int) {
	for waiting := from.len(); waiting > 0 && room > took && *looks > 0 && len(*wants) < store.MaxBatch; waiting-- {
		*looks--
		x := from.pop()
		x.inLine = false
		if !x.hot {
			continue
		}
		if from == &l.well && x.suspect || from == &l.suspects && !x.suspect {
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
		for _, f := range []*fifo[*lane]{&l.well, &l.suspects} {
			for x := range f.all() {
				if len(lanes) >= n {
					return lanes
				}
				lanes = append(lanes, x)
			}
		}
	}
	return lanes
}
