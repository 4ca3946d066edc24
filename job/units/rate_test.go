package units_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

func TestRate_ParsesAndFormats(t *testing.T) {
	for text, want := range map[string]struct {
		rate    policy.Rate
		written string
	}{
		"":              {policy.Rate{}, ""},
		"100/s":         {policy.Rate{Starts: 100, Per: time.Second}, "100/s"},
		"1/m":           {policy.Rate{Starts: 1, Per: time.Minute}, "1/m"},
		"1000000/h":     {policy.Rate{Starts: 1_000_000, Per: time.Hour}, "1000000/h"},
		"5/d":           {policy.Rate{Starts: 5, Per: 24 * time.Hour}, "5/d"},
		"5/1s":          {policy.Rate{Starts: 5, Per: time.Second}, "5/s"},
		"5/60s":         {policy.Rate{Starts: 5, Per: time.Minute}, "5/m"},
		"5/90s":         {policy.Rate{Starts: 5, Per: 90 * time.Second}, "5/1m30s"},
		"1000/1h30m":    {policy.Rate{Starts: 1000, Per: 90 * time.Minute}, "1000/1h30m"},
		"5/0.1s":        {policy.Rate{Starts: 5, Per: policy.MinPer}, "5/100ms"},
		"5/100ms":       {policy.Rate{Starts: 5, Per: policy.MinPer}, "5/100ms"},
		"5/30d":         {policy.Rate{Starts: 5, Per: policy.MaxPer}, "5/30d"},
		"0005/s":        {policy.Rate{Starts: 5, Per: time.Second}, "5/s"},
		"0000000000/1d": {policy.Rate{}, "out of range"},
	} {
		rate, err := units.ParseRate(text)
		if want.written == "out of range" {
			require.Error(t, err, text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want.rate, rate, text)
		require.Equal(t, want.written, units.FormatRate(rate), text)
	}
}

func TestRate_RejectsInvalidText(t *testing.T) {
	for text, says := range map[string]string{
		"100": "is not a rate", "/s": "is not a rate", "100/": "is not a rate", "s/100": "is not a rate",
		"1.5/s": "is not a rate", "+5/s": "is not a rate", "-5/s": "is not a rate", " 5/s": "is not a rate",
		"5 /s": "is not a rate", "5/ s": "is not a rate", "5/s/s": "is not a rate", "5/x": "is not a rate",
		"5/30": "is not a rate", "٣/s": "is not a rate", "1e3/s": "is not a rate",
		"99999999999999999999/s": "is not a rate", "5/99999999999999999999d": "is not a rate", "/": "is not a rate",
		"5_0/s": "is not a rate", "0/s": "must be 1 to 1000000", "1000001/s": "must be 1 to 1000000",
		"5/99ms": "100ms to 30d", "5/ms": "100ms to 30d", "5/31d": "100ms to 30d",
		"5/0s": "100ms to 30d", "5/-1s": "100ms to 30d",
	} {
		rate, err := units.ParseRate(text)
		require.Zero(t, rate, text)
		require.ErrorContains(t, err, says, text)
	}
	_, err := units.ParseRate(strings.Repeat("ü", 1000))
	require.Less(t, len(err.Error()), 200, "an overlong text is cut")
}

func TestRate_FormatsNoLimitAsEmpty(t *testing.T) {
	for _, r := range []policy.Rate{{}, {Starts: 5}, {Per: time.Second}, {Starts: -1, Per: time.Second}} {
		require.Empty(t, units.FormatRate(r))
	}
}

// Parsed rates are within the limits, and formatting round-trips.
func FuzzParseRate(f *testing.F) {
	for _, text := range []string{
		"", "100/s", "5/90s", "1000/1h30m", "0/s", "5/", "/", "5/-1s", "5/1.5d", "-5/s", "99999999999999999999/d",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rate, err := units.ParseRate(text)
		if err != nil {
			require.Zero(t, rate)
			require.NotEmpty(t, err.Error())
			require.Less(t, len(err.Error()), 600)
			return
		}
		require.Equal(t, text != "", rate.Limited())
		if rate.Limited() {
			require.LessOrEqual(t, rate.Starts, policy.MaxStarts)
			require.GreaterOrEqual(t, rate.Per, policy.MinPer)
			require.LessOrEqual(t, rate.Per, policy.MaxPer)
			require.Zero(t, rate.Per%time.Millisecond)
		}
		again, err := units.ParseRate(units.FormatRate(rate))
		require.NoError(t, err)
		require.Equal(t, rate, again)
	})
}
