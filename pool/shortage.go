package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool/sched"
)

// shortageLogInterval is the shortest interval between log lines about local shortages.
const shortageLogInterval = 10 * time.Second

// shortageLog counts the attempts that failed for want of local resources since the last log line.
type shortageLog struct {
	loggedAt time.Time
	attempts int
}

// recordShortage reduces the attempts in flight after one that failed for want of local resources.
func (p *Pool) recordShortage(result policy.Result) {
	p.mu.Lock()
	now, attempts, log := time.Now(), 0, &p.shortages
	pause, reduced := p.sched.Shortage(now)
	if reduced {
		p.growTimer.Reset(sched.GrowInterval)
	}
	if log.attempts++; now.Sub(log.loggedAt) >= shortageLogInterval {
		attempts = log.attempts
		*log = shortageLog{loggedAt: now}
	}
	limit := p.sched.Limit()
	p.mu.Unlock()
	if pause > 0 {
		time.AfterFunc(pause, p.wakeAll)
	}
	if attempts > 0 {
		p.log.Warn("out of local resources: attempts released uncounted, concurrency reduced",
			"err", result.Error, "attempts", attempts, "limit", limit)
	}
}

// growLimit raises the limit of attempts in flight.
func (p *Pool) growLimit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sched.Grow() {
		p.growTimer.Reset(sched.GrowInterval)
	}
}
