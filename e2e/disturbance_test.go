package e2e

import "time"

// unsettled bounds the answers whose settlement a process or a server may lose with its end: those of the calls that it
// had not answered yet, far less than this.
const unsettled = 100

// disturbance is the end of a process or a server, from its cause until the service works again.
type disturbance struct {
	from, until time.Time
	newest      map[string]bool // jobs with the newest answers before it
}

// disturb runs cause, which ends the process with a User-Agent (empty: the only one, or a server), and then recovery,
// which returns when the service works again. Until then the receiver reads what had been sent before.
func (r *receiver) disturb(agent string, cause, recovery func()) disturbance {
	d := disturbance{from: time.Now()}
	cause()
	d.newest = r.newest(unsettled, agent, time.Now())
	recovery()
	d.until = time.Now()
	return d
}

// mayRepeat reports whether a disturbance is a reason for a job to come again after a request: it was in flight, or its
// settlement may have been lost.
func mayRepeat(a arrival, all []disturbance) bool {
	for _, d := range all {
		if d.newest[a.id] || a.began.Before(d.until) && (a.answered.IsZero() || a.answered.After(d.from)) {
			return true
		}
	}
	return false
}
