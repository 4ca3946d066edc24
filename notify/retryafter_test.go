package notify

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
)

func TestRetryAfterIsReadAsAWait(t *testing.T) {
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
		require.Equal(t, test.wait, retryAfter(test.value, now), "%q", test.value)
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, v := range []string{"120", "-1", "Sun, 01 Mar 2026 12:00:00 GMT", "99999999999999999999", "", " 1 "} {
		f.Add(v, int64(1_772_366_400))
	}
	f.Fuzz(func(t *testing.T, value string, now int64) {
		wait := retryAfter(value, time.Unix(now%(1<<36), 0))
		require.GreaterOrEqual(t, wait, time.Duration(0))
		require.LessOrEqual(t, wait, policy.MaxRetryAfter)
	})
}
