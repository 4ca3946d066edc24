package job

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func sample() Attempt {
	return Attempt{
		N: 3, Kind: KindAttempt, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC),
		Duration: 3 * time.Millisecond, Phases: policy.Phases{FirstByte: 2900 * time.Microsecond},
		RemoteAddr: "192.0.2.7:443", Process: "web-1/7K2QJ7HNTA", Status: 200, Verdict: "delivered",
		Header: map[string][]string{
			"Date": {"Fri, 02 Jan 2026 03:04:05 GMT"}, "Content-Type": {"text/plain"},
			"Content-Length": {"2"},
		},
		Body: []byte("ok"),
	}
}

// entryOf returns the stored form of an attempt.
func entryOf(a Attempt) entry {
	units := func(d time.Duration) int64 { return int64(max(0, d) / policy.DurationUnit) }
	e := entry{
		N: &a.N, Kind: string(a.Kind), At: a.StartedAt.UnixMilli(), Duration: units(a.Duration),
		DNS:     units(a.Phases.DNS),
		Connect: units(a.Phases.Connect), TLS: units(a.Phases.TLS), FirstByte: units(a.Phases.FirstByte), URL: a.URL,
		RemoteAddr: a.RemoteAddr, Process: a.Process, Status: a.Status, Verdict: a.Verdict,
		Reason: a.Reason, Error: a.Error, ErrorClass: a.ErrorClass, Header: a.Header, Body: a.Body,
	}
	if a.Kind == KindAttempt {
		e.Kind = ""
	}
	return e
}

func TestAttemptJSON_EqualsThatOfEncodingJSON(t *testing.T) {
	full := sample()
	full.Phases = policy.Phases{
		DNS: 100 * time.Microsecond, Connect: time.Millisecond,
		TLS: time.Second, FirstByte: time.Hour,
	}
	full.URL, full.Kind = "https://a.example/?q=<b>&c=\"", KindReleased
	full.Reason, full.Error, full.ErrorClass = policy.ReasonExhausted, `said "no" <b>\ ü`, policy.ClassReset
	full.Header["Empty"], full.Header["None"], full.Header["X-Two\n"] = []string{}, nil, []string{"a", "\x00\xff\u2028"}
	for _, a := range []Attempt{{Kind: KindAttempt}, sample(), full, {Kind: "lost", StartedAt: time.UnixMilli(1).
		In(time.FixedZone("", 3600))}} {
		want, err := json.Marshal(entryOf(a))
		require.NoError(t, err)
		require.Equal(t, string(want), string(a.JSON()))
	}
}

// Of a usual attempt, most is the response. A longer form costs memory for each job.
func TestAttemptJSON_IsShort(t *testing.T) {
	a := sample()
	//nolint:testifylint // the bytes are counted
	require.Equal(t, []byte(`{"n":3,"ms":1767323045678,"d":30,"pf":29,"ra":"192.0.2.7:443","pr":"web-1/7K2QJ7HNTA",`+
		`"s":200,"v":"delivered",`+
		`"h":{"Content-Length":["2"],"Content-Type":["text/plain"],"Date":["Fri, 02 Jan 2026 03:04:05 `+
		`GMT"]},"b":"b2s="}`), a.JSON())
}

func TestAddEntry_ReadsWhatJSONHasWritten(t *testing.T) {
	attempts := []Attempt{
		sample(),
		{N: 4, Kind: KindLost, StartedAt: time.UnixMilli(7).UTC(), Process: "7K2QJ7HNTA"},
		{Kind: KindReleased, StartedAt: time.UnixMilli(7).UTC()},
	}
	attempts[0].Phases = policy.Phases{
		DNS: 100 * time.Microsecond, Connect: time.Millisecond,
		TLS: time.Second, FirstByte: time.Hour,
	}
	attempts[0].URL = "https://a.example/"
	events := []Event{
		{At: time.UnixMilli(5).UTC(), Kind: EventEdited, Fields: []string{"url", "x\"<"}, Actor: `jan "ops"` + "\n"},
		{At: time.UnixMilli(6).UTC(), Kind: EventCancelled},
	}
	var j Job
	for i := range attempts {
		require.NoError(t, j.AddEntry(attempts[i].JSON()))
	}
	for i := range events {
		require.NoError(t, j.AddEntry(events[i].JSON()))
	}
	require.Equal(t, attempts, j.History)
	require.Equal(t, events, j.Events)
	require.Error(t, j.AddEntry([]byte(`{"n":`)))
}

