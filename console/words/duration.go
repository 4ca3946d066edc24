package words

import (
	"fmt"
	"math"
	"strings"
	"time"
)

const day = 24 * time.Hour

// Duration returns a duration rounded to at most two units: "250ms", "1.2s", "12s", "3m", "59m51s", "2h5m", "3d 4h".
// Seconds below ten have one decimal place. A duration below a millisecond that is not 0 is "<1ms", and 0 is "0s".
func Duration(d time.Duration) string {
	if d < 0 {
		if d == math.MinInt64 {
			d++
		}
		return "-" + Duration(-d)
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return "<1ms"
	case d.Round(time.Millisecond) < time.Second:
		return fmt.Sprintf("%dms", d.Round(time.Millisecond).Milliseconds())
	case d.Round(100*time.Millisecond) < 10*time.Second:
		return trimZeros(fmt.Sprintf("%.1f", d.Round(100*time.Millisecond).Seconds())) + "s"
	case d.Round(time.Second) < time.Minute:
		return fmt.Sprintf("%ds", d.Round(time.Second)/time.Second)
	case d.Round(time.Second) < time.Hour:
		return twoUnits(d.Round(time.Second), time.Minute, "m", "", time.Second, "s")
	case d.Round(time.Minute) < day:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", "", time.Minute, "m")
	}
	return twoUnits(d.Round(time.Hour), day, "d", " ", time.Hour, "h")
}

// twoUnits returns a duration in a unit and what is left in a smaller one.
func twoUnits(d, big time.Duration, bigName, space string, small time.Duration, smallName string) string {
	text := Number(int64(d/big)) + bigName
	if rest := d % big / small; rest > 0 {
		text += fmt.Sprintf("%s%d%s", space, rest, smallName)
	}
	return text
}

// maxNamedRetries bounds the retries of which Ladder gives the times.
const maxNamedRetries = 20

// Ladder returns when a job is attempted that always fails: its retries, with their times from the first attempt on,
// without what attempts take themselves. The last wait repeats. Of more than 20 retries the middle ones are left out.
func Ladder(waits []time.Duration, retries int) string {
	if retries <= 0 {
		return "One attempt, and no retries."
	}
	var at time.Duration
	var times []string
	for i := range retries {
		if len(waits) > 0 {
			at += min(waits[min(i, len(waits)-1)], math.MaxInt64-at)
		}
		switch text := Duration(at); {
		case i < maxNamedRetries, i == retries-1:
			times = append(times, text)
		case i == maxNamedRetries:
			times = append(times, "…")
		}
	}
	return Count(int64(retries), "retry") + ": " + strings.Join(times, ", ") + " after the first attempt."
}

// Ago returns how long before now a time was: "59m51s ago", and "just now" within a second. It says "in 3m" of a later
// time, and "never" of the zero one.
func Ago(t, now time.Time) string {
	switch d := now.Sub(t); {
	case t.IsZero():
		return "never"
	case d <= -time.Second:
		return In(t, now)
	case d < time.Second:
		return "just now"
	default:
		return Duration(d.Truncate(time.Second)) + " ago"
	}
}

// In returns how long after now a time will be, rounded up to seconds: "in 12s". It says "now" of one within a second,
// and "3m ago" of an earlier one, and "at an unknown time" of the zero one.
func In(t, now time.Time) string {
	switch d := t.Sub(now); {
	case t.IsZero():
		return "at an unknown time"
	case d <= -time.Second:
		return Ago(t, now)
	case d <= 0:
		return "now"
	case d > math.MaxInt64-time.Second:
		return "in " + Duration(d)
	default:
		return "in " + Duration((d + time.Second - 1).Truncate(time.Second))
	}
}

// Clock returns the time of day in a location: "14:02:11". A nil location is UTC.
func Clock(t time.Time, loc *time.Location) string { return in(t, loc).Format("15:04:05") }

// Date returns the day in a location: "24 Nov 2026". A nil location is UTC.
func Date(t time.Time, loc *time.Location) string { return in(t, loc).Format("2 Jan 2006") }

// DateTime returns day, time of day and time zone: "24 Nov 2026, 14:02:11 UTC". A nil location is UTC.
func DateTime(t time.Time, loc *time.Location) string {
	return in(t, loc).Format("2 Jan 2006, 15:04:05 MST")
}

// When returns the time of day, and the day before it unless it is now's: "14:02:11", "23 Nov 2026, 14:02:11". A nil
// location is UTC.
func When(t, now time.Time, loc *time.Location) string {
	if Date(t, loc) == Date(now, loc) {
		return Clock(t, loc)
	}
	return Date(t, loc) + ", " + Clock(t, loc)
}

func in(t time.Time, loc *time.Location) time.Time {
	if loc == nil {
		loc = time.UTC
	}
	return t.In(loc)
}
