package nowpage

import (
	"time"

	"github.com/ringback/ringback/console/recent"
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
	if s.Hour == nil {
		return cards
	}
	return append(cards, s.rateCard(), s.shareCard(), s.lateCard())
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
	seconds := s.v.Now.Sub(s.latelySince()).Seconds()
	rate := func(n int64) float64 { return float64(n) / seconds }
	c := card{Label: "Attempts/s", Value: words.Decimal(rate(s.lately.Delivered + s.lately.Failed)), Note: lastMinutes}
	if s.lately.Failed > 0 {
		c.Class, c.Note = "warn", words.Rate(rate(s.lately.Failed))+" failed, "+lastMinutes
	}
	return c
}

// lastMinutes says in words of which time state.lately is.
const lastMinutes = "in the last minutes"

// lateCard says how late attempts began.
func (s *state) lateCard() card {
	c := card{Label: "Lateness p99", Value: "–", Note: "no attempt " + lastMinutes}
	if p50, p99, ok := s.Hour.LastLate(s.latelySince()); ok {
		c.Value, c.Note = words.Duration(p99), "p50 "+words.Duration(p50)+", "+lastMinutes
	}
	return c
}

// shareCard says how many of the attempts of the last hour failed.
func (s *state) shareCard() card {
	c := card{Label: "Failed", Value: "–", Note: "no attempt in the last hour"}
	if sum := s.Hour.Sum(); sum.Delivered+sum.Failed > 0 {
		n := sum.Delivered + sum.Failed
		c.Value, c.Note = recent.Percent(sum.Failed, n), "of "+words.Count(n, "attempt")+" in the last hour"
	}
	if s.counts != nil && s.counts.LanesFailing > 0 {
		c.Class = "warn"
	}
	return c
}
