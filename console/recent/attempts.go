package recent

import (
	"cmp"
	"html/template"
	"math"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/chart"
	"github.com/ringback/ringback/console/words"
)

// Attempts are what became of attempts in a time, at equal intervals, the oldest first.
type Attempts struct {
	from, to         time.Time
	all              client.HistoryBucket // the sum
	verdicts         []chart.Series       // a second
	lateP50, lateP99 []float64            // in seconds; NaN: no attempt
}

// LastHour returns what became of the attempts of an hour, by minutes. Buckets of several topics are added up.
func LastHour(b *client.Buckets, now time.Time) *Attempts {
	return newAttempts(b.Minutes, time.Minute, 60, now)
}

// LastDays returns what became of the attempts of two days, by hours.
func LastDays(b *client.Buckets, now time.Time) *Attempts {
	return newAttempts(b.Hours, time.Hour, 48, now)
}

func newAttempts(buckets []client.HistoryBucket, span time.Duration, n int, now time.Time) *Attempts {
	a := &Attempts{from: now.UTC().Truncate(span).Add(-time.Duration(n-1) * span)}
	a.to = a.from.Add(time.Duration(n) * span)
	a.all = client.SumBuckets(buckets, a.from)
	delivered, failed, released := make([]float64, n), make([]float64, n), make([]float64, n)
	a.lateP50, a.lateP99 = make([]float64, n), make([]float64, n)
	for i := range n {
		a.lateP50[i], a.lateP99[i] = math.NaN(), math.NaN()
	}
	for _, b := range buckets {
		i := int(b.At.Sub(a.from) / span)
		if b.At.Before(a.from) || i >= n {
			continue
		}
		seconds := max(time.Second, min(span, now.Sub(b.At))).Seconds() // the newest has not ended
		delivered[i] += float64(b.Delivered) / seconds
		failed[i] += float64(b.Failed) / seconds
		released[i] += float64(b.Released) / seconds
		if b.LateP50MS != nil && b.LateP99MS != nil { // of several topics that of the latest
			a.lateP50[i] = max(*b.LateP50MS/1000, zeroNaN(a.lateP50[i]))
			a.lateP99[i] = max(*b.LateP99MS/1000, zeroNaN(a.lateP99[i]))
		}
	}
	a.verdicts = []chart.Series{
		{Name: "delivered", Class: "c-delivered", Values: delivered},
		{Name: "failed", Class: "c-dead", Values: failed},
	}
	if a.all.Released > 0 {
		a.verdicts = append(a.verdicts, chart.Series{Name: "released", Class: "c-released", Values: released})
	}
	return a
}

func zeroNaN(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// Sum returns the sum of all. It has no lateness.
func (a *Attempts) Sum() client.HistoryBucket { return a.all }

// LastLate returns the median and the 99th percentile of the lateness in the newest interval that has some, and that
// begins at a time or later.
func (a *Attempts) LastLate(since time.Time) (p50, p99 time.Duration, ok bool) {
	span := a.to.Sub(a.from) / time.Duration(len(a.lateP99))
	for i := len(a.lateP99) - 1; i >= 0 && !a.from.Add(time.Duration(i)*span).Before(since); i-- {
		if !math.IsNaN(a.lateP99[i]) {
			seconds := float64(time.Second)
			return time.Duration(a.lateP50[i] * seconds), time.Duration(a.lateP99[i] * seconds), true
		}
	}
	return 0, 0, false
}

// Rates draws the attempts a second.
func (a *Attempts) Rates() template.HTML {
	return chart.Stack(a.verdicts, a.from, a.to, "Attempts a second")
}

// Lateness draws the lateness.
func (a *Attempts) Lateness() template.HTML {
	return chart.Lines([]chart.Series{
		{Name: "p50", Class: "c-p50", Values: a.lateP50}, {Name: "p99", Class: "c-p99", Values: a.lateP99},
	}, a.from, a.to, "Lateness")
}

// Spark draws the attempts in the height of a line.
func (a *Attempts) Spark() template.HTML {
	return chart.Spark(a.verdicts, "Delivered in the last hour: "+cmp.Or(a.Text(), "no attempt"))
}

// Verdicts are the colours of Rates.
func (a *Attempts) Verdicts() []chart.Series { return a.verdicts }

// FailMost reports whether nine of ten attempts or more failed.
func (a *Attempts) FailMost() bool {
	return a.all.Failed > 0 && 10*a.all.Failed >= 9*(a.all.Delivered+a.all.Failed)
}

// Text says how many attempts were delivered, as a noun: "98 % of 1,200 attempts"; empty: there was none.
func (a *Attempts) Text() string {
	n := a.all.Delivered + a.all.Failed
	if n == 0 {
		return ""
	}
	return Percent(a.all.Delivered, n) + " of " + words.Count(n, "attempt")
}

// Percent returns a share in words. It is 100 % or 0 % only if it is exactly so.
func Percent(part, all int64) string {
	percent := 100 * part / max(1, all)
	switch {
	case part > 0 && percent == 0:
		return "less than 1\u00a0%"
	default:
		return words.Number(percent) + "\u00a0%"
	}
}
