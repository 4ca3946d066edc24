package sqlite

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
)

// attemptNumbers are the numbers of a job's recorded attempts.
func attemptNumbers(t *testing.T, s *Store, id string) (numbers []int) {
	t.Helper()
	for _, a := range get(t, s, id).History {
		numbers = append(numbers, a.N)
	}
	return numbers
}

func upTo(from, to int) (numbers []int) {
	for n := from; n <= to; n++ {
		numbers = append(numbers, n)
	}
	return numbers
}

func TestRecord_DropsTheFirstEntryWithTheTwentyFirst(t *testing.T) {
	s, c := clocked(t, options(t))
	insert(t, s, entry("a", 0), entry("b", 0))
	for n := 1; n <= job.MaxAttempts+3; n++ {
		for _, h := range claimUp(t, s, 2) {
			settle(t, s, settled(h, againAtOnce))
		}
		require.Equal(t, upTo(max(1, n-job.MaxAttempts+1), n), attemptNumbers(t, s, "a"))
		c.pass(time.Millisecond)
	}
}
