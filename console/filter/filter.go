// Package filter has the filters of lists of jobs: how they are written in the query of a page's URL, in requests of
// the API, and in words.
package filter

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// Filter selects jobs: those that match all fields that are not zero. The zero value selects all that clients
// registered.
type Filter struct {
	Topic, Lane string
	// States are those of the jobs: one of them. None: all states, or those of the list.
	States []client.State
	// Kind is all, registered, callback, backlog, work or schedule.
	Kind     string
	Labels   []string // name:value, as the API has them; all of them
	Reason   string
	Status   int // of the last answer
	IDPrefix string
	Created  Range
	Due      Range
	Ended    Range
}

// Range is a range of time: from After on, and before Before. Zero times do not bound it.
type Range struct{ After, Before time.Time }

// names are the parameters, in the order of pairs.
var names = []string{
	"topic", "lane", "state", "reason", "status", "label", "kind", "id_prefix",
	"created_after", "created_before", "due_after", "due_before", "ended_after", "ended_before",
}

// Names returns the names of the parameters, which are those of GET /v1/jobs. GET /v1/dead has all but state.
func Names() []string { return slices.Clone(names) }

// Parse reads a filter from the query of a URL. Times are those of words.ParseTime, or are a duration, such as 90m: so
// long before now. States may be separated by commas; labels are repeated, as they may have commas, and are name=value
// or name:value. also are the names of the page's other parameters. Parameters that neither the filter nor the page
// has, and those with one value that are given twice, are errors: ignored ones would select more than was meant. Errors
// are sentences by the name of the parameter, whose field is zero then. Parse checks no more than it must: the API
// checks names of topics and lanes.
func Parse(q url.Values, now time.Time, also ...string) (f Filter, errors map[string]string) {
	errors = misused(q, also)
	get := func(name string) string {
		if len(q[name]) != 1 {
			return ""
		}
		return strings.TrimSpace(q.Get(name))
	}
	fail := func(name, sentence string) { errors[name] = sentence }
	at := func(name string) time.Time {
		t, ok := parseTime(get(name), now)
		if !ok {
			fail(name, "must be a time such as 2030-01-31T08:00, in UTC, or how long ago it is, such as 90m")
		}
		return t
	}
	f = Filter{
		Topic: get("topic"), Lane: get("lane"), Kind: get("kind"), Reason: get("reason"), IDPrefix: get("id_prefix"),
		Created: Range{at("created_after"), at("created_before")},
		Due:     Range{at("due_after"), at("due_before")},
		Ended:   Range{at("ended_after"), at("ended_before")},
	}
	for _, text := range distinct(q["label"]) {
		label, ok := parseLabel(text)
		if !ok {
			fail("label", "is not of the form name=value")
		} else if !slices.Contains(f.Labels, label) {
			f.Labels = append(f.Labels, label)
		}
	}
	for _, state := range distinct(strings.Split(strings.Join(q["state"], ","), ",")) {
		f.States = append(f.States, client.State(state))
	}
	if text := get("status"); text != "" {
		var err error
		if f.Status, err = strconv.Atoi(text); err != nil || f.Status < 100 || f.Status > 999 {
			f.Status = 0
			fail("status", "must be a status of 100 to 999")
		}
	}
	return f, errors
}

// maxMisused bounds the parameters that Parse reports as misused, and maxName their names in runes.
const (
	maxMisused = 10
	maxName    = 64
)

// misused returns sentences about parameters that are unknown, or given more often than they have values.
func misused(q url.Values, also []string) map[string]string {
	wrong := make(map[string]string)
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(wrong) == maxMisused {
			break
		}
		switch isFilter := slices.Contains(names, name); {
		case !isFilter && !slices.Contains(also, name):
			if runes := []rune(name); len(runes) > maxName {
				name = string(runes[:maxName]) + "…"
			}
			wrong[name] = "is not a filter: correct its name or remove it"
		case len(q[name]) > 1 && name != "label" && name != "state":
			wrong[name] = "is given twice: remove one"
		}
	}
	return wrong
}

