package sched

import "time"

// limiter bounds the attempts in flight while the process is short of descriptors, memory or ports: as many attempts at
// a time would fail again for the same reason. A shortage halves those that do not hang. Without another the limit
// grows by a sixteenth a second. While no attempt succeeds nothing is claimed for 10 ms, doubling to a second.
type limiter struct {
	max, current int
	cutAt        time.Time // when current was halved last

	resumeAt time.Time     // nothing is claimed before
	pause    time.Duration // the last one; zero since an attempt got further
}

const (
	// GrowInterval is how often Grow is due after a shortage.
	GrowInterval = time.Second

	cutInterval = time.Second // how often the limit is halved at most
	firstPause  = 10 * time.Millisecond
	maxPause    = time.Second
)

// Shortage takes in an attempt that failed for want of local resources. It returns for how long nothing is claimed from
// now on, zero where that is known already, and whether the limit was reduced: then Grow is due after GrowInterval.
func (s *Scheduler) Shortage(now time.Time) (pause time.Duration, reduced bool) {
	return s.limit.reduce(s.inFlight, s.hanging, now)
}

func (l *limiter) reduce(inFlight, hanging int, now time.Time) (pause time.Duration, reduced bool) {
	if now.Sub(l.cutAt) >= cutInterval {
		l.current = min(l.current, hanging+max(1, (inFlight-hanging)/2))
		l.cutAt, reduced = now, true
	}
	if !now.Before(l.resumeAt) {
		l.pause = min(max(2*l.pause, firstPause), maxPause)
		pause, l.resumeAt = l.pause, now.Add(l.pause)
	}
	return pause, reduced
}

// Grow raises the limit and reports whether it is to be called again after GrowInterval.
func (s *Scheduler) Grow() (again bool) {
	l := &s.limit
	l.current = min(l.current+l.current/16+1, l.max)
	s.wakeAll()
	return l.current < l.max && !s.stopping
}
