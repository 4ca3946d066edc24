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

func TestRetryAfter_ParsesToAWait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	in := func(d time.Duration) string { return now.Add(d).Format(http.TimeFormat) }
	tests := []struct {
		value string
		wait  time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"120", 2 * time.Minute},
		{" 120\t", 2 * time.Minute},
		{"0000000000000000000000005", 5 * time.Second},
		{"86400", policy.MaxRetryAfter},
		{"86401", policy.MaxRetryAfter},
		{"9223372036854775807", policy.MaxRetryAfter},
		{"9223372037", policy.MaxRetryAfter},
		{strings.Repeat("9", 500), policy.MaxRetryAfter},
		{"-1", 0},
		{"+5", 0},
		{"1.5", 0},
		{"1e3", 0},
		{"5s", 0},
		{"soon", 0},
		{"٣", 0},
		{in(time.Minute), time.Minute - 500*time.Millisecond},
		{now.Add(time.Minute).Format("Monday, 02-Jan-06 15:04:05 GMT"), time.Minute - 500*time.Millisecond},
		{now.Add(time.Minute).Format(time.ANSIC), time.Minute - 500*time.Millisecond},
		{in(-time.Hour), 0},
		{in(48 * time.Hour), policy.MaxRetryAfter},
		{"Fri, 31 Dec 9999 23:59:59 GMT", policy.MaxRetryAfter},
		{"Mon, 01 Jan 0001 00:00:00 GMT", 0},
	}
	for _, test := range tests {
		wait, _ := retryAfter(test.value, now)
		require.Equal(t, test.wait, wait, "%q", test.value)
	}
}

// Other fields are read only if it is invalid.
func TestRetryAfter_DistinguishesMissingFromZero(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for value, readable := range map[string]bool{
		"0": true, "90": true, "Sun, 01 Mar 2020 12:00:00 GMT": true, "": false, " ": false, "soon": false, "-1": false, "1.5": false,
	} {
		_, ok := retryAfter(value, now)
		require.Equal(t, readable, ok, "%q", value)
	}
}

func TestLimitReset_ParsesToAWait(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	tests := []struct {
		value    string
		wait     time.Duration
		readable bool
	}{
		{"", 0, false},
		{"0", 0, true},
		{"30", 30 * time.Second, true},
		{" 30\t", 30 * time.Second, true},
		{"0.25", 250 * time.Millisecond, true},
		{"30.", 30 * time.Second, true},
		{"86401", policy.MaxRetryAfter, true},
		{"999999999", policy.MaxRetryAfter, true}, // seconds yet
		{"1000000000", 0, true},                   // 2001
		{strconv.FormatInt(now.Unix(), 10), 0, true},
		{strconv.FormatInt(now.Unix()+60, 10), time.Minute - 500*time.Millisecond, true},
		{strconv.FormatInt(now.Unix()+60, 10) + ".5", time.Minute, true},
		{strconv.FormatInt(now.Unix()-60, 10), 0, true},
		{strconv.FormatInt(now.Unix()+1<<20, 10), policy.MaxRetryAfter, true},
		{strconv.FormatInt(now.UnixMilli()+60_000, 10), time.Minute, true},
		{strings.Repeat("9", 300), policy.MaxRetryAfter, true},
		{strings.Repeat("9", 400), 0, false}, // no float64 holds it
		{"-1", 0, false},
		{"+1", 0, false},
		{".5", 0, false},
		{".", 0, false},
		{"1.2.3", 0, false},
		{"1e3", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{"Inf", 0, false},
		{"NaN", 0, false},
		{"soon", 0, false},
		{"2026-03-01T12:01:00Z", 0, false},
		{"٣", 0, false},
	}
	for _, test := range tests {
		wait, ok := limitReset(test.value, now)
		require.Equal(t, test.readable, ok, "%q", test.value)
		require.InDelta(t, test.wait, wait, float64(10*time.Microsecond), "%q", test.value)
	}
}

func TestAskedWait_DependsOnFieldAndStatus(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	fields := func(pairs ...string) http.Header {
		h := make(http.Header)
		for i := 0; i < len(pairs); i += 2 {
			h.Set(pairs[i], pairs[i+1])
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
		{"a Retry-After that has passed", 429, fields("Retry-After", "Sun, 01 Mar 2020 12:00:00 GMT", "X-RateLimit-Reset", "9"), 0},
		{"a Retry-After that cannot be read", 429, fields("Retry-After", "soon", "X-RateLimit-Reset", "9"), 9 * time.Second},
		{"X-RateLimit-Reset", 429, fields("X-RateLimit-Reset", "9"), 9 * time.Second},
		{"RateLimit-Reset", 429, fields("RateLimit-Reset", "9"), 9 * time.Second},
		{"both", 429, fields("X-RateLimit-Reset", "9", "RateLimit-Reset", "8"), 9 * time.Second},
		{"the first cannot be read", 429, fields("X-RateLimit-Reset", "soon", "RateLimit-Reset", "8"), 8 * time.Second},
		{"503", 503, fields("X-RateLimit-Reset", "9"), 9 * time.Second},
		{"403 with nothing remaining", 403, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 9 * time.Second},
		{"403 with nothing remaining", 403, fields("RateLimit-Reset", "9", "RateLimit-Remaining", "0"), 9 * time.Second},
		{"403 with some remaining", 403, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "1"), 0},
		{"403", 403, fields("X-RateLimit-Reset", "9"), 0},
		{"200", 200, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 0},
		{"500", 500, fields("X-RateLimit-Reset", "9", "X-RateLimit-Remaining", "0"), 0},
	} {
		require.Equal(t, test.wait, AskedWait(test.status, test.header, now), "%s: %d", test.name, test.status)
	}
}

func FuzzLimitReset_IsBounded(f *testing.F) {
	for _, v := range []string{"30", "1772366460", "1772366460.5", "1772366460123", "-1", "1e9", "", "...", "NaN", strings.Repeat("9", 330)} {
		f.Add(v, int64(1_772_366_400))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		wait, ok := limitReset(value, time.Unix(now%(1<<36), 0))
		require.True(t, ok || wait == 0)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, policy.MaxRetryAfter)
	})
}

func FuzzRetryAfter_IsBounded(f *testing.F) {
	for _, v := range []string{"120", "-1", "Sun, 01 Mar 2026 12:00:00 GMT", "99999999999999999999", "", " 1 "} {
		f.Add(v, int64(1_772_366_400))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		wait, ok := retryAfter(value, time.Unix(now%(1<<36), 0))
		require.True(t, ok || wait == 0)
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, policy.MaxRetryAfter)
	})
}
