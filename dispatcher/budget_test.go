package dispatcher

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudget_EndsSearchesInTime(t *testing.T) {
	const most = 5000
	for _, c := range []struct {
		name   string
		within time.Duration
		each   time.Duration // what a job takes
		late   time.Duration // at most
		calls  int           // at most
	}{
		{"as fast as was thought", 25 * time.Millisecond, 20 * time.Microsecond, 0, 1},
		{"faster", 25 * time.Millisecond, time.Microsecond, 0, 10},
		{"slower", 25 * time.Millisecond, 100 * time.Microsecond, 100 * time.Millisecond, 1},
		{"very short", time.Millisecond, 20 * time.Microsecond, time.Millisecond, 1},
		{"long", time.Second, 10 * time.Microsecond, 0, 20},
		{"long and slow", time.Second, 200 * time.Microsecond, time.Millisecond, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, calls, seen := time.Now(), 0, 0
				b := newBudget(c.within, most)
				for jobs := b.Next(); jobs > 0; jobs = b.Next() {
					require.LessOrEqual(t, jobs, most)
					time.Sleep(time.Duration(jobs) * c.each)
					b.Add(jobs)
					seen += jobs
					calls++
					if calls > c.calls {
						require.FailNow(t, "too many calls", "%d jobs in %s", seen, time.Since(began))
					}
				}
				require.LessOrEqual(t, time.Since(began), c.within+c.late)
				require.Positive(t, seen)
			})
		})
	}
}

func TestBudget_CountsCallsThatFindNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(10*time.Millisecond, 5000)
		require.Equal(t, 500, b.Next())
		time.Sleep(5 * time.Millisecond)
		require.Equal(t, 250, b.Next())
		time.Sleep(5 * time.Millisecond)
		require.Zero(t, b.Next())
	})
}

func TestBudget_HasAFirstCallHoweverLateItComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(time.Nanosecond, 5000)
		time.Sleep(time.Millisecond)
		require.Equal(t, least, b.Next())
		require.Zero(t, b.Next())
	})
}
