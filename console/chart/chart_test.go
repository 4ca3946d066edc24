package chart

import (
	"flag"
	"html/template"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden pictures anew")

const minute = time.Minute

var (
	noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	nan  = math.NaN()
)

func everyHour(from time.Time) (ticks []time.Time) { return every(time.Hour, 24, from) }

func every(interval time.Duration, n int, from time.Time) (ticks []time.Time) {
	for i := range n {
		ticks = append(ticks, from.Add(time.Duration(i)*interval))
	}
	return ticks
}

// wave returns values that rise and fall.
func wave(n int, size float64) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Round(size * (1.2 + math.Sin(float64(i)/9)))
	}
	return values
}

// gallery has a picture of every kind.
func gallery(t *testing.T) []struct {
	name    string
	picture template.HTML
} {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	gap := wave(60, 40)
	copy(gap[20:], []float64{nan, nan, nan, nan})
	verdicts := []Series{
		{"delivered", "c-delivered", wave(300, 500)},
		{"again", "c-again", wave(300, 60)},
		{"dead", "c-dead", wave(300, 10)},
	}
	lateness := []Series{{"p50", "c-p50", wave(60, 0.004)}, {"p99", "c-p99", wave(60, 3)}}
	for i := range lateness[0].Values {
		lateness[0].Values[i] = 0.004 * (1.2 + math.Sin(float64(i)/5))
	}
	return []struct {
		name    string
		picture template.HTML
	}{
		{"spark", Spark(verdicts, "98 % of 1,200 attempts were delivered")},
		{"stack", Stack(verdicts, noon.Add(-5*minute), noon, "Attempts per second")},
		{"stack-gaps", Stack([]Series{{"delivered", "c-delivered", gap}}, noon.Add(-minute),
			noon, "Attempts per second")},
		{"stack-idle", Stack([]Series{{"delivered", "c-delivered", make([]float64, 60)}}, noon.Add(-minute),
			noon, "Attempts per second")},
		{"lines", Lines(lateness, noon.Add(-time.Hour), noon, "Lateness")},
		{"lines-none", Lines([]Series{{"p50", "c-p50", []float64{nan}}}, noon.Add(-time.Hour), noon, "Lateness")},
		{"day", Day(append(every(time.Hour, 8, noon), append(every(minute, 60, noon.Add(7*time.Hour)),
			every(time.Hour, 16, noon.Add(8*time.Hour))...)...), true, noon, noon.Add(20*minute), berlin, WideDay)},
		{"day-dst", Day(every(15*minute, 96, time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC)), true,
			time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), berlin,
			WideDay)},
		{"day-narrow", Day(everyHour(noon), false, noon, noon.Add(20*minute), berlin, NarrowDay)},
	}
}

func TestPictures_AreAsBefore(t *testing.T) {
	for _, c := range gallery(t) {
		t.Run(c.name, func(t *testing.T) {
			require.NotRegexp(t, `\.\.|  |^\s|;\s*\.`, read(t, c.picture).title)
			file := filepath.Join("testdata", c.name+".golden")
			// A line an element, so that differences can be read.
			got := strings.ReplaceAll(string(c.picture), "><", ">\n<") + "\n"
			if *update {
				require.NoError(t, os.MkdirAll("testdata", 0o755))
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			want, err := os.ReadFile(file)
			require.NoError(t, err, "run go test ./console/chart -update")
			require.Equal(t, string(want), got, "if the change is meant: go test ./console/chart -update")
		})
	}
}

func TestPictures_SayTheirNumbers(t *testing.T) {
	for _, c := range []struct {
		want    string
		picture template.HTML
	}{
		{"Attempts: delivered 30/s at last, 20/s on average; dead 1/s at last, 1/s on average; at most 31/s in all; " +
			"12:00:00 to 12:01:00.", Stack(
			[]Series{{"delivered", "c-delivered", []float64{10, nan, 30}}, {"dead", "c-dead", []float64{1, 1, 1}}},
			noon, noon.Add(minute), "Attempts")},
		{"Attempts: d 120/s at last, 60.5/s on average; at most 120/s in all (averages of 1s); 12:00:00 to " +
			"12:01:00.", Stack([]Series{{"d", "c-delivered", count(120)}}, noon, noon.Add(minute), "Attempts")},
		{"Attempts: nothing from 12:00 to 13:00.", Stack([]Series{{"delivered", "c-delivered", []float64{0, 0}}}, noon,
			noon.Add(time.Hour), "Attempts")},
		{"Attempts: no values from 12:00 to " +
			"13:00.", Stack([]Series{{"delivered", "c-delivered", []float64{nan, nan}}}, noon,
			noon.Add(time.Hour), "Attempts")},
		{"Lateness: p50 2ms at last, at most 4ms; p99 1.2s at last, at most 3m; 12:00:00 to 12:01:00.", Lines(
			[]Series{{"p50", "c-p50", []float64{0.004, 0.002}}, {"p99", "c-p99", []float64{180, 1.2}}}, noon,
			noon.Add(minute), "Lateness")},
		{"2 ticks in the 24 hours from 24 Nov 2026, 12:00:00 UTC, the first at 12:00:00, the last at 13:00:00, " +
			"the next at 13:00:00.", Day([]time.Time{noon, noon.Add(time.Hour)}, true, noon, noon.Add(minute), time.UTC,
			WideDay)},
	} {
		require.Equal(t, c.want, read(t, c.picture).title)
	}
}

func count(n int) (values []float64) {
	for i := range n {
		values = append(values, float64(i+1))
	}
	return values
}

func TestDay_DrawsDenseTicksAsABar(t *testing.T) {
	require.Contains(t, string(Day(every(minute, 1440, noon), true, noon, noon, time.UTC, WideDay)),
		`<path class="c-bar" d="M8 6h704v16H8z"/>`)
	require.NotContains(t, string(Day(every(10*minute, 144, noon), true, noon, noon, time.UTC, WideDay)), "c-bar")
}

func TestDay_LabelsTheHoursOfTheLocation(t *testing.T) {
	kathmandu := time.FixedZone("+0545", 5*3600+45*60)
	require.Equal(t, []string{"18", "21", "00", "03", "06", "09", "12", "15"},
		read(t, Day(everyHour(noon), true, noon, noon, kathmandu, WideDay)).texts)
}

func TestStack_IsOfItsHeight(t *testing.T) {
	got := string(Stack([]Series{{"a", "c-delivered", []float64{5, 10}}, {"b", "c-dead", []float64{5, 0}}},
		noon, noon.Add(minute), "Attempts"))
	require.Contains(t, got, `<path class="c-area c-delivered" d="M62 130v-60h277v-60h277v120z"/>`)
	require.Contains(t, got, `<path class="c-area c-dead" d="M62 130v-120h554v120z"/>`, "above the first series")
	require.Contains(t, got, `>10/s<`)
}

func TestSpark_IsAStackWithoutAxes(t *testing.T) {
	series := []Series{{"delivered", "c-delivered", []float64{5, 10}}, {"failed", "c-dead", []float64{5, 0}}}
	got := Spark(series, "50 % of 4")
	require.Equal(t, "50 % of 4.", read(t, got).title)
	require.Contains(t, string(got), `<path class="c-area c-delivered" d="M0 20v-9h60v-10h60v19z"/>`)
	require.Contains(t, string(got), `<path class="c-area c-dead" d="M0 20v-19h120v19z"/>`)
	empty := Spark([]Series{{"delivered", "c-delivered", []float64{0, 0}}}, "no attempt")
	require.NotContains(t, string(empty), "c-area")
}
