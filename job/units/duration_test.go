package units

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDuration_ParsesAndFormats(t *testing.T) {
	cases := []struct {
		text  string
		want  time.Duration
		again string
	}{
		{"90s", 90 * time.Second, "1m30s"},
		{"3m", 3 * time.Minute, "3m"},
		{"1h30m", 90 * time.Minute, "1h30m"},
		{"7d", 7 * day, "7d"},
		{"50h", 50 * time.Hour, "2d2h"},
		{"2d2h", 50 * time.Hour, "2d2h"},
		{"1.5s", 1500 * time.Millisecond, "1.5s"},
		{"1500ms", 1500 * time.Millisecond, "1.5s"},
		{"1m250ms", time.Minute + 250*time.Millisecond, "1m250ms"},
		{"0.5d", 12 * time.Hour, "12h"},
		{"1.0004s", time.Second, "1s"},
		{"0.0005s", time.Millisecond, "1ms"},
		{"0s", 0, "0s"},
		{"-5s", -5 * time.Second, "-5s"},
		{"0.123456789012345678901234567890h", 444444 * time.Millisecond, "7m24.444s"},
		{"106751d", 106751 * day, "106751d"},
	}
	for _, c := range cases {
		got, err := ParseDuration(c.text)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got, c.text)
		require.Equal(t, c.again, FormatDuration(got), c.text)
	}
}

func TestDuration_RejectsInvalidText(t *testing.T) {
	for _, text := range []string{
		"", "-", "5", "s", "1.s", ".5s", "1x", "1s1m", "1s1s", "1.5m3s", "+5s", " 5s", "5 s", "1h-3m", "1ns", "1µs",
		"1w", "106752d", "99999999999999999999999d", "9223372036854776s", "106751d24h", "1e3s", "--1s",
	} {
		_, err := ParseDuration(text)
		require.Error(t, err, text)
	}
}

func TestSeconds_RoundToMilliseconds(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90": 90 * time.Second, "1.5": 1500 * time.Millisecond, "0.30000000000000004": 300 * time.Millisecond,
		"-1": -time.Second, "0": 0, "1e3": 1000 * time.Second, "1e-300": 0,
	} {
		got, err := ParseSeconds(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"1e300", "-1e300", "1e400", "9223372037", "NaN", "x"} {
		_, err := ParseSeconds(text)
		require.Error(t, err, text)
	}
}

func TestSize_ParsesAndFormats(t *testing.T) {
	for text, want := range map[string]int64{
		"256MiB": 256 << 20, "1GiB": 1 << 30, "512B": 512, "0B": 0, "3KiB": 3 << 10, "1TiB": 1 << 40, "1025B": 1025,
	} {
		got, err := ParseSize(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got)
		require.Equal(t, text, FormatSize(got))
	}
	for _, text := range []string{
		"", "1", "MiB", "-1B", "1.5GiB", "1MB", "1 B", "9223372036854775808B", "8388608TiB", "1b",
	} {
		_, err := ParseSize(text)
		require.Error(t, err, text)
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, text := range []string{"90s", "1h30m", "2d2h", "1.5s", "-1ms", "106751d23h47m16.854s", "0.000000001d"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseDuration(text)
		if err != nil {
			return
		}
		again, err := ParseDuration(FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, again, "%q is written %q", text, FormatDuration(d))
	})
}

func FuzzFormatDuration(f *testing.F) {
	f.Add(int64(0))
	f.Add(int64(math.MinInt64))
	f.Fuzz(func(t *testing.T, millis int64) {
		millis %= maxMillis + 1
		d := time.Duration(millis) * time.Millisecond
		again, err := ParseDuration(FormatDuration(d))
		require.NoError(t, err)
		require.Equal(t, d, again)
	})
}

func FuzzParseSeconds(f *testing.F) {
	f.Add("1.5")
	f.Add("-1e9")
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}
		d, err := ParseSeconds(text)
		require.True(t, err == nil || d == 0)
		require.Zero(t, d%time.Millisecond)
	})
}

func FuzzParseSize(f *testing.F) {
	f.Add("256MiB")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		require.GreaterOrEqual(t, n, int64(0))
		again, err := ParseSize(FormatSize(n))
		require.NoError(t, err)
		require.Equal(t, n, again)
	})
}
