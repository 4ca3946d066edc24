package nowpage

import (
	"html/template"
	"math"
	"time"

	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/sampler"
	"github.com/ringback/ringback/console/words"
)

// card is a number with a label.
type card struct {
	Class, Label, Value string
	Note                string
	To                  string // of the note
}

// cards returns the numbers that are known.
func (s *state) cards() []card {
	var cards []card
	if c := s.counts; c != nil {
		waiting := card{
			Label: "Waiting", Value: words.Number(c.Scheduled + c.Ready),
			Note: words.Number(c.Ready) + " due now",
		}
		running := card{Label: "Running", Value: words.Number(c.Running), Note: "attempts in flight"}
		delivered := card{Label: "Delivered", Value: words.Number(c.Delivered), Note: "in all"}
		deadJobs := card{Label: "Dead", Value: words.Number(c.Dead), Note: "none"}
		if c.Dead > 0 { // also those that retention or bulk work has removed, so there may be nothing to do
			deadJobs.Note, deadJobs.To = "in all; see dead letters", s.v.Path("dead")
		}
		cards = append(cards, waiting, running, delivered, deadJobs, s.dueCard())
	}
	if s.samples.Steps == 0 {
		return cards
	}
	return append(cards, s.rateCard(), s.lateCard())
}

// dueCard says how late the oldest job is that waits.
func (s *state) dueCard() card {
	switch by := s.oldestLate(); {
	case s.counts.OldestDueAt.IsZero():
		return card{Label: "Oldest due", Value: "–", Note: "nothing waits"}
	case by < 0:
		return card{Label: "Next due", Value: words.In(s.counts.OldestDueAt, s.countedAt()), Note: "at " +
			words.When(s.counts.OldestDueAt, s.v.Now, time.UTC)}
	case by < time.Second:
		return card{Label: "Oldest due", Value: "now", Note: "on time"}
	default:
		c := card{Label: "Oldest due", Value: words.Duration(by.Truncate(time.Second)) + " late", Note: "due at " +
			words.When(s.counts.OldestDueAt, s.v.Now, time.UTC)}
		if by >= late {
			c.Class = "warn"
		}
		return c
	}
}

// rateCard says how many attempts are made.
func (s *state) rateCard() card {
	c := card{Label: "Attempts/s", Value: "–", Note: "in the last minute"}
	if rate := s.samples.LastMinute(); !math.IsNaN(rate) {
		c.Value = words.Decimal(rate)
	}
	if failed := s.samples.LastMinute("again", "dead"); failed > 0 {
		c.Class, c.Note = "warn", "in the last minute, "+words.Rate(failed)+" failed"
	}
	return c
}

// lateCard says how late attempts began.
func (s *state) lateCard() card {
	c := card{Label: "Lateness p99", Value: "–", Note: "no attempt in the last minute"}
	if !math.IsNaN(s.samples.LastP99) {
		c.Value, c.Note = seconds(s.samples.LastP99), "p50 "+seconds(s.samples.LastP50)+", in the last minute"
	}
	return c
}

// seconds returns a number of seconds in words.
func seconds(s float64) string { return words.Duration(time.Duration(s * float64(time.Second))) }

// charts are the charts of the last shown minutes.
type charts struct {
	Attempts, Lateness template.HTML
	Legend             []legend
}

// legend is a colour of a chart.
type legend struct{ Class, Text string }

// newCharts draws the samples; nil: there are none.
func newCharts(s *sampler.Samples) *charts {
	if s.Steps == 0 {
		return nil
	}
	c := new(charts)
	var verdicts []chart.Series
	for _, v := range s.Verdicts {
		if v.Name == "cancelled" && !isAboveZero(v.PerSecond) {
			continue
		}
		verdicts = append(verdicts, chart.Series{Name: v.Name, Class: "c-" + v.Name, Values: v.PerSecond})
		c.Legend = append(c.Legend, legend{"c-" + v.Name, v.Name})
	}
	from, to := s.From.UTC(), s.To.UTC()
	c.Attempts = chart.Stack(verdicts, from, to, "Attempts a second")
	c.Lateness = chart.Lines([]chart.Series{
		{Name: "p50", Class: "c-p50", Values: s.P50},
		{Name: "p99", Class: "c-p99", Values: s.P99},
	}, from, to, "Lateness")
	return c
}

func isAboveZero(values []float64) bool {
	for _, v := range values {
		if v > 0 {
			return true
		}
	}
	return false
}

// completeness says how complete the samples are.
func (s *state) completeness() string {
	switch {
	case s.samples.Fault != nil:
		text := "Incomplete: the live stream of attempts cannot be followed now, so failed attempts and lateness are " +
			"missing"
		if s.Restricted != nil {
			text = "Incomplete: the live stream of attempts cannot be followed now"
		}
		return words.Sentence(text + " (" + faultOf(s.samples.Fault) + ")")
	case s.samples.Steps == 0:
		return "The first ones are there within 5 s."
	case s.samples.Estimated:
		text := "In part estimated: more happened than the live stream has room for, so attempts are scaled up"
		if s.Restricted == nil {
			text += ", but for the delivered ones, which are counted"
		}
		return text + "."
	}
	since := s.v.Now.Add(-time.Duration(s.samples.Steps) * sampler.Step)
	text := "Complete since " + words.When(since, s.v.Now, time.UTC) + ", in steps of 5\u00a0s."
	if missing := s.samples.Missing(); missing > 0 {
		text = "Complete, but for " + words.Duration(missing) +
			" in which the API or its live stream could not be read."
	}
	return text
}
