package filter

import (
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// Words returns which jobs the filter selects: "dead jobs of topic pay, in lane pay.example:443, last answered 503". It
// begins with the states and the word jobs.
func (f Filter) Words() string {
	var states []string
	for _, s := range f.State {
		states = append(states, string(s))
	}
	subject := strings.TrimSpace(or(states) + " jobs")
	switch f.Kind {
	case "", "registered":
	case "all":
		subject += " of every kind"
	default:
		subject += " of the kind " + f.Kind
	}
	if clauses := f.clauses(); len(clauses) > 0 {
		return subject + " " + strings.Join(clauses, ", ")
	}
	return subject
}

// WithStates returns the filter with these states, if it has none.
func (f Filter) WithStates(states ...client.State) Filter {
	if len(f.State) == 0 {
		f.State = states
	}
	return f
}

// clauses returns what jobs must match, other than states and kind.
func (f Filter) clauses() []string {
	var all []string
	add := func(value, before string) {
		if value != "" {
			all = append(all, before+value)
		}
	}
	add(f.Topic, "of topic ")
	add(f.Lane, "in lane ")
	add(f.IDPrefix, "whose id begins with ")
	for _, label := range f.Label {
		add(LabelText(label), "with the label ")
	}
	if f.Status != 0 {
		add(strconv.Itoa(f.Status), "last answered ")
	}
	switch f.ErrorClass {
	case client.ErrorAny:
		add("without an answer to the last attempt", "")
	case client.ErrorUnknown:
		add("of which no attempt ended", "")
	default:
		add(words.ErrorClass(f.ErrorClass), "without an answer because ")
	}
	if f.Reason == "cancelled" {
		add("that were cancelled", "")
	} else if f.Reason != "" {
		add(words.Reason(f.Reason), "dead because ")
	}
	for _, r := range []struct {
		verb          string
		after, before time.Time
	}{
		{"registered ", f.CreatedAfter, f.CreatedBefore},
		{"due ", f.DueAfter, f.DueBefore},
		{"ended ", f.EndedAfter, f.EndedBefore},
	} {
		switch after, before := timeWords(r.after), timeWords(r.before); {
		case after != "" && before != "":
			add(after+" to before "+before, r.verb+"from ")
		case after != "":
			add(after+" on", r.verb+"from ")
		default:
			add(before, r.verb+"before ")
		}
	}
	return all
}

// timeWords returns a time to the second; the zero one is empty.
func timeWords(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04:05")
}

// or joins words with commas and or.
func or(items []string) string {
	if len(items) < 2 {
		return strings.Join(items, "")
	}
	return strings.Join(items[:len(items)-1], ", ") + " or " + items[len(items)-1]
}
