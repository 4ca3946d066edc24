package memory

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// allowedStarts are starts that were allowed together: they may begin from the claim on, until latest.
type allowedStarts struct {
	claimed, latest int64
	n               int
}

// maxStarts returns the largest number of starts that can begin within a window of a length.
func maxStarts(all []allowedStarts, per int64) int {
	worst := 0
	for _, first := range all { // the first of the window begins as late as it may
		n := 0
		for _, s := range all {
			if s.latest >= first.latest && s.claimed < first.latest+per {
				n += s.n
			}
		}
		worst = max(worst, n)
	}
	return worst
}

// claimAtRandom claims from a window as many starts as it allows, at random moments.
func claimAtRandom(
	random *rand.Rand, rate policy.Rate, slack time.Duration, steps int,
) (all []allowedStarts, largest int) {
	now := clock.Instant{Millis: 1_000_000}
	var w Window
	for range steps {
		passed := time.Duration(random.Int64N(int64(rate.Per) / 7))
		now.Mono += int64(passed)
		now.Sub += int64(passed)
		now.Millis, now.Sub = now.Millis+now.Sub/1e6, now.Sub%1e6
		n := min(w.Room(rate, now), 1+random.Int64N(int64(rate.Starts)))
		if free := w.Free(rate, now); (n == 0) != (free > now.Mono) {
			panic("room and free disagree")
		}
		if n == 0 {
			continue
		}
		wait := time.Duration(random.Int64N(int64(slack) + 1))
		w = w.Add(rate, n, wait, now)
		largest = max(largest, len(w))
		all = append(all, allowedStarts{now.Mono, now.Mono + int64(wait), int(n)})
	}
	return all, largest
}

func TestWindow_HasNoMoreStartsThanTheRateAllows(t *testing.T) {
	for _, rate := range []policy.Rate{
		{Starts: 1, Per: 100 * time.Millisecond},
		{Starts: 5, Per: 90 * time.Second},
		{Starts: 64, Per: time.Second},
		{Starts: 65, Per: time.Second},
		{Starts: 1000, Per: 3 * time.Second},
		{Starts: 300, Per: 100 * time.Millisecond},
	} {
		for seed := range uint64(10) {
			random := rand.New(rand.NewPCG(seed, 1))
			for _, slack := range []time.Duration{0, 10 * time.Millisecond, 2 * time.Second} {
				all, largest := claimAtRandom(random, rate, slack, 150)
				require.LessOrEqual(t, maxStarts(all, int64(rate.Per)), rate.Starts, "%v %v %d", rate, slack, seed)
				require.LessOrEqual(t, largest, max(mostStarts, store.CountedStarts)+1)
			}
		}
	}
}

func TestWindow_ReachesItsRate(t *testing.T) {
	now := clock.Instant{Millis: 1_000_000}
	for _, rate := range []policy.Rate{{Starts: 10, Per: time.Second}, {Starts: 1000, Per: time.Second}} {
		var w Window
		claimed := int64(0)
		const seconds = 20
		for range seconds * 1000 {
			n := min(w.Room(rate, now), 3)
			if n > 0 {
				w = w.Add(rate, n, 0, now)
			}
			claimed += n
			now.Millis++
			now.Mono += 1e6
		}
		require.GreaterOrEqual(t, claimed, int64(seconds*rate.Starts*62/64), "%v", rate)
	}
}

func TestWindow_CountsStartsOfASmallRateOneByOne(t *testing.T) {
	rate := policy.Rate{Starts: 3, Per: 1500*time.Microsecond + 100*time.Millisecond}
	now := clock.Instant{Millis: 5000, Mono: 1_300_000, Sub: 700_000}
	var w Window
	w = w.Add(rate, 2, 0, now)
	require.EqualValues(t, 1, w.Room(rate, now))
	w = w.Add(rate, 1, 0, clock.Instant{Millis: 5050, Mono: 51_300_000, Sub: 700_000})
	later := func(ms int64) clock.Instant { return clock.Instant{Millis: 5000 + ms, Mono: ms*1e6 + 600_000} }
	require.Zero(t, w.Room(rate, later(102)), "the wall's next whole millisecond, and the length in whole ones")
	require.EqualValues(t, 2, w.Room(rate, later(103)))
	require.EqualValues(t, 2, w.Room(rate, later(152)))
	require.EqualValues(t, 3, w.Room(rate, later(153)))
	require.Equal(t, later(103).Mono, w.Free(rate, later(60)))
	require.EqualValues(t, clock.Past, w.Free(rate, later(103)))
}

func TestWindow_IsFreeAfterALoweredRateWhenEnoughStartsHaveLeft(t *testing.T) {
	now := clock.Instant{Millis: 1000}
	at := func(ms int64) clock.Instant { return clock.Instant{Millis: 1000 + ms, Mono: ms * 1e6} }
	rate := policy.Rate{Starts: 10, Per: time.Second}
	var w Window
	for i := range int64(10) {
		w = w.Add(rate, 1, 0, at(i*10))
	}
	lower := policy.Rate{Starts: 3, Per: time.Second}
	require.Zero(t, w.Room(lower, at(100)))
	require.Equal(t, at(1070).Mono, w.Free(lower, at(100)), "eight have left")
	require.EqualValues(t, 1, w.Room(lower, at(1070)))
	shorter := policy.Rate{Starts: 3, Per: 100 * time.Millisecond}
	require.EqualValues(t, 3, w.Room(shorter, at(190)))
	require.EqualValues(t, 3, Window(nil).Room(lower, now))
}

func TestWindow_JoinsStartsOfALargeRate(t *testing.T) {
	large := policy.Rate{Starts: 1000, Per: time.Second}
	at := func(ms int64) clock.Instant { return clock.Instant{Millis: 1000 + ms, Mono: ms * 1e6} }
	w := Window(nil).Add(large, 6, 0, at(0)).Add(large, 4, 0, at(15))
	require.Len(t, w, 1)
	require.EqualValues(t, 990, w.Room(large, at(20)))
	require.Len(t, w.Add(large, 1, 0, at(16)), 2, "a group spans no more than a 64th")
}
