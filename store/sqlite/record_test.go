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

func TestTheFirstEntryLeavesTheRecordWithTheTwentyFirst(t *testing.T) {
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

func TestARecordThatAnOlderProgramBeganOrWentOnWithIsWhole(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("begun", 0), entry("gone-on", time.Hour))
	require.NoError(t, s.Close())
	shell(t, o.Path, `UPDATE jobs SET made = 1, tries = 1, entries = 1 WHERE n = 1;
INSERT INTO attempts VALUES (1, 0, 0, '{"n":1,"k":"attempt","t":"2026-03-01T12:00:00Z","s":503}')`)
	s = opened(t, o)
	require.Equal(t, []int{1}, attemptNumbers(t, s, "begun"))
	settle(t, s, settled(claimUp(t, s, 1)[0], againAtOnce))
	require.Equal(t, []int{1, 2}, attemptNumbers(t, s, "begun"))
	_, err := s.Cancel(t.Context(), 0, "cancels", ref("gone-on"))
	require.NoError(t, err)
	require.NoError(t, s.Close())
	shell(t, o.Path, `UPDATE jobs SET entries = 2 WHERE n = 2;
INSERT INTO attempts VALUES (2, 1, 1, '{"n":1,"k":"edited","t":"2026-03-01T12:00:00Z"}')`)
	s = opened(t, o)
	require.Equal(t, []int{0, 1}, attemptNumbers(t, s, "gone-on"))
}

func TestWhatAnOlderProgramLeavesOfARecordIsSwept(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, numbered("job", 3, 0)...)
	for _, h := range claimUp(t, s, 3) {
		settle(t, s, settled(h, againAtOnce))
	}
	require.NoError(t, s.Close())
	shell(t, o.Path, `DELETE FROM jobs WHERE n <= 2; UPDATE queues SET waiting = 1, rows = 1; UPDATE topics SET registered = 1`)
	s = opened(t, o)
	require.Equal(t, int64(3), one(t, s, "SELECT count(*) FROM firsts"))
	_, err := s.Sweep(t.Context(), 0, "sweeps", 100)
	require.NoError(t, err)
	require.Equal(t, int64(1), one(t, s, "SELECT count(*) FROM firsts"))
	require.Len(t, get(t, s, "job-0002").History, 1)
}
