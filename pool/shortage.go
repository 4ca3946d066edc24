package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
)

// recordShortage reduces the attempts in flight after one that failed for want of local resources.
func (p *Pool) recordShortage(result policy.Result) {
	p.mu.Lock()
	pause, reduced := p.scheduler.Shortage(time.Now())
	if reduced {
		p.growTimer.Reset(sched.GrowInterval)
	}
	limit := p.scheduler.Limit()
	p.mu.Unlock()
	if pause > 0 {
		time.AfterFunc(pause, p.wakeAll)
	}
	p.shortageLog.Warn("out of local resources: attempts released uncounted, concurrency reduced", "err",
		result.Error, "limit", limit)
}

// growLimit raises the limit of attempts in flight.
func (p *Pool) growLimit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.scheduler.Grow() {
		p.growTimer.Reset(sched.GrowInterval)
	}
}
