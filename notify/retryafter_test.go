package notify

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestParseWait_TakesWhatReceiversSend(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	for value, want := range map[string]time.Duration{
		"0":                         0,
		"120":                       2 * time.Minute,
		" 120\t":                    2 * time.Minute,
		"0000000000000000000000005": 5 * time.Second,
		"86400":                     policy.MaxRetryAfter,
		"86401":                     policy.MaxRetryAfter,
		"999999999":                 policy.MaxRetryAfter, // seconds yet
		"1000000000":                0,                    // 2001
		"9223372036854775807":       policy.MaxRetryAfter,
		strings.Repeat("9", 500):    policy.MaxRetryAfter, // no float64 holds it
		"+5":                        5 * time.Second,
		`"5"`:                       5 * time.Second,
		"8.5":                       8500 * time.Millisecond,
		"7.997":                     7997 * time.Millisecond,
		"7.99701":                   7998 * time.Millisecond,
		".25":                       250 * time.Millisecond,
		"30.":                       30 * time.Second,
		"5s":                        5 * time.Second,
		"5 Seconds":                 5 * time.Second,
		"250ms":                     250 * time.Millisecond,
		"1m26.4s":                   86400 * time.Millisecond,
		"2 h":                       2 * time.Hour,
		in(time.Minute):             time.Minute - 500*time.Millisecond,
		now.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"): time.Minute - 500*time.Millisecond,
		now.Add(time.Minute).Format(time.ANSIC):                       time.Minute - 500*time.Millisecond,
		"2026-03-01T12:01:00Z":                                        time.Minute - 500*time.Millisecond,
		"2026-03-01T13:01:00.500+01:00":                               time.Minute,
		"2026-03-01T12:01Z":                                           time.Minute - 500*time.Millisecond,
		in(-time.Hour):                                                0,
		in(48 * time.Hour):                                            policy.MaxRetryAfter,
		"Fri, 31 Dec 9999 23:59:59 GMT":                               policy.MaxRetryAfter,
		"Mon, 01 Jan 0001 00:00:00 GMT":                               0,
		strconv.FormatInt(now.Unix(), 10):                             0,
		strconv.FormatInt(now.Unix()+60, 10):                          time.Minute - 500*time.Millisecond,
		strconv.FormatInt(now.Unix()+60, 10) + ".5":                   time.Minute,
		strconv.FormatInt(now.Unix()-60, 10):                          0,
		strconv.FormatInt(now.UnixMilli()+60_000, 10):                 time.Minute,
	} {
		wait, ok := parseWait(value, time.Second, now)
		require.True(t, ok, "%q", value)
		require.Equal(t, want, wait, "%q", value)
	}
	for _, value := range []string{
		"", " ", "-1", ".", "1.2.3", "1e3", "0x10", "1_000", "Inf", "NaN", "soon", "٣", "5 5", "5s5",
		"5 fortnights", "s", "2026-03-01",
	} {
		_, ok := parseWait(value, time.Second, now)
		require.False(t, ok, "%q", value)
	}
}

