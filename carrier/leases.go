package carrier

import (
	"time"

	"github.com/ringback/ringback/store"
)

// leaseExpiry decides when leases that ran out may be taken from their holders. A healthy worker never loses its lease, so
// after a fault that may have kept it from settling, or a jump of the store's clock, lapses wait one margin.
type leaseExpiry struct {
	margin           time.Duration
	interruptedSince bool      // contact was interrupted, and has not come back yet
	heldUntil        time.Time // no lapses before; by the process's monotonic clock
	storeTime        time.Time // the store's, when it was last seen
	seenAt           time.Time // the process's, then
}

// clockTolerance is how far the store's clock may run ahead of ours between two looks without being a jump.
const clockTolerance = time.Second

// interrupted notes that a call failed.
func (l *leaseExpiry) interrupted() { l.interruptedSince = true }

// isHeld reports whether lapses wait: after a fault, and also after a silence of ours in which a worker may have been as
// unable to settle as we were to look.
func (l *leaseExpiry) isHeld() bool {
	if !l.seenAt.IsZero() && time.Since(l.seenAt) > store.LeadershipTTL {
		l.interruptedSince = true
	}
	return l.interruptedSince || time.Now().Before(l.heldUntil)
}

// plausibleNow is the instant of the store's clock that is plausible by now; zero when nothing is known yet.
func (l *leaseExpiry) plausibleNow() time.Time {
	if l.storeTime.IsZero() {
		return time.Time{}
	}
	return l.storeTime.Add(time.Since(l.seenAt) + clockTolerance)
}

// observe notes the store's clock after a call that succeeded.
func (l *leaseExpiry) observe(clock time.Time) {
	plausible := l.plausibleNow()
	jumped := !plausible.IsZero() && clock.After(plausible)
	if l.interruptedSince || jumped {
		l.interruptedSince, l.heldUntil = false, time.Now().Add(l.margin)
	}
	l.storeTime, l.seenAt = clock, time.Now()
}
