package words

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestCount_IsExactAndPlural(t *testing.T) {
	for _, c := range []struct {
		n    int64
		noun string
		want string
	}{
		{0, "job", "0 jobs"},
		{1, "job", "1 job"},
		{999, "job", "999 jobs"},
		{1000, "dead job", "1,000 dead jobs"},
		{12400, "job", "12,400 jobs"},
		{1234567, "lane", "1,234,567 lanes"},
		{2, "retry", "2 retries"},
		{2, "day", "2 days"},
		{2, "process", "2 processes"},
		{3, "match", "3 matches"},
		{-1, "job", "-1 job"},
		{-1000, "job", "-1,000 jobs"},
		{2, "", "2 s"},
		{math.MinInt64, "job", "-9,223,372,036,854,775,808 jobs"},
	} {
		require.Equal(t, c.want, Count(c.n, c.noun))
	}
}

func TestDecimal_KeepsWhatIsSeen(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1: "1", 1.25: "1.2", 9.96: "10", 12.54: "12.5", 99.96: "100", 1204.4: "1,204",
		0.3: "0.3", 0.031: "0.031",
		0.996: "1", -12.5: "-12.5", -0.0000000000001: "0", 1e15: "1,000,000,000,000,000", math.Inf(1): "unknown",
	} {
		require.Equal(t, want, Decimal(v), "%v", v)
	}
	require.Equal(t, "unknown", Decimal(math.NaN()))
}

func TestRate_IsPerSecond(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0/s", 1204: "1,204/s", 0.3: "0.3/s", 0.01: "0.01/s", 0.009: "<0.01/s", 3.42: "3.4/s",
		-1: "unknown", math.Inf(1): "unknown",
	} {
		require.Equal(t, want, Rate(v), "%v", v)
	}
	require.Equal(t, "unknown", Rate(math.NaN()))
}

func TestBytes_UsesBinaryUnits(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 B", 512: "512 B", 1023: "1,023 B", 1024: "1 KiB", 1536: "1.5 KiB", 1024*1024 - 1: "1 MiB",
		12 << 20: "12 MiB", 10188: "9.9 KiB", -2048: "-2 KiB", math.MaxInt64: "8 EiB", math.MinInt64: "-8 EiB",
	} {
		require.Equal(t, want, Bytes(n), "%d", n)
	}
}

func TestDuration_HasAtMostTwoUnits(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0:                                     "0s",
		1:                                     "<1ms",
		250 * time.Millisecond:                "250ms",
		999_600 * time.Microsecond:            "1s",
		1200 * time.Millisecond:               "1.2s",
		9960 * time.Millisecond:               "10s",
		12_400 * time.Millisecond:             "12s",
		59_600 * time.Millisecond:             "1m",
		3 * time.Minute:                       "3m",
		59*time.Minute + 51*time.Second:       "59m51s",
		59*time.Minute + 59_700_000_000:       "1h",
		2*time.Hour + 5*time.Minute:           "2h5m",
		24*time.Hour - time.Second:            "1d",
		76 * time.Hour:                        "3d 4h",
		76*time.Hour + 29*time.Minute:         "3d 4h",
		1000 * 24 * time.Hour:                 "1,000d",
		-(59*time.Minute + 51*time.Second):    "-59m51s",
		math.MaxInt64:                         "106,751d 23h",
		math.MinInt64:                         "-106,751d 23h",
		1499 * time.Microsecond:               "1ms",
		time.Hour + 20*time.Second:            "1h",
		10*time.Minute + 400*time.Millisecond: "10m",
	} {
		require.Equal(t, want, Duration(d), "%d", int64(d))
	}
}

func FuzzDuration_NeverRoundsToAFullUnit(f *testing.F) {
	f.Add(int64(59_999_999_999))
	f.Add(int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, n int64) {
		text := Duration(time.Duration(n))
		require.NotContains(t, text, "60s")
		require.NotContains(t, text, "60m")
		require.NotContains(t, text, "24h")
		require.NotContains(t, text, "1000ms")
		require.LessOrEqual(t, strings.Count(text, "d")+strings.Count(text, "h")+
			strings.Count(strings.ReplaceAll(text, "ms", ""), "m")+strings.Count(text, "s"), 2, text)
	})
}

func TestLadder_SaysWhenAJobThatFailsIsAttempted(t *testing.T) {
	waits := []time.Duration{15 * time.Second, 3 * time.Minute, time.Hour}
	require.Equal(t, "One attempt, and no retries.", Ladder(waits, 0))
	require.Equal(t, "1 retry: 15s after the first attempt.", Ladder(waits, 1))
	require.Equal(t, "3 retries: 15s, 3m15s, 1h3m after the first attempt.", Ladder(waits, 3))
	require.Regexp(t, `^44 retries: 15s, .*, 18h3m, …, 1d 18h after`, Ladder(waits, 44))
	require.NotContains(t, Ladder(waits, 21), "…", "nothing is left out")
	require.Contains(t, Ladder([]time.Duration{math.MaxInt64}, 3), "106,751d 23h, 106,751d 23h")
	require.Equal(t, "2 retries: 0s, 0s after the first attempt.", Ladder(nil, 2))
}

