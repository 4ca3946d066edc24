package filter

import (
	"encoding/json"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
)

var now = time.Date(2030, 1, 31, 8, 0, 0, 123_456_789, time.UTC)

// full has every field.
var full = Filter{
	Topic: "pay", Lane: "pay.example:443", State: []client.State{client.Dead, client.Cancelled}, Kind: "all",
	Label: []string{"a:b", "c:d,e&f"}, Reason: "exhausted", Status: 503, ErrorClass: "dns",
	IDPrefix:     "order-",
	CreatedAfter: now.Add(-6 * time.Hour), CreatedBefore: now.Add(-5 * time.Hour),
	DueAfter: now.Add(-4 * time.Hour), DueBefore: now.Add(-3 * time.Hour),
	EndedAfter: now.Add(-2 * time.Hour), EndedBefore: now.Add(-time.Hour),
}

func TestFilter_SurvivesURLsAndRequests(t *testing.T) {
	q, err := url.ParseQuery(full.Values().Encode())
	require.NoError(t, err)
	parsed, errors := Parse(q, now)
	require.Empty(t, errors)
	require.Equal(t, full, parsed)
	for _, name := range Names() {
		require.Contains(t, q, name)
	}
	require.Len(t, q, len(Names()))

	where := full.Where()
	raw, err := json.Marshal(where)
	require.NoError(t, err)
	selection, err := ParseWhere(raw)
	require.NoError(t, err)
	require.Equal(t, Selection{Filter: full}, selection)

	// query and Where have the same fields, and leave out none that a filter can have.
	query, selects := reflect.ValueOf(full.Query()), reflect.ValueOf(where)
	for i := range selects.NumField() {
		name := selects.Type().Field(i).Name
		if name == "IDs" || name == "All" || name == "Type" { // Type is of events
			require.True(t, selects.Field(i).IsZero(), name)
			continue
		}
		require.False(t, selects.Field(i).IsZero(), name)
		require.Equal(t, selects.Field(i).Interface(), query.FieldByName(name).Interface(), name)
	}
}

