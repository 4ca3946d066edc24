package dispatcher

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// paces spread the starts of a revival, all of them and those of each lane.
type paces struct {
	how   store.RevivePlan
	all   pace
	lanes map[job.Queue]*pace
}

func newPaces(how store.RevivePlan) *paces {
	return &paces{how: how, all: pace{rate: how.Rate, after: how.After}, lanes: make(map[job.Queue]*pace)}
}

// next is the wait of the next start of a queue.
func (p *paces) next(q job.Queue) time.Duration {
	wait := p.all.next()
	if !p.how.LaneRate.Limited() {
		return wait
	}
	if p.lanes[q] == nil {
		p.lanes[q] = &pace{rate: p.how.LaneRate, after: p.how.After}
	}
	return max(wait, p.lanes[q].next())
}

// come is the wait of whatever would start next, in whichever lane: whoever goes on from there is too fast for none of
// them. Zero when nothing is paced.
func (p *paces) come() time.Duration {
	if !p.how.Rate.Limited() && !p.how.LaneRate.Limited() {
		return 0
	}
	wait := p.all.come()
	for _, lane := range p.lanes {
		wait = max(wait, lane.come())
	}
	return wait
}

// A pace spreads starts evenly, the first after a while.
type pace struct {
	rate  policy.Rate
	after time.Duration
	given int64
}

// next is the wait of the next start.
func (p *pace) next() time.Duration {
	wait := p.come()
	p.given++
	return wait
}

// come is what the wait of the next start would be, at most job.MaxAhead.
func (p *pace) come() time.Duration {
	wait := float64(p.after)
	if p.rate.Limited() {
		wait += float64(p.given) * float64(p.rate.Per) / float64(p.rate.Starts)
	}
	return time.Duration(min(wait, float64(job.MaxAhead)))
}
