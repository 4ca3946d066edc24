package chart

import (
	"flag"
	"fmt"
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
	ladder := []time.Duration{15 * time.Second, 3 * minute, 10 * minute, time.Hour, 6 * time.Hour, 24 * time.Hour}
	life := []Moment{
		{noon, "registered", "c-registered"},
		{noon.Add(30 * minute), "attempt 1: 503", "c-again"},
		{noon.Add(30*minute + 15*time.Second), "attempt 2: no answer", "c-again"},
		{noon.Add(34 * minute), "attempt 3: 503", "c-again"},
		{noon.Add(50 * minute), "attempt 4", "c-next"},
		{noon.Add(48 * time.Hour), "expires", "c-expiry"},
	}
	long := []Moment{{noon, "registered", "c-registered"}}
	for i := range 60 {
		long = append(long,
			Moment{noon.Add(time.Duration(i+1) * time.Hour), fmt.Sprintf("attempt %d: 503", i+1), "c-again"})
	}
	return []struct {
		name    string
		picture template.HTML
	}{
		{"stack", Stack(verdicts, noon.Add(-5*minute), noon, "Attempts per second")},
		{"stack-gaps", Stack([]Series{{"delivered", "c-delivered", gap}}, noon.Add(-minute),
			noon, "Attempts per second")},
		{"stack-idle", Stack([]Series{{"delivered", "c-delivered", make([]float64, 60)}}, noon.Add(-minute),
			noon, "Attempts per second")},
		{"stack-none", Stack(nil, noon.Add(-minute), noon, "Attempts per second")},
		{"lines", Lines(lateness, noon.Add(-time.Hour), noon, "Lateness")},
		{"lines-none", Lines([]Series{{"p50", "c-p50", []float64{nan}}}, noon.Add(-time.Hour), noon, "Lateness")},
		{"ladder", Ladder(ladder, 6, 10*time.Second)},
		{"ladder-long", Ladder(ladder, 44, 10*time.Second)},
		{"ladder-none", Ladder(nil, 0, 10*time.Second)},
		{"timeline", Timeline(life, noon.Add(40*minute))},
		{"timeline-long", Timeline(long, noon.Add(61*time.Hour))},
		{"timeline-none", Timeline(nil, noon)},
		{"day", Day(append(everyHour(noon), every(minute, 60, noon.Add(7*time.Hour))...), noon, noon.Add(20*minute),
			berlin, DayOptions{Label: "Ticks of nightly"})},
		{"day-dst", Day(every(15*minute, 96, time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC)),
			time.Date(2026, 10, 24, 22, 0, 0, 0, time.UTC), time.Time{}, berlin, DayOptions{Label: "Ticks"})},
		{"day-narrow", Day(everyHour(noon), noon, noon.Add(20*minute), berlin, DayOptions{Width: 320, AtLeast: true})},
		{"day-none", Day(nil, noon, noon, berlin, DayOptions{Label: "Ticks"})},
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
			"13:00.", Stack([]Series{{"delivered", "c-delivered", []float64{nan, math.Inf(1), -1}}}, noon,
			noon.Add(time.Hour), "Attempts")},
		{"Lateness: p50 2ms at last, at most 4ms; p99 1.2s at last, at most 3m; 12:00:00 to 12:01:00.", Lines(
			[]Series{{"p50", "c-p50", []float64{0.004, 0.002}}, {"p99", "c-p99", []float64{180, 1.2}}}, noon,
			noon.Add(minute), "Lateness")},
		{"2 retries: +15s; +3m15s; each attempt takes up to " +
			"10s.", Ladder([]time.Duration{15 * time.Second, 3 * minute}, 2, 10*time.Second)},
		{"One attempt, and no retries.", Ladder([]time.Duration{time.Second}, 0, 0)},
		{"registered 24 Nov 2026, 12:00:00 UTC; attempt 1 +30m; now 12:31:00.", Timeline(
			[]Moment{{noon.Add(30 * minute), "attempt 1", "c-again"}, {noon, "registered", "c-registered"}}, noon.Add(
				31*minute,
			))},
		{"t: 2 ticks in the 24 hours from 24 Nov 2026, 12:00:00 UTC, the first at 12:00:00, the last at 13:00:00, " +
			"the next at 13:00:00.", Day(
			[]time.Time{noon.Add(time.Hour), noon, noon.Add(24 * time.Hour), noon.Add(-1)}, noon, noon.Add(minute), nil,
			DayOptions{Label: "t"})},
		{"t: no tick in the 24 hours from 24 Nov 2026, 12:00:00 " +
			"UTC.", Day([]time.Time{noon.Add(24 * time.Hour)}, noon, noon, nil, DayOptions{Label: "t"})},
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

