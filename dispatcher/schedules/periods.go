package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

// maxEnded bounds the periods of a schedule that have ended and whose ticks have not passed. A pause by PauseAfterDead
// may be one more.
const maxEnded = 100

// period is what a schedule's ticks follow from one change to the next.
type period struct {
	schedule.Spec
	MaxRuns int64
	Paused  bool
	// Since is the time of the change by the store's clock: the revision that stored it, in Unix milliseconds. A tick
	// that is due at this time is of the period before.
	Since int64
}

// period returns the one that has not ended.
func (d *document) period() period { return period{d.Spec, d.MaxRuns, d.Paused, d.Since} }

// inForce returns the index of the last of some periods that began at a time or before, or 0.
func inForce(periods []period, at int64) int {
	later := slices.IndexFunc(periods, func(p period) bool { return p.Since > at })
	if later < 0 {
		later = len(periods)
	}
	return max(0, later-1)
}

// endPeriod keeps the stored period of a schedule until ticks have passed up to the next one. passed is
// progress.PassedSince.
func (d *document) endPeriod(passed int64) {
	d.Before = append(d.Before, d.stored)
	d.Before = d.Before[inForce(d.Before, passed):]
}

// endPeriod ends the stored period of a schedule if a request changes it. *job.LimitError.
func (s *Service) endPeriod(ctx context.Context, key store.DocumentKey, d *document) error {
	if d.stored.Since == 0 || d.period() == d.stored {
		return nil
	}
	ref := job.Ref{Namespace: key.Namespace, ID: d.JobID}
	found, err := s.opts.Jobs.GetIn(ctx, queueOf(key.Namespace, key.Name), ref)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	p, _ := decodeProgress(found.Body) // a lost or unreadable one has passed nothing
	if d.endPeriod(p.PassedSince); len(d.Before) > maxEnded {
		return &job.LimitError{
			What: "changes of the schedule's ticks that still have to be followed", Limit: maxEnded,
			Remedy: "start a process with the role worker; if one runs, due ticks wait for a quota of the namespace, " +
				"or are being caught up",
		}
	}
	d.Since = 0 // the revision that will be written
	return nil
}

// Portable returns the value of a document for another store, where its revision does not say when the schedule was
// changed. An unreadable one stays as it is.
func Portable(doc *store.Document) ([]byte, error) {
	var stored struct{ Since int64 }
	if json.Unmarshal(doc.Value, &stored) == nil && stored.Since != 0 {
		return doc.Value, nil
	}
	d, err := decode(doc)
	if err != nil {
		return doc.Value, nil //nolint:nilerr // its steps report it
	}
	return json.Marshal(d)
}

// span is a period with its ticks: those after from, until a time. They are due after a delay, and not before since.
type span struct {
	period
	ticks       *schedule.Schedule
	delay       time.Duration
	since       time.Time // period.Since, but not after the claim once a step has seen it
	from, until time.Time
}

// forever is later than any tick.
var forever = time.Unix(1<<40, 0)

// findSpans finds the periods whose ticks the step may make. The error is that of one that this program cannot read.
func (s *step) findSpans() error {
	periods := append(slices.Clip(s.doc.Before), s.doc.period())
	periods = periods[inForce(periods, s.PassedSince):]
	s.spans = make([]span, len(periods))
	for i, p := range periods {
		ticks, err := schedule.Parse(p.Spec)
		if err != nil {
			return err
		}
		in := span{p, ticks, delayOf(ticks, s.namespace, s.name), time.UnixMilli(p.Since), time.Time{}, forever}
		if p.Since <= s.Seen {
			in.since = earlier(in.since, s.claimedAt) // the clock was set back since
		}
		switch {
		case i > 0: // what was not due by the delay until then is of the new period
			before := &s.spans[i-1]
			in.from = later(before.from, in.since.Add(-before.delay))
			before.until = in.from
		case p.Since <= s.PassedSince:
			in.since = time.Time{} // and what was due at that time has passed
		default:
			in.from = in.since.Add(-in.delay)
		}
		s.spans[i] = in
	}
	return nil
}

// dueUntil returns the last instant whose ticks are due at a time by the store's clock.
func (s *step) dueUntil(at time.Time) time.Time {
	for i := range slices.Backward(s.spans) {
		if p := &s.spans[i]; !p.since.After(at) {
			return later(p.from, at.Add(-p.delay))
		}
	}
	return time.Time{}
}

// isDue reports whether a tick is due.
func (s *step) isDue(tick time.Time) bool { return !tick.After(s.dueUntil(s.claimedAt)) }

// isLate reports whether a tick was due longer ago than a duration.
func (s *step) isLate(tick time.Time, by time.Duration) bool {
	return !tick.After(s.dueUntil(s.claimedAt.Add(-by - 1)))
}

// newest returns the span that has not ended.
func (s *step) newest() *span { return &s.spans[len(s.spans)-1] }

// advance goes on to the newest period that has begun, once the ticks of those before have passed.
func (s *step) advance() {
	for i := range s.spans {
		if p := &s.spans[i]; p.Since > s.PassedSince && !p.since.After(s.claimedAt) {
			s.PassedSince, s.Passed = p.Since, later(s.Passed, p.from)
		}
	}
}

// hasTicks reports whether ticks of a period may run.
func (s *step) hasTicks(p *span) bool {
	return !p.Paused && (p.MaxRuns == 0 || s.Counts.Run < p.MaxRuns)
}

// next returns the first tick after a time, and its span; nil: there is none.
func (s *step) next(after time.Time) (tick time.Time, in *span) {
	for i := range s.spans {
		p := &s.spans[i]
		start := later(after, p.from)
		if !start.Before(p.until) {
			continue
		}
		if tick, ok := p.ticks.Next(start); ok && s.hasTicks(p) && !tick.After(p.until) {
			return tick, p
		}
	}
	return time.Time{}, nil
}

// last returns the last tick that is not after a time.
func (s *step) last(until time.Time) (tick time.Time, ok bool) {
	for i := range slices.Backward(s.spans) {
		p := &s.spans[i]
		end := earlier(until, p.until)
		if !p.from.Before(end) {
			continue
		}
		if tick, ok := p.ticks.Last(end); ok && s.hasTicks(p) && tick.After(p.from) {
			return tick, true
		}
	}
	return time.Time{}, false
}

// count counts ticks as schedule.Schedule.Count does.
func (s *step) count(after, until time.Time, most int64) (n int64, last time.Time) {
	for i := 0; i < len(s.spans) && n < most; i++ {
		p := &s.spans[i]
		if !s.hasTicks(p) {
			continue
		}
		if more, at := p.ticks.Count(later(after, p.from), earlier(until, p.until), most-n); more > 0 {
			n, last = n+more, at
		}
	}
	return n, last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