func TestEventJSON_EndsWithItsTime(t *testing.T) {
	e := Event{At: time.UnixMilli(1767323045678), Kind: EventEdited, Fields: []string{"url", "body"}, Actor: "ci"}
	//nolint:testifylint // the last member is the time
	require.Equal(t, []byte(`{"k":"edited","f":["url","body"],"a":"ci","ms":1767323045678}`), e.JSON())
	require.Equal(t, string(e.JSON()), string(e.JSONUpToTime())+"1767323045678}")
	//nolint:testifylint // as above
	require.Equal(t, []byte(`{"k":"run","ms":0}`), (&Event{Kind: EventRun, At: time.UnixMilli(0)}).JSON())
}

func TestAddAttempt_DisplacesOnlyItsOwnKind(t *testing.T) {
	var j Job
	for n := 1; n <= MaxAttempts; n++ {
		j.AddAttempt(Attempt{N: n, Kind: KindReleased})
	}
	for n := 1; n <= 2*MaxAttempts; n++ {
		j.AddAttempt(Attempt{N: n, Kind: []AttemptKind{KindAttempt, KindLost}[n%2]})
		j.AddEvent(Event{At: time.UnixMilli(int64(n))})
	}
	require.Len(t, j.History, 2*MaxAttempts)
	require.Equal(t, Attempt{N: 1, Kind: KindReleased}, j.History[0])
	require.Equal(t, MaxAttempts+1, j.History[MaxAttempts].N)
	require.Len(t, j.Events, MaxEvents)
	require.EqualValues(t, MaxEvents+1, j.Events[0].At.UnixMilli())
}

func FuzzAttemptJSON(f *testing.F) {
	f.Add(1, int64(5), 200, "delivered", "", "name", "value", []byte("ok"))
	f.Fuzz(func(t *testing.T, n int, took int64, status int, verdict, fault, name, value string, body []byte) {
		a := Attempt{
			N: n, Kind: KindLost, StartedAt: time.UnixMilli(rand.Int64N(1 << 42)).UTC(), Duration: time.Duration(took),
			Phases: policy.Phases{DNS: time.Duration(took / 2), FirstByte: time.Duration(took)}, URL: value,
			RemoteAddr: name, Process: fault, Status: status, Verdict: verdict, Error: fault,
			Header: map[string][]string{name: {value, fault}, value: {name}}, Body: body,
		}
		want, err := json.Marshal(entryOf(a))
		require.NoError(t, err)
		require.Equal(t, string(want), string(a.JSON()))
	})
}

// Scripts of an engine tell attempts from events by their beginning, whatever a client or a receiver has written.
func FuzzEventJSON(f *testing.F) {
	f.Add("edited", "url", `","n":1`)
	f.Fuzz(func(t *testing.T, kind, field, actor string) {
		e := Event{
			At: time.UnixMilli(7).UTC(), Kind: EventKind(strings.ToValidUTF8(kind, "")),
			Fields: []string{strings.ToValidUTF8(field, "")}, Actor: strings.ToValidUTF8(actor, ""),
		}
		require.True(t, strings.HasPrefix(string(e.JSON()), `{"k":"`))
		require.NotContains(t, string(e.JSON()), "\n")
		var j Job
		require.NoError(t, j.AddEntry(e.JSON()))
		require.Equal(t, []Event{e}, j.Events)
	})
}

func BenchmarkAttemptJSON(b *testing.B) {
	a := sample()
	b.ReportAllocs()
	for b.Loop() {
		a.JSON()
	}
}
