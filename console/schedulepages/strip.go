package schedulepages

import (
	"html/template"
	"slices"
	"time"

	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/job/schedule"
)

const (
	// maxStripTicks bounds the ticks of a strip that are computed one by one.
	maxStripTicks = 300
	// stripStep is the longest distance of ticks through which the chart draws a bar.
	stripStep = 6 * time.Minute
	stripSpan = 24 * time.Hour
)

// ticksBetween returns the ticks of a schedule from a time on for 24 hours. If there are more than maxStripTicks, all
// is false, and it returns at most about 500 of them, with which a chart looks the same: both ends of each gap longer
// than stripStep, the first, the last and the next one after now.
func ticksBetween(s *schedule.Schedule, from, now time.Time) (ticks []time.Time, all bool) {
	until := from.Add(stripSpan)
	at, ok := s.Next(from.Add(-1))
	first := at
	for ok && at.Before(until) && len(ticks) <= maxStripTicks {
		ticks = append(ticks, at)
		at, ok = s.Next(at)
	}
	if len(ticks) <= maxStripTicks {
		return ticks, true
	}
	ticks = ticks[:0]
	for at, ok = first, true; ok && at.Before(until); {
		ticks = append(ticks, at)
		at, ok = within(s, at, until)
	}
	if last, ok := s.Last(until.Add(-1)); ok {
		ticks = append(ticks, last)
	}
	if next, ok := s.Next(now); ok && next.Before(until) {
		ticks = append(ticks, next)
	}
	slices.SortFunc(ticks, time.Time.Compare)
	return slices.CompactFunc(ticks, time.Time.Equal), false
}

// within returns a tick after another one that is later by half of stripStep at least and stripStep at most. Otherwise
// it returns the last one within stripStep, or else the next one.
func within(s *schedule.Schedule, at, until time.Time) (tick time.Time, ok bool) {
	tick, ok = s.Next(at.Add(stripStep/2 - 1))
	if ok && tick.Sub(at) <= stripStep {
		return tick, true
	}
	// costs as much as ten of Next
	if last, found := s.Last(earlier(at.Add(stripStep), until.Add(-1))); found && last.After(at) {
		return last, true
	}
	return s.Next(at)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// strip draws the ticks of the 24 hours from the beginning of this hour. It is empty if there are none.
func strip(s *schedule.Schedule, now time.Time, loc *time.Location, width float64) template.HTML {
	from := now.Truncate(time.Hour)
	ticks, all := ticksBetween(s, from, now)
	if len(ticks) == 0 {
		return ""
	}
	return chart.Day(ticks, all, from, now, loc, width)
}
