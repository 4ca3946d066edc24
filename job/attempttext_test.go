package job

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func sample() Attempt {
	return Attempt{
		N: 3, Kind: KindAttempt, StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC), Duration: 3 * time.Millisecond,
		Status: 200, Verdict: "delivered",
		Header: map[string][]string{"Date": {"Fri, 02 Jan 2026 03:04:05 GMT"}, "Content-Type": {"text/plain"}, "Content-Length": {"2"}},
		Body:   []byte("ok"),
	}
}

func TestAttemptJSON(t *testing.T) {
	full := sample()
	full.Reason, full.Error, full.ErrorClass = policy.ReasonExhausted, `said "no" <b>\ ü`, policy.ClassReset
	full.Header["Empty"], full.Header["None"], full.Header["X-Two\n"] = []string{}, nil, []string{"a", "\x00\xff\u2028"}
	for _, a := range []Attempt{{}, sample(), full, {Kind: "lost", StartedAt: time.Unix(1, 5).In(time.FixedZone("", 3600))}} {
		want, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, string(want), string(a.JSON()))
	}
}

func FuzzAttemptJSON(f *testing.F) {
	f.Add(1, int64(5), 200, "delivered", "", "name", "value", []byte("ok"))
	f.Fuzz(func(t *testing.T, n int, took int64, status int, verdict, fault, name, value string, body []byte) {
		a := Attempt{
			N: n, Kind: AttemptKind(verdict), StartedAt: time.UnixMilli(rand.Int64N(1 << 42)).UTC(), Duration: time.Duration(took),
			Status: status, Verdict: verdict, Error: fault, Header: map[string][]string{name: {value, fault}, value: {name}}, Body: body,
		}
		want, err := json.Marshal(a)
		require.NoError(t, err)
		require.Equal(t, string(want), string(a.JSON()))
	})
}

func BenchmarkAttemptJSON(b *testing.B) {
	a := sample()
	b.ReportAllocs()
	for b.Loop() {
		a.JSON()
	}
}