func TestLadder_NamesWhatItDoesNotDraw(t *testing.T) {
	p := read(t, Ladder([]time.Duration{15 * time.Second, 3 * minute, time.Hour}, 44, 0))
	require.Contains(t, p.texts, "… 24 more, last after 1d 18h")
	require.Contains(t, p.title, "44 retries: +15s; +3m15s; +1h3m; ")
	p = read(t, Ladder([]time.Duration{math.MaxInt64}, math.MaxInt, 0))
	require.Contains(t, p.title, "last after 106,751d 23h")
}

func TestLadder_WritesWaitsAndTimes(t *testing.T) {
	p := read(t, Ladder([]time.Duration{15 * time.Second, 3 * minute, 10 * minute}, 3, 0))
	require.Subset(t, p.texts, []string{"15s", "3m", "10m", "first", "+15s", "+3m15s", "+13m15s"})
}

func TestTimeline_IsAsHighAsItsRows(t *testing.T) {
	one := string(Timeline([]Moment{{At: noon, Label: "registered"}}, time.Time{}))
	require.Contains(t, one, `viewBox="0 0 720 60" width="720" height="60"`)
	two := string(Timeline([]Moment{
		{At: noon, Label: "registered"},
		{At: noon, Label: "attempt 1"},
		{At: noon.Add(time.Hour), Label: "attempt 2"},
	}, time.Time{}))
	require.Contains(t, two, `viewBox="0 0 720 73" width="720" height="73"`)
}

func TestTimeline_KeepsTheOrderOfTime(t *testing.T) {
	now := noon.Add(90 * time.Second)
	events := []Moment{
		{noon.Add(time.Hour), "c", ""},
		{noon, "a", ""},
		{noon.Add(minute), "b", ""},
		{noon.Add(minute), "b2", ""},
	}
	sorted := []Moment{events[1], events[2], events[3], events[0]}
	marks := placeMarks(sorted, now)
	var names []string
	for i, m := range marks {
		names = append(names, m.Label)
		if i > 0 {
			require.Greater(t, m.x, marks[i-1].x, m.Label)
		}
	}
	require.Equal(t, []string{"a", "b", "b2", "now", "c"}, names)
	require.Equal(t, "c", events[0].Label, "the caller's slice is not sorted")
	p := read(t, Timeline(events, now))
	require.Equal(t, []string{"a", "b", "b2", "now", "c", "1m", "30s", "58m30s"}, p.texts)
}

func TestTimeline_ShowsTheEndsOfManyMoments(t *testing.T) {
	var events []Moment
	for i := range 500 {
		events = append(events,
			Moment{noon.Add(time.Duration(i) * time.Second), fmt.Sprintf("attempt %d", i), "c-again"})
	}
	p := read(t, Timeline(events, noon.Add(time.Hour)))
	require.Contains(t, p.texts, "attempt 0")
	require.Contains(t, p.texts, "attempt 499")
	require.Contains(t, p.texts, "now")
	require.Contains(t, p.texts, "… 460 not drawn")
	require.Regexp(t, `and 4\d\d more`, p.title)
}

func TestDay_DrawsDenseTicksAsABar(t *testing.T) {
	require.Contains(t, string(Day(every(minute, 1440, noon), noon, noon, nil, DayOptions{Label: "t"})),
		`<path class="c-bar" d="M8 6h704v16H8z"/>`)
	require.NotContains(t, string(Day(every(10*minute, 144, noon), noon, noon, nil, DayOptions{Label: "t"})), "c-bar")
}

func TestDay_LabelsTheHoursOfTheLocation(t *testing.T) {
	kathmandu := time.FixedZone("+0545", 5*3600+45*60)
	require.Equal(t, []string{"18", "21", "00", "03", "06", "09", "12", "15"},
		read(t, Day(everyHour(noon), noon, noon, kathmandu, DayOptions{Label: "t"})).texts)
}

func TestStack_AddsUpWhatIsTooMuch(t *testing.T) {
	var series []Series
	for i := range 8 {
		series = append(series, Series{Name: fmt.Sprint("s", i), Values: []float64{1, 1}})
	}
	require.Contains(t, read(t, Stack(series, noon, noon.Add(minute), "")).title,
		"others 4/s at last, 4/s on average; at most 8/s in all")
}

func TestStack_IsOfItsHeight(t *testing.T) {
	got := string(Stack([]Series{{"a", "c-delivered", []float64{5, 10}}, {"b", "c-dead", []float64{5, 0}}},
		noon, noon.Add(minute), ""))
	require.Contains(t, got, `<path class="c-area c-delivered" d="M62 130v-60h305v-60h305v120z"/>`)
	require.Contains(t, got, `<path class="c-area c-dead" d="M62 130v-120h610v120z"/>`, "it stands on the first series")
	require.Contains(t, got, `>10/s<`)
}
