// Package schedule computes the ticks of schedules: the instants at which a schedule's jobs are due.
//
// A schedule is a cron text in a time zone, or an interval. The package reads no clock and stores nothing: it is given
// all times, so that processes with the same time zone database agree on every tick. Ticks are nominal: callers add the
// jitter.
//
// # Time zones
//
// A cron text is matched with a clock that knows no time zone. Of the local times that result, these are special:
//
//   - A fixed time that does not exist, because clocks go forward, runs at the first instant after the gap.
//   - A fixed time that exists twice, because clocks go back, runs once, the first time.
//   - With `*` as the hour, elapsed hours count: the schedule runs whenever the local clock shows the minute, also in
//     the repeated hour, and nothing is made up for after a gap.
//
// Ticks that fall on the same instant are one. Intervals count elapsed time since 1970-01-01T00:00:00Z and know no time
// zone.
//
// Time zones are those of the system, or else of the program itself, which contains the IANA database.
package schedule

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// Schedule is a valid Spec. It is immutable and safe for concurrent use.
type Schedule struct {
	cron          *cron // nil: an interval
	every, offset time.Duration
	jitter        time.Duration
	first, last   time.Time // bounds of the ticks, inclusive
}

// Next returns the first tick after an instant, in UTC. ok is false if there is none.
func (s *Schedule) Next(after time.Time) (tick time.Time, ok bool) {
	at, ok := s.next(after)
	return at.instant, ok
}

// next returns the first tick after an instant, with its local time.
func (s *Schedule) next(after time.Time) (localTick, bool) {
	if after.Before(s.first) {
		after = s.first.Add(-1)
	}
	if !after.Before(s.last) {
		return localTick{}, false
	}
	var tick localTick
	if s.cron != nil {
		tick = s.cron.next(after)
	} else {
		tick.instant = s.lastInterval(after).Add(s.every)
	}
	if tick.instant.IsZero() || tick.instant.After(s.last) {
		return localTick{}, false
	}
	return tick, true
}

// Last returns the last tick that is not after an instant, in UTC. ok is false if there is none.
func (s *Schedule) Last(until time.Time) (tick time.Time, ok bool) {
	if until.After(s.last) {
		until = s.last
	}
	if s.cron == nil {
		if tick = s.lastInterval(until); tick.Before(s.first) {
			return time.Time{}, false
		}
		return tick, true
	}
	within := func(after time.Time) (time.Time, bool) {
		next, found := s.Next(after)
		return next, found && !next.After(until)
	}
	// Search ever longer spans that end at until, then halve the span between a known tick and its end.
	for span := time.Minute; !ok; span *= 2 {
		start := until.Add(-span)
		if tick, ok = within(start); !ok && start.Before(s.first) {
			return time.Time{}, false
		}
	}
	for end := until; ; {
		following, more := within(tick)
		if !more {
			return tick, true
		}
		tick = following
		middle := tick.Add(end.Sub(tick) / 2)
		if later, found := within(middle); found {
			tick = later
		} else {
			end = middle
		}
	}
}

// Count counts the ticks after an instant that are not after another, and returns the last of them. It stops at most
// ticks of a cron text, which it counts one by one.
func (s *Schedule) Count(after, until time.Time, most int64) (n int64, last time.Time) {
	if s.cron == nil {
		first, ok := s.Next(after)
		end, found := s.Last(until)
		if !ok || !found || end.Before(first) {
			return 0, last
		}
		return int64(end.Sub(first)/s.every) + 1, end
	}
	for ; n < most; n++ {
		tick, ok := s.Next(after)
		if !ok || tick.After(until) {
			break
		}
		after, last = tick, tick
	}
	return n, last
}

// lastInterval returns the last tick of an interval that is not after an instant, ignoring the schedule's bounds.
func (s *Schedule) lastInterval(until time.Time) time.Time {
	every, offset := int64(s.every/time.Second), int64(s.offset/time.Second)
	past := (until.Unix() - offset) % every
	if past < 0 {
		past += every
	}
	return time.Unix(until.Unix()-past, 0).UTC()
}

// Jitter returns the delay of the schedule's jobs after their ticks: from 0 to the Spec's Jitter, in milliseconds, and
// always the same for a name, so that schedules are spread and periods stay exact.
func (s *Schedule) Jitter(name string) time.Duration {
	hash := sha256.Sum256([]byte(name))
	steps := uint64(s.jitter/time.Millisecond) + 1
	return time.Duration(binary.BigEndian.Uint64(hash[:])%steps) * time.Millisecond
}
