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
// registered. It has neither IDs nor All.
type Filter client.Where

// param is a parameter: its name in the query, and the field with its value.
type param struct {
	name  string
	value any // a pointer
}

// params returns the parameters, in the order of Pairs.
func (f *Filter) params() []param {
	return []param{
		{"topic", &f.Topic},
		{"lane", &f.Lane},
		{"state", &f.State},
		{"reason", &f.Reason},
		{"status", &f.Status},
		{"error_class", &f.ErrorClass},
		{"label", &f.Label},
		{"kind", &f.Kind},
		{"id_prefix", &f.IDPrefix},
		{"created_after", &f.CreatedAfter},
		{"created_before", &f.CreatedBefore},
		{"due_after", &f.DueAfter},
		{"due_before", &f.DueBefore},
		{"ended_after", &f.EndedAfter},
		{"ended_before", &f.EndedBefore},
	}
}

// Names returns the names of the parameters, which are those of GET /v1/jobs. GET /v1/dead has all but state.
func Names() (names []string) {
	for _, p := range new(Filter).params() {
		names = append(names, p.name)
	}
	return names
}

// Parse reads a filter from the query of a URL. Times are those of words.ParseTime, or are a duration, such as 90m: so
// long before now. States may be separated by commas; labels are repeated, as they may have commas, and are name=value
// or name:value. also are the names of the page's other parameters. Parameters that neither the filter nor the page
// has, and those with one value that are given twice, are errors: ignored ones would select more than was meant. Errors
// are sentences by the name of the parameter, whose field is zero then. Parse checks no more than it must: the API
// checks names of topics and lanes.
func Parse(q url.Values, now time.Time, also ...string) (f Filter, errors map[string]string) {
	errors = misused(q, also)
	for _, p := range f.params() {
		text := ""
		if len(q[p.name]) == 1 {
			text = strings.TrimSpace(q.Get(p.name))
		}
		ok, sentence := true, ""
		switch value := p.value.(type) {
		case *string:
			*value = text
		case *int:
			sentence = "must be a status of 100 to 999"
			if text != "" {
				n, err := strconv.Atoi(text)
				if ok = err == nil && n >= 100 && n <= 999; ok {
					*value = n
				}
			}
		case *time.Time:
			sentence = "must be a time such as 2030-01-31T08:00, in UTC, or how long ago it is, such as 90m"
			*value, ok = parseTime(text, now)
		case *[]client.State:
			*value = statesOf(q[p.name])
		case *[]string:
			sentence = "is not of the form name=value"
			for _, text := range distinct(q[p.name]) {
				label, isLabel := parseLabel(text)
				if ok = ok && isLabel; isLabel && !slices.Contains(*value, label) {
					*value = append(*value, label)
				}
			}
		}
		if !ok {
			errors[p.name] = sentence
		}
	}
	return f, errors
}

// statesOf returns the states of texts that may have several, separated by commas.
func statesOf(texts []string) (states []client.State) {
	for _, state := range distinct(strings.Split(strings.Join(texts, ","), ",")) {
		states = append(states, client.State(state))
	}
	return states
}

// maxMisused bounds the parameters that Parse reports as misused, and maxName their names in runes.
const (
	maxMisused = 10
	maxName    = 64
)

// misused returns sentences about parameters that are unknown, or given more often than they have values.
func misused(q url.Values, also []string) map[string]string {
	wrong, names := make(map[string]string), Names()
	for _, name := range slices.Sorted(maps.Keys(q)) {
		if len(wrong) == maxMisused {
			break
		}
		switch isFilter := slices.Contains(names, name); {
		case !isFilter && !slices.Contains(also, name):
			name = words.Cut(name, maxName)
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
	for _, p := range f.params() {
		switch value := p.value.(type) {
		case *string:
			add(p.name, *value)
		case *int:
			if *value != 0 {
				add(p.name, strconv.Itoa(*value))
			}
		case *time.Time:
			if !value.IsZero() {
				add(p.name, value.UTC().Format(time.RFC3339Nano))
			}
		case *[]client.State:
			states := make([]string, len(*value))
			for i, state := range *value {
				states[i] = string(state)
			}
			add(p.name, strings.Join(states, ","))
		case *[]string:
			for _, label := range *value {
				add(p.name, label)
			}
		}
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

// Query returns the filter for lists of jobs. GET /v1/dead refuses State.
func (f Filter) Query() client.Query {
	return client.Query{
		State: f.State, Topic: f.Topic, Lane: f.Lane, Kind: f.Kind, Label: f.Label, Reason: f.Reason,
		Status: f.Status, ErrorClass: f.ErrorClass, IDPrefix: f.IDPrefix,
		CreatedAfter: f.CreatedAfter, CreatedBefore: f.CreatedBefore,
		DueAfter: f.DueAfter, DueBefore: f.DueBefore, EndedAfter: f.EndedAfter, EndedBefore: f.EndedBefore,
	}
}

// Where returns the filter for bulk work. It never has All: whoever has asked the reader sets it. Without All the API
// refuses what selects by nothing but states.
func (f Filter) Where() client.Where { return client.Where(f) }

// IsZero reports whether the filter selects by nothing, states included.
func (f Filter) IsZero() bool { return len(f.State) == 0 && f.Kind == "" && f.SelectsAll() }

// SelectsAll reports whether the filter selects every job of its states.
func (f Filter) SelectsAll() bool {
	f.State = nil
	if f.Kind == "all" || f.Kind == "registered" {
		f.Kind = ""
	}
	return len(f.Pairs()) == 0
}
