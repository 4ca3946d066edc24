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

// maxUnseen bounds the periods of a schedule that have ended and that no step has seen.
const maxUnseen = 100

// period is what a schedule's ticks follow from one change to the next.
type period struct {
	schedule.Spec
	MaxRuns int64
	Paused  bool
	// Since is the time of the change by the store's clock, in Unix milliseconds: the revision that stored it. A tick
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

// endPeriod keeps the stored period of a schedule that changes, until a step has made its ticks. *job.LimitError.
func (s *Service) endPeriod(ctx context.Context, key store.DocumentKey, d *document) error {
	ref := job.Ref{Namespace: key.Namespace, ID: d.JobID}
	found, err := s.opts.Jobs.GetIn(ctx, queueOf(key.Namespace, key.Name), ref)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	p, _ := decodeProgress(found.Body) // a lost or unreadable one has seen nothing
	d.Before = append(d.Before, d.stored)
	d.Before = d.Before[inForce(d.Before, p.Since):]
	if len(d.Before) > maxUnseen {
		return &job.LimitError{
			What: "changes of the schedule's ticks that no process has seen", Limit: maxUnseen,
			Remedy: "start a process with the role worker, or delete the schedule",
		}
	}
	if d.Since == d.stored.Since {
		d.Since = 0 // the revision that will be written
	}
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

// span is a period with its ticks: those after from, until a time.
type span struct {
	period
	ticks       *schedule.Schedule
	from, until time.Time
}

// forever is later than any tick.
var forever = time.Unix(1<<40, 0)

// findSpans finds the periods whose ticks the step may make, and the delay of the jobs. The error is that of a period
// that this program cannot read.
func (s *step) findSpans() error {
	periods := append(slices.Clip(s.doc.Before), s.doc.period())
	periods = periods[inForce(periods, s.Since):]
	s.spans = make([]span, len(periods))
	until := forever
	for i, p := range slices.Backward(periods) {
		ticks, err := schedule.Parse(p.Spec)
		if err != nil {
			return err
		}
		if i == len(periods)-1 {
			s.now = s.claimedAt.Add(-delayOf(ticks, s.namespace, s.name))
		}
		age := s.claimedAt.Sub(time.UnixMilli(p.Since))
		if p.Since <= s.Seen {
			age = max(0, age) // the clock was set back since
		}
		s.spans[i] = span{p, ticks, s.now.Add(-age), until}
		until = s.spans[i].from
	}
	if s.spans[0].Since <= s.Since {
		s.spans[0].from = time.Time{} // up to Passed
	}
	return nil
}

// newest returns the span that has not ended.
func (s *step) newest() *span { return &s.spans[len(s.spans)-1] }

// advance goes on to the newest period that has begun, once the ticks of those before have passed.
func (s *step) advance() {
	for i := range s.spans {
		if p := &s.spans[i]; p.Since > s.Since && !p.from.After(s.now) {
			s.Since, s.Passed = p.Since, later(s.Passed, p.from)
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
		tick, ok := p.ticks.Next(later(after, p.from))
		if ok && s.hasTicks(p) && !tick.After(p.until) {
			return tick, p
		}
	}
	return time.Time{}, nil
}

// last returns the last tick that is not after a time.
func (s *step) last(until time.Time) (tick time.Time, ok bool) {
	for i := range slices.Backward(s.spans) {
		p := &s.spans[i]
		tick, ok := p.ticks.Last(earlier(until, p.until))
		if ok && s.hasTicks(p) && tick.After(p.from) {
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
