package carrier

import (
	"time"

	"github.com/ringback/ringback/store"
)

// lapses decides when leases that ran out may be taken from their holders. A healthy worker never loses its lease, so
// after a fault that may have kept it from settling, or a jump of the store's clock, lapses wait one margin.
type lapses struct {
	margin time.Duration
	cut    bool      // contact was interrupted, and has not come back yet
	until  time.Time // no lapses before; by the process's monotonic clock
	clock  time.Time // the store's, when it was last seen
	at     time.Time // the process's, then
}

// clockSlack is how far the store's clock may run ahead of ours between two looks without being a jump.
const clockSlack = time.Second

// interrupted notes that a call failed.
func (l *lapses) interrupted() { l.cut = true }

// held reports whether lapses wait: after a fault, and also after a silence of ours in which a worker may have been as
// unable to settle as we were to look.
func (l *lapses) held() bool {
	if !l.at.IsZero() && time.Since(l.at) > store.LeadershipTTL {
		l.cut = true
	}
	return l.cut || time.Now().Before(l.until)
}

// before is the instant of the store's clock that is plausible by now; zero when nothing is known yet.
func (l *lapses) before() time.Time {
	if l.clock.IsZero() {
		return time.Time{}
	}
	return l.clock.Add(time.Since(l.at) + clockSlack)
}

// seen notes the store's clock after a call that succeeded.
func (l *lapses) seen(clock time.Time) {
	plausible := l.before()
	jumped := !plausible.IsZero() && clock.After(plausible)
	if l.cut || jumped {
		l.cut, l.until = false, time.Now().Add(l.margin)
	}
	l.clock, l.at = clock, time.Now()
}