func TestParse_ReadsTimes(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "0001-01-01T00:00:00Z",
		"2030-01-31T08:00":            "2030-01-31T08:00:00Z",
		"2030-01-31 08:00:01":         "2030-01-31T08:00:01Z",
		"2030-01-31":                  "2030-01-31T00:00:00Z",
		"2030-01-31t08:00:00z":        "2030-01-31T08:00:00Z",
		"2030-01-31T08:00+02:00":      "2030-01-31T06:00:00Z",
		"2030-01-31T08:00:00.5Z":      "2030-01-31T08:00:00.5Z",
		"2030-01-31T08:00:00-01:00":   "2030-01-31T09:00:00Z",
		"2030-01-31 08:00 UTC":        "2030-01-31T08:00:00Z",
		"2030-01-31 08:00:05.000 UTC": "2030-01-31T08:00:05Z",
		" 90m ":                       "2030-01-31T06:30:00.123Z",
		"1h30m":                       "2030-01-31T06:30:00.123Z",
		"2d":                          "2030-01-29T08:00:00.123Z",
	} {
		f, errors := Parse(url.Values{"ended_after": {text}}, now)
		require.Empty(t, errors, text)
		require.Equal(t, want, f.EndedAfter.Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{"yesterday", "-1h", "0s", "0d", "d", "99999999d", "1", "2030-13-01", "<script>"} {
		f, errors := Parse(url.Values{"due_before": {text}, "topic": {"pay"}}, now)
		require.Contains(t, errors["due_before"], "must be a time", text)
		require.Len(t, errors, 1)
		require.Equal(t, Filter{Topic: "pay"}, f, "the others are read")
	}
}

func TestParse_ReadsListsAndStatus(t *testing.T) {
	f, errors := Parse(url.Values{
		"state": {"dead, ready", "dead", ""}, "label": {"a:b,c", " a:b,c", "a = b,c", "d=e:f=g", "h:i=j", ""},
		"status": {" 503 "}, "other": {"x"},
	}, now, "other")
	require.Empty(t, errors)
	require.Equal(t,
		Filter{State: []client.State{"dead", "ready"}, Label: []string{"a:b,c", "d:e:f=g", "h:i=j"}, Status: 503}, f)
	for _, text := range []string{"x", "=x", ":x"} {
		f, errors = Parse(url.Values{"label": {"a=b", text}}, now)
		require.Equal(t, map[string]string{"label": "is not of the form name=value"}, errors)
		require.Equal(t, []string{"a:b"}, f.Label)
	}
	for _, text := range []string{"5xx", "99", "1000", "-1"} {
		f, errors = Parse(url.Values{"status": {text}}, now)
		require.Equal(t, map[string]string{"status": "must be a status of 100 to 999"}, errors)
		require.True(t, f.IsZero())
	}
}

// What is ignored would select more jobs than the reader means.
func TestParse_ReportsUnknownAndRepeatedParameters(t *testing.T) {
	for query, want := range map[string]map[string]string{
		"topic=pay&stauts=410":               {"stauts": "is not a filter: correct its name or remove it"},
		"topic=pay&Topic=x&more=1":           {"Topic": "is not a filter: correct its name or remove it"},
		"topic=pay&reason=&reason=gave_up":   {"reason": "is given twice: remove one"},
		"topic=pay&due_after=x&due_after=1h": {"due_after": "is given twice: remove one"},
		"topic=pay&more=1&more=2":            {"more": "is given twice: remove one"},
		"topic=pay&=1":                       {"": "is not a filter: correct its name or remove it"},
	} {
		q, err := url.ParseQuery(query)
		require.NoError(t, err)
		f, errors := Parse(q, now, "more", "cursor")
		require.Equal(t, want, errors, query)
		require.Equal(t, Filter{Topic: "pay"}, f, query)
	}
	_, errors := Parse(url.Values{strings.Repeat("x", 1000): {"1"}}, now)
	require.Contains(t, errors, strings.Repeat("x", 63)+"…")
	many := url.Values{}
	for i := range 100 {
		many.Set(strconv.Itoa(i), "")
	}
	_, errors = Parse(many, now)
	require.Len(t, errors, 10)
}

func TestFilter_SelectsAll(t *testing.T) {
	for _, f := range []Filter{{}, {Kind: "all"}, {Kind: "registered"}, {State: []client.State{client.Dead}}} {
		require.True(t, f.SelectsAll(), "%+v", f)
		require.Equal(t, len(f.State) == 0 && f.Kind == "", f.IsZero())
		require.False(t, f.Where().All, "nothing sets All by itself")
	}
	for _, f := range []Filter{
		{Topic: "a"}, {Status: 503}, {Kind: "callback"}, {Label: []string{"a:b"}}, {DueBefore: now},
	} {
		require.False(t, f.SelectsAll(), "%+v", f)
		require.False(t, f.IsZero())
	}
}

func TestFilter_Words(t *testing.T) {
	for want, f := range map[string]Filter{
		"jobs": {},
		"dead jobs of topic pay, in lane pay.example:443, last answered 503": {
			State: []client.State{client.Dead}, Topic: "pay", Lane: "pay.example:443", Status: 503,
		},
		"scheduled, ready or running jobs of every " +
			"kind": {State: []client.State{"scheduled", "ready", "running"}, Kind: "all"},
		"jobs of the kind callback":                  {Kind: "callback"},
		"jobs of which no attempt ended":             {ErrorClass: client.ErrorUnknown},
		"jobs without an answer to the last attempt": {ErrorClass: client.ErrorAny},
		"jobs that were cancelled":                   {Reason: "cancelled", Kind: "registered"},
		"dead or cancelled jobs of every kind of topic pay, in lane pay.example:443, whose id begins with order-, " +
			"with the label a=b, " +
			"with the label c=d,e&f, last answered 503, without an answer because the host name did not resolve, " +
			"dead because all retries are used up, registered from " +
			"2030-01-31 02:00:00 to before " +
			"2030-01-31 03:00:00, due from 2030-01-31 04:00:00 to before 2030-01-31 05:00:00, ended from 2030-01-31 " +
			"06:00:00 to before " +
			"2030-01-31 07:00:00": full,
		"jobs ended from 2030-01-31 08:00:00 on":     {EndedAfter: now},
		"jobs registered before 2030-01-31 08:00:00": {CreatedBefore: now},
	} {
		require.Equal(t, want, f.Words())
	}
	require.Equal(t, "dead jobs", Filter{}.WithStates(client.Dead).Words())
	require.Equal(t, "ready jobs", Filter{State: []client.State{client.Ready}}.WithStates(client.Dead).Words())
}

func TestParseWhere_ReadsWhatTheAPIShows(t *testing.T) {
	for raw, want := range map[string]Selection{
		`null`:                            {},
		``:                                {},
		`{"all": true}`:                   {},
		`{"ids_count": 3}`:                {IDs: 3},
		`{"state": "dead,delivered"}`:     {Filter: Filter{State: []client.State{"dead", "delivered"}}},
		`{"label": "a:b", "future": [1]}`: {Filter: Filter{Label: []string{"a:b"}}},
		`{"label": ["a:b", "c:d"], "state": ` +
			`["dead"]}`: {Filter: Filter{Label: []string{"a:b", "c:d"}, State: []client.State{"dead"}}},
	} {
		got, err := ParseWhere(json.RawMessage(raw))
		require.NoError(t, err, raw)
		require.Equal(t, want, got, raw)
	}
	_, err := ParseWhere(json.RawMessage(`{"status": "x"}`))
	require.ErrorContains(t, err, "read the selection of bulk work")
}
