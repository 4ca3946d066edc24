package pool

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// When the process runs out of descriptors, memory or ports, as many attempts at a time would fail again for the same reason.
// So it has fewer in flight: half of those that do not hang, and half again while it goes on. As long as nothing is short the
// number grows by a sixteenth a second. While no attempt gets any further nothing is claimed for 10 ms, doubling to a second.
const (
	shortageEvery = time.Second      // how often the number is halved at most
	growEvery     = time.Second      // how often it grows
	warnEvery     = 10 * time.Second // how often it is logged at most
	firstPause    = 10 * time.Millisecond
	mostPause     = time.Second
)

// A limiter bounds the attempts in flight of a process. Its fields are guarded by the pool's mutex.
type limiter struct {
	most, now int
	cut       time.Time   // when now was halved last
	grow      *time.Timer // runs while now is less than most

	resume time.Time     // nothing is claimed before
	pause  time.Duration // the last one; zero since an attempt got further

	warned time.Time
	failed int // attempts since then
}

// short takes in an attempt that failed for want of local resources while so many are in flight, of which some hang. It
// returns for how long nothing is to be claimed from now on, zero where that is known already, and how many such attempts are
// to be logged now.
func (l *limiter) short(inFlight, hanging int, now time.Time) (pause time.Duration, failed int) {
	if now.Sub(l.cut) >= shortageEvery {
		l.now = min(l.now, hanging+max(1, (inFlight-hanging)/2))
		l.cut = now
		l.grow.Reset(growEvery)
	}
	if !now.Before(l.resume) {
		l.pause = min(max(2*l.pause, firstPause), mostPause)
		pause, l.resume = l.pause, now.Add(l.pause)
	}
	if l.failed++; now.Sub(l.warned) >= warnEvery {
		failed, l.failed, l.warned = l.failed, 0, now
	}
	return pause, failed
}

// noteShortage has fewer attempts in flight after one that failed for want of local resources.
func (p *Pool) noteShortage(result policy.Result) {
	p.mu.Lock()
	pause, failed := p.limit.short(p.inFlight, p.hanging, time.Now())
	limit := p.limit.now
	p.mu.Unlock()
	if pause > 0 {
		time.AfterFunc(pause, p.nudgeAll)
	}
	if failed > 0 {
		p.log.Warn("out of local resources: attempts are put off, uncounted, and fewer are made at a time",
			"err", result.Error, "attempts", failed, "limit", limit)
	}
}

// growLimit lets more attempts be in flight again.
func (p *Pool) growLimit() {
	p.mu.Lock()
	l := &p.limit
	if l.now = min(l.now+l.now/16+1, l.most); l.now < l.most && !p.stopping {
		l.grow.Reset(growEvery)
	}
	p.mu.Unlock()
	p.nudgeAll()
}
