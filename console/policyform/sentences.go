package policyform

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/job/units"
)

// Retries returns how many attempts follow the first.
func Retries(p client.Policy) int {
	if p.Retries != nil {
		return *p.Retries
	}
	return len(p.Ladder)
}

// span returns the sum of the waits of all retries.
func span(p client.Policy) (sum time.Duration) {
	if len(p.Ladder) == 0 {
		return 0
	}
	const longest = 100 * 365 * 24 * time.Hour
	for i := range Retries(p) {
		if sum += p.Ladder[min(i, len(p.Ladder)-1)]; sum > longest {
			return longest
		}
	}
	return sum
}

// Sentences say an effective policy.
func Sentences(p client.Policy) []string {
	said := []string{deliverSentence(p), attemptsSentence(p)}
	if Retries(p) > 0 {
		said = append(said, timesSentence(p))
	}
	said = append(said, endSentences(p)...)
	said = append(said, limitSentence(p))
	if IsTrue(p.Ordered) {
		said = append(said, "Each lane delivers its jobs one at a time, in the order of their registration.")
	}
	said = append(said, breakerSentence(p))
	said = append(said, callbackSentences(p)...)
	return append(said, retentionSentence(p))
}

// IsTrue reports whether a setting is given and true.
func IsTrue(b *bool) bool { return b != nil && *b }

func deliverSentence(p client.Policy) string {
	text := "Jobs are " + words.Deliver(p.Deliver)
	if p.Deliver == "push" && p.URL != "" {
		text += ", those without a URL to " + p.URL
	}
	if n := int64(len(p.Headers)); n > 0 {
		text += ", with " + words.Count(n, "header") + ": " + words.List(slices.Sorted(maps.Keys(p.Headers)))
	}
	if p.ClientCert != nil {
		text += ", with a client certificate"
	}
	return words.Sentence(text)
}

func attemptsSentence(p client.Policy) string {
	timeout := " of up to " + units.FormatDuration(p.Timeout)
	retries := Retries(p)
	if retries <= 0 {
		return "A job has one attempt" + timeout + ", and no retries."
	}
	text := "A job has up to " + words.Count(int64(retries)+1, "attempt") + timeout + " within " +
		words.Duration(span(p))
	if p.Jitter != nil && *p.Jitter > 0 {
		text += ", and each wait is lengthened at random by up to " + strconv.FormatFloat(*p.Jitter*100, 'f', -1, 64) +
			"%"
	}
	return words.Sentence(text)
}

// timesSentence says when attempts follow, if all fail.
func timesSentence(p client.Policy) string {
	const most = 12
	times, at := []string(nil), time.Duration(0)
	retries := Retries(p)
	for i := range min(retries, most) {
		if len(p.Ladder) > 0 {
			at += p.Ladder[min(i, len(p.Ladder)-1)]
		}
		times = append(times, words.Duration(at))
	}
	text := "If all fail, they follow the first one after " + strings.Join(times, ", ")
	if more := retries - most; more > 0 {
		text += " and " + words.Count(int64(more), "more time") + ", the last after " + words.Duration(span(p))
	}
	return words.Sentence(text)
}

// endSentences say when jobs are delivered, and when they die although retries are left.
func endSentences(p client.Policy) []string {
	var said []string
	if s := p.Success; s != nil {
		text := "It is delivered when the answer is " + words.List(s.Status)
		switch {
		case s.BodyEquals != "":
			text += " with the body “" + s.BodyEquals + "”"
		case s.BodyContains != "":
			text += " with a body that contains “" + s.BodyContains + "”"
		}
		said = append(said, words.Sentence(text))
	}
	text := ""
	if len(p.GiveUpOn) > 0 {
		text = "It dies at once when the answer is " + words.List(p.GiveUpOn)
	}
	if p.MaxAge > 0 {
		if text == "" {
			text = "It dies"
		} else {
			text += ", and"
		}
		text += " when it was due more than " + words.Duration(p.MaxAge) + " ago"
	}
	if text != "" {
		said = append(said, words.Sentence(text))
	}
	return said
}

func limitSentence(p client.Policy) string {
	text := "At most " + words.Number(int64(p.LaneConcurrency)) + " attempts of a lane run at a time"
	if p.Workers > 0 {
		text += ", " + words.Number(int64(p.Workers)) + " of the topic in each process"
	}
	if p.Rate != "" {
		text += "; the topic starts at most " + p.Rate
	}
	if p.LaneRate != "" {
		text += "; a lane starts at most " + p.LaneRate
	}
	return words.Sentence(text)
}

func breakerSentence(p client.Policy) string {
	b := p.Breaker
	if b == nil || b.Failures == nil || *b.Failures == 0 {
		return "Breakers are off: jobs are attempted however often their receiver failed."
	}
	return words.Sentence("After", words.Count(int64(*b.Failures), "failure"),
		"in a row the breaker of a lane opens for", units.FormatDuration(b.Open))
}

func callbackSentences(p client.Policy) []string {
	var said []string
	report := func(what, to string) { said = append(said, words.Sentence(what, "reported to", to)) }
	if c := p.OnDelivered; c != nil && c.URL != "" {
		report("Delivered jobs are", c.URL)
	}
	if c := p.OnDead; c != nil && c.URL != "" {
		report("Dead jobs are", c.URL)
	}
	if b := p.OnBacklog; b != nil && b.URL != "" {
		text := "A backlog"
		if b.OlderThan > 0 {
			text += " that is older than " + units.FormatDuration(b.OlderThan)
		}
		if b.OlderThan > 0 && b.MoreThan > 0 {
			text += ", or"
		}
		if b.MoreThan > 0 {
			text += " of more than " + words.Count(b.MoreThan, "job")
		}
		report(text+" is", b.URL)
	}
	return said
}

func retentionSentence(p client.Policy) string {
	text := "Delivered jobs are kept " + retention(p.KeepDelivered) + ", dead ones " + retention(p.KeepDead)
	return words.Sentence(text)
}

// retention says how long jobs are kept, and how many.
func retention(r *client.Retention) string {
	if r == nil {
		return "as long as the store's default"
	}
	var parts []string
	if r.For != nil {
		parts = append(parts, "for "+units.FormatDuration(*r.For))
	}
	if r.Max != nil {
		parts = append(parts, "at most "+words.Number(*r.Max))
	}
	if r.MaxBytes != "" {
		parts = append(parts, "of at most "+r.MaxBytes)
	}
	if len(parts) == 0 {
		return "as long as the store's default"
	}
	return words.List(parts)
}
