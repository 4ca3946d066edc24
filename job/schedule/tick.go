package schedule

import (
	"fmt"
	"time"
)

// localTick is a tick with the local time that the cron text matches, which differs from what clocks show if that time
// does not exist. The zero value is no tick.
type localTick struct {
	instant time.Time
	local   time.Time
}

// next returns the first tick after an instant.
func (c *cron) next(after time.Time) localTick {
	if c.hours.all {
		return c.nextShown(after)
	}
	local := c.match(latestLocal(after, c.zone))
	if local.IsZero() {
		return localTick{}
	}
	return localTick{instant: resolveLocal(local, c.zone), local: local}
}

// nextShown returns the first instant after another at which the zone's clocks show a time that matches.
func (c *cron) nextShown(after time.Time) localTick {
	for at := after.In(c.zone); ; {
		_, offset := at.Zone()
		end := nextOffset(at, c.zone)
		local := c.match(shift(after.UTC(), offset))
		if local.IsZero() {
			return localTick{}
		}
		if instant := shift(local, -offset); end.IsZero() || instant.Before(end) {
			return localTick{instant: instant, local: local}
		}
		at, after = end.In(c.zone), end.Add(-1)
	}
}

// Tick is an instant at which a schedule's job is due, for people.
type Tick struct {
	// At is the instant in UTC.
	At time.Time
	// Local is the same instant in the schedule's time zone.
	Local time.Time
	// Note says in a sentence how a change of the local clocks affects the tick. Empty: it does not.
	Note string
}

// Ticks returns the first n ticks after an instant, or fewer if the schedule ends before.
func (s *Schedule) Ticks(after time.Time, n int) []Tick {
	var ticks []Tick
	for len(ticks) < n {
		next, ok := s.next(after)
		if !ok {
			break
		}
		tick := Tick{At: next.instant, Local: next.instant}
		if s.cron != nil {
			tick.Local, tick.Note = next.instant.In(s.cron.zone), s.cron.note(after, next)
		}
		ticks = append(ticks, tick)
		after = next.instant
	}
	return ticks
}

// note returns a sentence about a tick that a change of the local clocks affects, or nothing. previous is the tick
// before it, or a later instant.
func (c *cron) note(previous time.Time, tick localTick) string {
	shown := showLocal(tick.instant, c.zone)
	if !shown.Equal(tick.local) {
		return gapNote(tick.local) + "runs at " + timeOn(shown, tick.local)
	}
	second := latestLocal(tick.instant, c.zone).After(shown)
	if second || c.isShownAgain(tick.instant) {
		switch text := fmt.Sprintf("%s exists twice on %s, because clocks go back: ", shown.Format("15:04"),
			shown.Format(time.DateOnly)); {
		case !c.hours.all:
			return text + "runs once, the first time"
		case second:
			return text + "this is the second time"
		default:
			return text + "this is the first time"
		}
	}
	if missing, ok := c.matchInGap(previous, tick.instant); ok && c.hours.all {
		return gapNote(missing) + "continues at " + timeOn(shown, missing)
	}
	return ""
}

// gapNote begins the sentence about a local time that does not exist.
func gapNote(missing time.Time) string {
	return fmt.Sprintf("%s does not exist on %s, because clocks go forward: ", missing.Format("15:04"),
		missing.Format(time.DateOnly))
}

// timeOn returns the time of day, with its date if it is not that of another local time.
func timeOn(local, other time.Time) string {
	if local.YearDay() != other.YearDay() {
		return local.Format("15:04 on 2006-01-02")
	}
	return local.Format("15:04")
}

// isShownAgain reports whether the zone's clocks show the local time of an instant once more later.
func (c *cron) isShownAgain(at time.Time) bool {
	end := nextOffset(at, c.zone)
	if end.IsZero() {
		return false
	}
	return !showLocal(end, c.zone).After(showLocal(at, c.zone))
}

// matchInGap returns the first local time that the fields match and that the zone's clocks skip, if they have last
// gone forward after previous and not after at.
func (c *cron) matchInGap(previous, at time.Time) (missing time.Time, ok bool) {
	start, _ := at.In(c.zone).ZoneBounds()
	if start.IsZero() || !start.After(previous) {
		return time.Time{}, false
	}
	missing = c.match(showLocal(start.Add(-1), c.zone))
	return missing, !missing.IsZero() && missing.Before(showLocal(start, c.zone))
}
