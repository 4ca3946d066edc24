package chart

import (
	"html/template"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// randomLabel returns a text with characters that markup, XML or fonts treat as special, of any length.
func randomLabel(r *rand.Rand) string {
	pieces := []string{
		hostile, "attempt 1: 503", "<", "\"", "&amp;", "]]>", "日本語", "\U0001F680", "w", "\n", "…", "é",
		" ", "order.close", ". ", ".",
	}
	label := ""
	for range r.IntN(12) {
		label += pieces[r.IntN(len(pieces))]
	}
	return label
}

func randomValue(r *rand.Rand) float64 {
	switch r.IntN(10) {
	case 0:
		return math.NaN()
	case 1:
		return math.Inf(1 - 2*r.IntN(2))
	case 2:
		return 0
	case 3:
		return -r.Float64()
	case 4:
		return math.MaxFloat64
	case 5:
		return math.Float64frombits(r.Uint64())
	}
	return r.Float64() * math.Pow(10, float64(r.IntN(12)-4))
}

func randomValues(r *rand.Rand) []float64 {
	values := make([]float64, r.IntN(200))
	tame := r.IntN(2) == 0
	for i := range values {
		if values[i] = randomValue(r); tame {
			values[i] = r.Float64() * 1000
		}
	}
	return values
}

func randomSeries(r *rand.Rand) []Series {
	series := make([]Series, r.IntN(8))
	for i := range series {
		series[i] = Series{randomLabel(r), Colors[r.IntN(len(Colors))], randomValues(r)}
	}
	return series
}

// randomDuration returns durations of every magnitude.
func randomDuration(r *rand.Rand) time.Duration {
	d := time.Duration(math.Pow(10, r.Float64()*18.9))
	switch r.IntN(30) {
	case 0:
		return 0
	case 1:
		return -d
	case 2:
		return math.MaxInt64
	}
	return d
}

// randomTime returns times near now, and some far away.
func randomTime(r *rand.Rand) time.Time {
	if r.IntN(30) == 0 {
		return time.Time{}
	}
	if r.IntN(30) == 0 {
		return time.Unix(r.Int64N(1<<40), 0)
	}
	return noon.Add(time.Duration(r.IntN(1<<20)) * time.Duration(r.IntN(1e9)+1))
}

// randomPicture returns a picture of random arguments.
func randomPicture(kind uint8, r *rand.Rand) template.HTML {
	zones := []*time.Location{nil, time.UTC, time.FixedZone("x", r.IntN(24*3600)-12*3600)}
	zone := zones[r.IntN(3)]
	from := randomTime(r)
	if zone != nil {
		from = from.In(zone)
	}
	switch kind % 5 {
	case 0:
		return Stack(randomSeries(r), from, from.Add(randomDuration(r)), randomLabel(r))
	case 1:
		return Lines(randomSeries(r), from, from.Add(randomDuration(r)), randomLabel(r))
	case 2:
		waits := make([]time.Duration, r.IntN(24))
		for i := range waits {
			waits[i] = randomDuration(r)
		}
		return Ladder(waits, int(r.Uint64()>>r.IntN(64)), randomDuration(r))
	case 3:
		events := make([]Moment, r.IntN(60))
		for i := range events {
			events[i] = Moment{randomTime(r), randomLabel(r), Colors[r.IntN(len(Colors))]}
		}
		return Timeline(events, randomTime(r))
	default:
		ticks := make([]time.Time, r.IntN(400))
		for i := range ticks {
			ticks[i] = from.Add(time.Duration(r.IntN(26*3600)) * time.Second)
		}
		return Day(ticks, from, from.Add(time.Duration(r.IntN(26*3600))*time.Second), zone, DayOptions{
			Label: randomLabel(r), AtLeast: r.IntN(2) == 0, Width: []float64{0, 100, 320, math.NaN()}[r.IntN(4)],
		})
	}
}

func FuzzPictures_AreWellFormedAndBounded(f *testing.F) {
	for kind := range uint8(5) {
		for seed := range uint64(60) {
			f.Add(kind, seed)
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, seed uint64) {
		result := randomPicture(kind, rand.New(rand.NewPCG(seed, 0)))
		read(t, result)
		require.Equal(t, result, randomPicture(kind, rand.New(rand.NewPCG(seed, 0))), "it is deterministic")
	})
}
