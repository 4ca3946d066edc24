package schedule

import (
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
)

// Limits of a Spec.
const (
	MaxCron   = 256                  // bytes of a cron text
	MinEvery  = time.Second          // the shortest interval
	MaxEvery  = 366 * 24 * time.Hour // the longest interval
	MaxJitter = 24 * time.Hour       // the longest jitter
)

// Ticks are within these years, the first and the last that cron texts are computed for.
var (
	earliest = time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2099, time.December, 31, 23, 59, 59, 0, time.UTC)
)

// Spec is a schedule as a client writes it: Cron or Every.
type Spec struct {
	// Cron is when ticks are: minute, hour, day of month, month, day of week; or a macro such as `@daily`. It is
	// refused if it never fires. Required without `every`.
	Cron string `api:"cron,empty"`
	// Timezone is the IANA name of the time zone of `cron`. A fixed time that does not exist runs at the first instant
	// after the gap; one that exists twice runs once, the first time; hour `*` counts elapsed hours. Default: `UTC`.
	Timezone string `api:"timezone,empty"`
	// Every is the interval between ticks, 1s to 366d, in whole seconds, counted from `1970-01-01T00:00:00Z`. Required
	// without `cron`.
	Every time.Duration `api:"every"`
	// Offset shifts the ticks of `every` by this much. Whole seconds, less than `every`. Default: 0s.
	Offset time.Duration `api:"offset,zero"`
	// Jitter spreads schedules that are due at once: all jobs of this one are delayed by one fixed share of it, which
	// follows from its namespace and name. Up to 24h. `jitter_delay` shows the delay. Default: none.
	Jitter time.Duration `api:"jitter,zero"`
	// StartsAt is when ticks begin: there are none before it. Default: none.
	StartsAt time.Time `api:"starts_at"`
	// EndsAt is when ticks end: there are none after it. Default: none.
	EndsAt time.Time `api:"ends_at"`
}

// Parse returns the schedule of a Spec. Errors are *job.InvalidError and name the fields as /cron, /timezone, /every,
// /offset, /jitter, /starts_at and /ends_at. Parse refuses schedules without a tick, and takes bounded time and memory
// for any Spec.
func Parse(spec Spec) (*Schedule, error) {
	var errs []job.FieldError
	refuse := func(field, format string, args ...any) {
		errs = append(errs, job.FieldError{Field: field, Detail: fmt.Sprintf(format, args...)})
	}
	s := &Schedule{every: spec.Every, offset: spec.Offset, jitter: spec.Jitter, first: earliest, last: latest}

	switch {
	case spec.Cron == "" && spec.Every == 0:
		refuse("/cron", "is required, or every")
	case spec.Cron != "" && spec.Every != 0:
		refuse("/every", "cannot be combined with cron")
	case spec.Cron != "":
		var err error
		if s.cron, err = parseCron(spec.Cron); err != nil {
			refuse("/cron", "%s", err)
		}
		if spec.Offset != 0 {
			refuse("/offset", "cannot be combined with cron")
		}
		if zone, err := loadZone(spec.Timezone); err != nil {
			refuse("/timezone", "%s", err)
		} else if s.cron != nil {
			s.cron.zone = zone
		}
	default:
		if spec.Every < MinEvery || spec.Every > MaxEvery || spec.Every%time.Second != 0 {
			refuse("/every", "must be whole seconds, from 1s to 366d")
		} else if spec.Offset < 0 || spec.Offset >= spec.Every || spec.Offset%time.Second != 0 {
			refuse("/offset", "must be whole seconds, at least 0s and less than every")
		}
		if spec.Timezone != "" {
			refuse("/timezone", "cannot be combined with every, which counts elapsed time; use cron for local times")
		}
	}

	if spec.Jitter < 0 || spec.Jitter > MaxJitter {
		refuse("/jitter", "must be from 0s to 24h")
	}
	bound := func(field string, at time.Time, set *time.Time) {
		if at.IsZero() {
			return
		}
		if at.Before(earliest) || at.After(latest) {
			refuse(field, "must be in the years 1970 to 2099")
			return
		}
		*set = at
	}
	bound("/starts_at", spec.StartsAt, &s.first)
	bound("/ends_at", spec.EndsAt, &s.last)

	if len(errs) == 0 {
		if s.last.Before(s.first) {
			refuse("/ends_at", "must not be before starts_at")
		} else if _, ok := s.Next(time.Time{}); !ok && spec.EndsAt.IsZero() {
			refuse("/starts_at", "no tick follows before the year 2100: the schedule would never run")
		} else if !ok {
			refuse("/ends_at", "is before the first tick: the schedule would never run")
		}
	}
	if len(errs) > 0 {
		return nil, &job.InvalidError{Errors: errs}
	}
	return s, nil
}