// distinct returns the items without spaces around them, each once, and without empty ones.
func distinct(items []string) []string {
	var all []string
	for _, item := range items {
		if item = strings.TrimSpace(item); item != "" && !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

// parseLabel reads a label. Names have neither = nor a colon.
func parseLabel(text string) (label string, ok bool) {
	at := strings.IndexAny(text, "=:")
	if at <= 0 {
		return "", false
	}
	return strings.TrimSpace(text[:at]) + ":" + strings.TrimSpace(text[at+1:]), true
}

// LabelText returns a label of a filter as people read and write it: name=value.
func LabelText(label string) string { return strings.Replace(label, ":", "=", 1) }

// parseTime reads a time, or a duration before now. The text may be empty.
func parseTime(text string, now time.Time) (time.Time, bool) {
	if text == "" {
		return time.Time{}, true
	}
	if t, ok := words.ParseTime(text); ok {
		return t, true
	}
	if d, ok := parseAge(strings.ToLower(text)); ok {
		return now.Add(-d).UTC().Truncate(time.Millisecond), true
	}
	return time.Time{}, false
}

// parseAge reads a positive duration, whose unit may also be days.
func parseAge(text string) (time.Duration, bool) {
	const day, most = 24 * time.Hour, 100 * 366
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return time.Duration(n) * day, err == nil && n > 0 && n <= most
	}
	d, err := time.ParseDuration(text)
	return d, err == nil && d > 0
}

// Pairs returns the filter as names and values of parameters, in a fixed order, as Visit.PathQuery takes them.
func (f Filter) Pairs() []string {
	var pairs []string
	add := func(name, value string) {
		if value != "" {
			pairs = append(pairs, name, value)
		}
	}
	add("topic", f.Topic)
	add("lane", f.Lane)
	states := make([]string, len(f.States))
	for i, state := range f.States {
		states[i] = string(state)
	}
	add("state", strings.Join(states, ","))
	add("reason", f.Reason)
	if f.Status != 0 {
		add("status", strconv.Itoa(f.Status))
	}
	for _, label := range f.Labels {
		add("label", label)
	}
	add("kind", f.Kind)
	add("id_prefix", f.IDPrefix)
	for _, r := range f.ranges() {
		add(r.name+"_after", formatTime(r.After))
		add(r.name+"_before", formatTime(r.Before))
	}
	return pairs
}

// Values returns the filter as the query of a URL.
func (f Filter) Values() url.Values {
	q := url.Values{}
	pairs := f.Pairs()
	for i := 0; i < len(pairs); i += 2 {
		q.Add(pairs[i], pairs[i+1])
	}
	return q
}

// namedRange is a range and the beginning of the names of its parameters.
type namedRange struct {
	name string
	Range
}

func (f Filter) ranges() []namedRange {
	return []namedRange{{"created", f.Created}, {"due", f.Due}, {"ended", f.Ended}}
}

// formatTime writes a time as a parameter; the zero one is empty.
func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// Query returns the filter for lists of jobs. GET /v1/dead refuses States.
func (f Filter) Query() client.Query {
	return client.Query{
		State: f.States, Topic: f.Topic, Lane: f.Lane, Kind: f.Kind, Label: f.Labels, Reason: f.Reason,
		Status: f.Status, IDPrefix: f.IDPrefix,
		CreatedAfter: f.Created.After, CreatedBefore: f.Created.Before, DueAfter: f.Due.After, DueBefore: f.Due.Before,
		EndedAfter: f.Ended.After, EndedBefore: f.Ended.Before,
	}
}

// Where returns the filter for bulk work. It never has All: whoever has asked the reader sets it. Without All the API
// refuses what selects by nothing but states.
func (f Filter) Where() client.Where {
	return client.Where{
		State: f.States, Topic: f.Topic, Lane: f.Lane, Kind: f.Kind, Label: f.Labels, Reason: f.Reason,
		Status: f.Status, IDPrefix: f.IDPrefix,
		CreatedAfter: f.Created.After, CreatedBefore: f.Created.Before, DueAfter: f.Due.After, DueBefore: f.Due.Before,
		EndedAfter: f.Ended.After, EndedBefore: f.Ended.Before,
	}
}

// IsZero reports whether the filter selects by nothing, states included.
func (f Filter) IsZero() bool { return len(f.States) == 0 && f.Kind == "" && f.SelectsAll() }

// SelectsAll reports whether the filter selects every job of its states.
func (f Filter) SelectsAll() bool {
	f.States = nil
	if f.Kind == "all" || f.Kind == "registered" {
		f.Kind = ""
	}
	return len(f.Pairs()) == 0
}
