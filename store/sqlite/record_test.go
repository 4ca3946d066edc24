package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

// attemptNumbers returns the numbers of a job's recorded attempts.
func attemptNumbers(t *testing.T, s *Store, id string) (numbers []int) {
	t.Helper()
	for _, a := range get(t, s, id).History {
		numbers = append(numbers, a.N)
	}
	return numbers
}

func numbersFrom(from, to int) (numbers []int) {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestRecord_DropsTheFirstEntryWithTheTwentyFirst(t *testing.T) {
	s, c := openWithClock(t, options(t))
	insert(t, s, newJob("a", 0), newJob("b", 0))
	for n := 1; n <= job.MaxAttempts+3; n++ {
		for _, h := range claimJobs(t, s, 2) {
			settle(t, s, settlementOf(h, againVerdict))
		}
		require.Equal(t, numbersFrom(max(1, n-job.MaxAttempts+1), n), attemptNumbers(t, s, "a"))
		c.pass(time.Millisecond)
	}
}
