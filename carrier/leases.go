package carrier

import (
	"time"

	"github.com/ringback/ringback/store"
)

// leaseExpiry decides when overdue leases may be expired. A healthy worker must not lose its lease. So after a fault
// that may have kept it from settling, or a forward jump of the store's clock, no lease is expired for
// store.LeaseMargin.
type leaseExpiry struct {
	interrupted bool      // the last call failed
	pausedUntil time.Time // no lease is expired before; by the process's monotonic clock
	storeTime   time.Time // the store's clock at the last successful call
	seenAt      time.Time // the process's clock at that call
}

// clockTolerance is how far the store's clock may advance beyond the process's between two calls without counting as a
// jump.
const clockTolerance = time.Second

// interrupt records that a call failed.
func (l *leaseExpiry) interrupt() { l.interrupted = true }

// isPaused reports whether no lease may be expired now: after a fault, or when this process made no call for so long
// that workers may have been unable to settle, too.
func (l *leaseExpiry) isPaused() bool {
	if !l.seenAt.IsZero() && time.Since(l.seenAt) > store.LeadershipTTL {
		l.interrupted = true
	}
	return l.interrupted || time.Now().Before(l.pausedUntil)
}

// plausibleNow returns the latest plausible time of the store's clock; zero before the first call.
func (l *leaseExpiry) plausibleNow() time.Time {
	if l.storeTime.IsZero() {
		return time.Time{}
	}
	return l.storeTime.Add(time.Since(l.seenAt) + clockTolerance)
}

// observe records the store's clock after a successful call.
func (l *leaseExpiry) observe(clock time.Time) {
	plausible := l.plausibleNow()
	jumped := !plausible.IsZero() && clock.After(plausible)
	if l.interrupted || jumped {
		l.interrupted, l.pausedUntil = false, time.Now().Add(store.LeaseMargin)
	}
	l.storeTime, l.seenAt = clock, time.Now()
}