func TestAskedWait_DependsOnFieldAndStatus(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fields := func(pairs ...string) http.Header {
		h := make(http.Header)
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	for _, test := range []struct {
		name   string
		status int
		header http.Header
		wait   time.Duration
	}{
		{"nothing", 429, fields(), 0},
		{"Retry-After", 429, fields("Retry-After", "5", "X-RateLimit-Reset", "9"), 5 * time.Second},
		{"Retry-After with any status", 404, fields("Retry-After", "5"), 5 * time.Second},
		{"a Retry-After of zero", 429, fields("Retry-After", "0", "X-RateLimit-Reset", "9"), 0},
		{"a Retry-After that has " +
			"passed", 429, fields("Retry-After", "Sun, 01 Mar 2020 12:00:00 GMT", "X-RateLimit-Reset", "9"), 0},
		{"a Retry-After that cannot be " +
			"read", 429, fields("Retry-After", "soon", "X-RateLimit-Reset", "9"), 9 * time.Second},
		{"two lines", 429, fields("Retry-After", "4", "Retry-After", "10"), 10 * time.Second},
		{"a list", 429, fields("Retry-After", "8, soon, 12, 9"), 12 * time.Second},
		{
			"a list of dates", 429,
			fields("Retry-After", "Sun, 01 Mar 2026 12:00:09 GMT, Sun, 01 Mar 2026 12:00:08 GMT"), 9 * time.Second,
		},
		{"Retry-After-Ms", 429, fields("Retry-After", "8", "Retry-After-Ms", "8123"), 8123 * time.Millisecond},
		{
			"dates by the receiver's clock", 429,
			fields("Date", "Sun, 01 Mar 2026 11:00:00 GMT", "Retry-After", "Sun, 01 Mar 2026 11:00:08 GMT"),
			8 * time.Second,
		},
		{
			"and Unix times", 429,
			fields("Date", "Sun, 01 Mar 2026 13:00:00 GMT", "X-RateLimit-Reset", "1772370009"), 9 * time.Second,
		},
		{"an unreadable " +
			"Date", 429, fields("Date", "today", "Retry-After", "Sun, 01 Mar 2026 12:00:08 GMT"), 8 * time.Second},
		{
			"X-RateLimit-Reset-After", 429, fields("X-RateLimit-Reset-After", "8.5", "X-RateLimit-Reset", "8"),
			8500 * time.Millisecond,
		},
		{"X-Rate-Limit-Reset", 429, fields("X-Rate-Limit-Reset", "1772366409"), 9 * time.Second},
		{"RateLimit", 429, fields("RateLimit", `"default";r=0;t=8`), 8 * time.Second},
		{"RateLimit, the limit that is used up", 429, fields("RateLimit", `"burst";r=0;t=8, `+
			`"daily";r=900;t=80000`), 8 * time.Second},
		{"RateLimit in two " +
			"lines", 429, fields("RateLimit", "burst;r=0;t=8", "RateLimit", "daily;t=9;r=0"), 9 * time.Second},
		{"RateLimit with some remaining", 429, fields("RateLimit", `"default";r=1;t=8`), 8 * time.Second},
		{"RateLimit of draft 07", 429, fields("RateLimit", "limit=100, remaining=0, reset=8"), 8 * time.Second},
		{"RateLimit that is none", 429, fields("RateLimit", `;;,"=t=;r;t=soon`), 0},
		{"403 with a used-up RateLimit", 403, fields("RateLimit", `"default";r=0;t=8`), 8 * time.Second},
		{"403 with an open RateLimit", 403, fields("RateLimit", `"default";r=1;t=8`), 0},
		{"200 with a used-up RateLimit", 200, fields("RateLimit", `"default";r=0;t=8`), 0},
		{"X-RateLimit-Reset", 429, fields("X-RateLimit-Reset", "9"), 9 * time.Second},
		{"RateLimit-Reset", 429, fields("RateLimit-Reset", "9"), 9 * time.Second},
		{"both", 429, fields("X-RateLimit-Reset", "9", "RateLimit-Reset", "8"), 9 * time.Second},
		{"the first cannot be read", 429, fields("X-RateLimit-Reset", "soon", "RateLimit-Reset", "8"), 8 * time.Second},
		{"503", 503, fields("X-RateLimit-Reset", "9"), 9 * time.Second},
		{"403 with nothing " +
			"remaining", 403, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 9 * time.Second},
		{"403 with nothing " +
			"remaining", 403, fields("RateLimit-Reset", "9", "RateLimit-Remaining", "0"), 9 * time.Second},
		{"403 with some remaining", 403, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "1"), 0},
		{"403", 403, fields("X-RateLimit-Reset", "9"), 0},
		{"200", 200, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 0},
		{"500", 500, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 0},
	} {
		require.Equal(t, test.wait, AskedWait(test.status, test.header, now), "%s: %d", test.name, test.status)
	}
}

func TestAskedWait_ReadsFewItems(t *testing.T) {
	h := http.Header{"Retry-After": {strings.Repeat("1,", maxWaitItems-1) + "2,3", "4"}}
	require.Equal(t, 2*time.Second, AskedWait(http.StatusOK, h, time.Time{}))
}

func FuzzAskedWait_IsBounded(f *testing.F) {
	for _, v := range []string{
		"30", "1772366460.5", "1772366460123", "-1", "1e9", "", "...", "NaN", strings.Repeat("9", 330), "8, 12",
		"1m30s", `"default";r=0;t=8`, "Sun, 01 Mar 2026 12:00:00 GMT", "2026-03-01T12:01:00Z",
	} {
		f.Add(v, int64(1_772_366_400))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		for _, name := range []string{"Retry-After", "Retry-After-Ms", "X-Ratelimit-Reset", "Ratelimit"} {
			wait := AskedWait(http.StatusTooManyRequests, http.Header{name: {value}}, time.Unix(now%(1<<36), 0))
			require.GreaterOrEqual(t, wait, time.Duration(0))
			require.LessOrEqual(t, wait, policy.MaxRetryAfter)
		}
	})
}
