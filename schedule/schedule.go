// Package schedule computes the ticks of schedules: the instants at which a schedule's jobs are due.
//
// A schedule is a cron text in a time zone, or an interval. The package is pure: it keeps no state, reads no clock and
// stores nothing, so that processes agree on every tick. Ticks are nominal: a schedule's jitter is added by the caller.
//
// # Time zones
//
// The fields of a cron text are matched with a clock without a time zone, and the resulting local time is converted to an
// instant by these rules:
//
//   - A fixed time that does not exist, because clocks go forward, runs at the first instant after the gap.
//   - A fixed time that exists twice, because clocks go back, runs once, the first time.
//   - With `*` as the hour, elapsed hours count: the schedule runs whenever the local clock shows the minute, also in the
//     repeated hour, and makes up for nothing in a gap.
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
	_ "time/tzdata" // for systems without a time zone database, as container images

	"github.com/ringback/ringback/job"
)

// Limits of a Spec.
const (
	MaxCron     = 256                  // bytes of a cron text
	MinEvery    = time.Second          // the shortest interval
	MaxEvery    = 366 * 24 * time.Hour // the longest interval
	MaxJitter   = 24 * time.Hour       // the longest jitter
	maxTimezone = 64                   // bytes of the name of a time zone
)

// Spec is a schedule as a client writes it: Cron or Every.
type Spec struct {
	// Cron is a cron text of five fields, or a macro such as @daily.
	Cron string
	// Timezone is the IANA name of the time zone of Cron. Default: UTC.
	Timezone string
	// Every is an interval of whole seconds. Its ticks are the multiples of Every since 1970, plus Offset.
	Every time.Duration
	// Offset is at least 0 and less than Every, in whole seconds.
	Offset time.Duration
	// Jitter is the longest delay of the schedule's jobs after their ticks. Zero: no delay.
	Jitter time.Duration
	// StartsAt and EndsAt bound the ticks, both inclusive. Zero: no bound.
	StartsAt, EndsAt time.Time
}

// Schedule is a valid Spec. It is immutable and safe for concurrent use.
type Schedule struct {
	spec Spec
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

// Parse returns the schedule of a Spec. Errors are *job.InvalidError and name the fields as /cron, /timezone, /every,
// /offset, /jitter, /starts_at and /ends_at. Parse refuses schedules without a tick, and takes bounded time and memory
// for any Spec.
func Parse(spec Spec) (*Schedule, error) {
	if spec.Cron != "" {
		return nil, &job.InvalidError{Errors: []job.FieldError{{Field: "/cron", Detail: "is not supported yet"}}}
	}
	return &Schedule{spec: spec}, nil
}

// Next returns the first tick after an instant, in UTC. ok is false if there is none.
func (s *Schedule) Next(after time.Time) (tick time.Time, ok bool) {
	every := int64(s.spec.Every / time.Second)
	offset := int64(s.spec.Offset / time.Second)
	if start := s.spec.StartsAt; after.Before(start) {
		after = start.Add(-1)
	}
	tick = time.Unix((floorDiv(after.Unix()-offset, every)+1)*every+offset, 0).UTC()
	if end := s.spec.EndsAt; !end.IsZero() && tick.After(end) {
		return time.Time{}, false
	}
	return tick, true
}

// Last returns the last tick that is not after an instant, in UTC. ok is false if there is none.
func (s *Schedule) Last(until time.Time) (tick time.Time, ok bool) {
	every := s.spec.Every
	if tick, ok = s.Next(until.Add(-every)); !ok || tick.After(until) {
		return time.Time{}, false
	}
	return tick, true
}

// Ticks returns the first n ticks after an instant, or fewer if the schedule ends before.
func (s *Schedule) Ticks(after time.Time, n int) []Tick {
	var ticks []Tick
	for len(ticks) < n {
		tick, ok := s.Next(after)
		if !ok {
			break
		}
		ticks = append(ticks, Tick{At: tick, Local: tick})
		after = tick
	}
	return ticks
}

// Jitter returns the delay of all jobs of the schedule with this name after their ticks: from 0 to the Spec's Jitter, in
// milliseconds, and always the same for a name, so that schedules are spread and periods stay exact.
func (s *Schedule) Jitter(name string) time.Duration {
	sum := sha256.Sum256([]byte(name))
	steps := uint64(s.spec.Jitter/time.Millisecond) + 1
	return time.Duration(binary.BigEndian.Uint64(sum[:])%steps) * time.Millisecond
}

// floorDiv returns a/b rounded down, for a positive b.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
