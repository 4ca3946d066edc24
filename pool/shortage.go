package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// When the process runs out of descriptors, memory or ports, as many attempts at a time would fail again for the same reason.
// So it has fewer in flight: half of those that do not hang, and half again while it goes on. As long as nothing is short the
// number grows by a sixteenth a second. While no attempt gets any further nothing is claimed for 10 ms, doubling to a second.
const (
	cutInterval         = time.Second      // how often the number is halved at most
	growInterval        = time.Second      // how often it grows
	shortageLogInterval = 10 * time.Second // how often it is logged at most
	firstPause          = 10 * time.Millisecond
	maxPause            = time.Second
)

// A limiter bounds the attempts in flight of a process. Its fields are guarded by the pool's mutex.
type limiter struct {
	max, current int
	cutAt        time.Time   // when now was halved last
	growTimer    *time.Timer // runs while now is less than most

	resumeAt time.Time     // nothing is claimed before
	pause    time.Duration // the last one; zero since an attempt got further

	loggedAt time.Time
	unlogged int // attempts since then
}

// recordFailure takes in an attempt that failed for want of local resources while so many are in flight, of which some hang. It
// returns for how long nothing is to be claimed from now on, zero where that is known already, and how many such attempts are
// to be logged now.
func (l *limiter) recordFailure(inFlight, hanging int, now time.Time) (pause time.Duration, failed int) {
	if now.Sub(l.cutAt) >= cutInterval {
		l.current = min(l.current, hanging+max(1, (inFlight-hanging)/2))
		l.cutAt = now
		l.growTimer.Reset(growInterval)
	}
	if !now.Before(l.resumeAt) {
		l.pause = min(max(2*l.pause, firstPause), maxPause)
		pause, l.resumeAt = l.pause, now.Add(l.pause)
	}
	if l.unlogged++; now.Sub(l.loggedAt) >= shortageLogInterval {
		failed, l.unlogged, l.loggedAt = l.unlogged, 0, now
	}
	return pause, failed
}

// recordShortage has fewer attempts in flight after one that failed for want of local resources.
func (p *Pool) recordShortage(result policy.Result) {
	p.mu.Lock()
	pause, failed := p.limit.recordFailure(p.inFlight, p.hanging, time.Now())
	limit := p.limit.current
	p.mu.Unlock()
	if pause > 0 {
		time.AfterFunc(pause, p.wakeAll)
	}
	if failed > 0 {
		p.log.Warn("out of local resources: attempts released uncounted, concurrency reduced",
			"err", result.Error, "attempts", failed, "limit", limit)
	}
}

// growLimit lets more attempts be in flight again.
func (p *Pool) growLimit() {
	p.mu.Lock()
	l := &p.limit
	if l.current = min(l.current+l.current/16+1, l.max); l.current < l.max && !p.stopping {
		l.growTimer.Reset(growInterval)
	}
	p.mu.Unlock()
	p.wakeAll()
}