func TestAgoAndIn_SayPastAndFuture(t *testing.T) {
	now := time.Date(2026, 11, 24, 14, 2, 11, 0, time.UTC)
	for _, c := range []struct {
		d       time.Duration
		ago, in string
	}{
		{0, "just now", "now"},
		{-999 * time.Millisecond, "just now", "now"},
		{-1500 * time.Millisecond, "1s ago", "1s ago"},
		{-time.Minute, "1m ago", "1m ago"},
		{-76 * time.Hour, "3d 4h ago", "3d 4h ago"},
		{200 * time.Millisecond, "just now", "in 1s"},
		{11_300 * time.Millisecond, "in 12s", "in 12s"},
		{3 * time.Minute, "in 3m", "in 3m"},
	} {
		require.Equal(t, c.ago, Ago(now.Add(c.d), now), "%v", c.d)
		require.Equal(t, c.in, In(now.Add(c.d), now), "%v", c.d)
	}
	require.Equal(t, "never", Ago(time.Time{}, now))
	require.Equal(t, "at an unknown time", In(time.Time{}, now))
	require.Equal(t, "in 106,751d 23h", In(now.AddDate(5000, 0, 0), now))
}

func TestClock_IsOfTheLocation(t *testing.T) {
	at := time.Date(2026, 11, 24, 23, 2, 11, 0, time.UTC)
	east := time.FixedZone("CET", 3600)
	require.Equal(t, "23:02:11", Clock(at, nil))
	require.Equal(t, "00:02:11", Clock(at, east))
	require.Equal(t, "24 Nov 2026", Date(at, nil))
	require.Equal(t, "25 Nov 2026", Date(at, east))
	require.Equal(t, "25 Nov 2026, 00:02:11 CET", DateTime(at, east))
	require.Equal(t, "23:02:11", When(at, at.Add(-23*time.Hour), nil))
	require.Equal(t, "25 Nov 2026, 00:02:11", When(at, at.Add(-time.Hour), east))
}

func TestList_NamesTwoOfMany(t *testing.T) {
	for want, items := range map[string][]string{
		"":                nil,
		"a":               {"a"},
		"a and b":         {"a", "b"},
		"a, b and c":      {"a", "b", "c"},
		"a, b and 2 more": {"a", "b", "c", "d"},
		"a, b and 3 more": {"a", "b", "c", "d", "e"},
	} {
		require.Equal(t, want, List(items))
	}
}

func TestSentence_EndsOnce(t *testing.T) {
	for _, c := range []struct {
		want  string
		parts []string
	}{
		{"", nil},
		{"", []string{" ", "."}},
		{"Callbacks flow.", []string{"Callbacks flow"}},
		{"Callbacks flow.", []string{"Callbacks flow."}},
		{"Callbacks flow.", []string{"Callbacks", "", " flow.. "}},
		{"2 lanes wait…", []string{"2 lanes wait…."}},
		{"Is it so?", []string{"Is it so?"}},
		{"It is paused (by ops).", []string{"It is paused", "(by ops)"}},
		{"It is paused. (Ask ops.)", []string{"It is paused.", "(Ask ops.)"}},
		{`The note says "later."`, []string{`The note says "later."`}},
	} {
		require.Equal(t, c.want, Sentence(c.parts...))
	}
}

func TestListAll_NamesAll(t *testing.T) {
	require.Equal(t, "a, b, c, d and e", ListAll([]string{"a", "b", "c", "d", "e"}))
	require.Equal(t, "a and b", ListAll([]string{"a", "b"}))
	require.Empty(t, ListAll(nil))
}

func TestVerb_AgreesWithCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0 jobs wait", 1: "1 job waits", -1: "-1 job waits", 2: "2 jobs wait", 1001: "1,001 jobs wait",
	} {
		require.Equal(t, want, CountVerb(n, "job", "waits", "wait"))
	}
}

func TestLowerFirst_AndUpperFirstChangeALetter(t *testing.T) {
	for upper, lower := range map[string]string{
		"": "", "Revive": "revive", "Über": "über", "Éa": "éa", "12 Jobs": "12 Jobs", "日本": "日本", "\xff": "\xff",
	} {
		require.Equal(t, lower, LowerFirst(upper))
		require.Equal(t, upper, UpperFirst(lower))
	}
}

func TestParseTime_ReadsWhatPeopleAndPagesWrite(t *testing.T) {
	for text, want := range map[string]string{
		"2026-11-24":                    "2026-11-24T00:00:00Z",
		"2026-11-24 UTC":                "2026-11-24T00:00:00Z",
		"2026-11-24 14:30":              "2026-11-24T14:30:00Z",
		"2026-11-24T14:30":              "2026-11-24T14:30:00Z",
		"2026-11-24 14:30 UTC":          "2026-11-24T14:30:00Z",
		"2026-11-24 14:30 utc":          "2026-11-24T14:30:00Z",
		"2026-11-24T14:30Z":             "2026-11-24T14:30:00Z",
		"2026-11-24 14:30z":             "2026-11-24T14:30:00Z",
		"2026-11-24T14:30+01:00":        "2026-11-24T13:30:00Z",
		"2026-11-24 14:30:05":           "2026-11-24T14:30:05Z",
		"2026-11-24 14:30:05.000 UTC":   "2026-11-24T14:30:05Z",
		"2026-11-24 14:30:05.250 UTC":   "2026-11-24T14:30:05.25Z",
		"2026-11-24t14:30:05.25z":       "2026-11-24T14:30:05.25Z",
		"2026-11-24T14:30:05.5-01:00":   "2026-11-24T15:30:05.5Z",
		" 2026-11-24 14:30:05.5+01:00 ": "2026-11-24T13:30:05.5Z",
	} {
		at, ok := ParseTime(text)
		require.True(t, ok, text)
		require.Equal(t, want, at.Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{
		"", " ", "UTC", " UTC", "2h", "now", "14:30", "2026-13-01", "2026-11-24 25:00", "2026-11-24T14:30Z UTC",
		"2026-11-24 14:30+01:00 UTC", "2026-11-24  14:30", "2026-11-24 14:30 CET", "1764000000",
	} {
		_, ok := ParseTime(text)
		require.False(t, ok, text)
	}
}
