package livetail

import "time"

// Rate is the largest number of updates that a listener gets in a second.
const Rate = 100

// limiter allows Rate updates in any second.
type limiter struct {
	at   [Rate]time.Time // the newest allowed updates, a ring
	next int             // the oldest of them
}

// allow reports whether an update is allowed now, and counts it then.
func (l *limiter) allow(now time.Time) bool {
	if now.Sub(l.at[l.next]) < time.Second {
		return false
	}
	l.at[l.next] = now
	l.next = (l.next + 1) % Rate
	return true
}
