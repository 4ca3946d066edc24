package chart

import (
	"html/template"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// randomValues returns values of every magnitude that attempts have, and gaps.
func randomValues(r *rand.Rand, n int) []float64 {
	values := make([]float64, n)
	largest := math.Pow(10, float64(r.IntN(13)-4))
	for i := range values {
		switch r.IntN(10) {
		case 0:
			values[i] = math.NaN()
		case 1:
			values[i] = 0
		default:
			values[i] = r.Float64() * largest
		}
	}
	return values
}

func randomSeries(r *rand.Rand, names ...string) []Series {
	series := make([]Series, len(names))
	n := 1 + r.IntN(200)
	for i, name := range names {
		series[i] = Series{name, "c-" + name, randomValues(r, n)}
	}
	return series
}

// randomPicture returns a picture of random arguments.
func randomPicture(kind uint8, r *rand.Rand) template.HTML {
	from := noon.Add(time.Duration(r.IntN(1<<20)) * time.Duration(r.IntN(1e9)+1))
	to := from.Add(time.Duration(1+r.IntN(3600)) * time.Second)
	switch kind % 3 {
	case 0:
		return Stack(randomSeries(r, "delivered", "again", "dead", "cancelled", "released"), from, to, "Attempts")
	case 1:
		return Lines(randomSeries(r, "p50", "p99"), from, to, "Lateness")
	default:
		zone := time.FixedZone("x", r.IntN(24*3600)-12*3600)
		ticks := make([]time.Time, 1+r.IntN(400))
		for i := range ticks {
			ticks[i] = from.Add(time.Duration(r.IntN(24*3600)) * time.Second)
		}
		slices.SortFunc(ticks, time.Time.Compare)
		now := from.Add(time.Duration(r.IntN(3600)) * time.Second)
		return Day(ticks, r.IntN(2) == 0, from, now, zone, []float64{WideDay, NarrowDay}[r.IntN(2)])
	}
}

func FuzzPictures_AreWellFormedAndBounded(f *testing.F) {
	for kind := range uint8(3) {
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
