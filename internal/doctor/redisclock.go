package doctor

import (
	"fmt"
	"time"

	"github.com/ringback/ringback/sign"
)

// clockWarn is the difference of two clocks that is reported. Ringback sends waits, not times of day, so processes
// whose clocks differ agree; run_at, expiries and what people read in a log are off by the difference.
const clockWarn = time.Second

// compareClocks returns the finding about another clock. diff is how far it is ahead of this machine's, and precision
// how exactly that is known.
func compareClocks(whose string, diff, precision time.Duration) Finding {
	shown := fmt.Sprintf("%s ahead of this machine", diff.Round(time.Millisecond))
	if diff < 0 {
		shown = fmt.Sprintf("%s behind this machine", (-diff).Round(time.Millisecond))
	}
	switch off := diff.Abs() - precision; {
	case off > sign.DefaultTolerance:
		return fault("Set the wrong one of the two clocks, and run NTP on both machines: receivers refuse "+
			"signatures that are more than "+sign.DefaultTolerance.String()+" off.",
			"the clock of %s is %s", whose, shown)
	case off > clockWarn:
		return warn("Run NTP (chrony, systemd-timesyncd) on both machines: run_at and expiries are off by the "+
			"difference.", "the clock of %s is %s", whose, shown)
	case precision > clockWarn:
		return unknown("Look at the network between the two, then run ringback doctor again.",
			"the answer took %s, too long to compare the clock of %s", (2 * precision).Round(time.Millisecond), whose)
	}
	return good("the clock of %s is within %s of this machine", whose,
		max(diff.Abs()+precision, time.Millisecond).Round(time.Millisecond))
}
