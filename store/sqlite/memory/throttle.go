// This part of the package has the limits in time of a lane or a topic: cooldowns, breakers, and the starts that rates
// count, with their stored forms.
//
// Its values are immutable: a change makes another one. It knows no queues.

package memory

import (
	"time"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// Grants are the permits that a topic's rate counts. They are immutable.
type Grants struct {
	Starts Window
	Per    time.Duration // of the rate that was requested last
}

// Expired reports whether no permit counts any more.
func (g *Grants) Expired(now clock.Instant) bool {
	return len(g.Starts.Counting(policy.Rate{Starts: 1, Per: g.Per}, now)) == 0
}

// A Throttle is the cooldown and the breaker of a lane, and the starts that its rate counts. It is immutable. Most
// lanes have no throttle.
type Throttle struct {
	Until  int64               // the end of the cooldown, monotonic; clock.Past: no cooldown
	Cause  store.CooldownCause // of the cooldown
	Open   bool                // the breaker
	Starts Window
}

// None throttles nothing.
var None = Throttle{Until: clock.Past}
