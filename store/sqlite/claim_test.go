package sqlite

import (
	"database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/table"
)

func TestClaim_ReadsOneJobMoreThanItTakes(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", 0))
	insert(t, s, numbered("later", 100, time.Hour)...)
	other := bulky("other", 20, 1000)
	for i := range other {
		other[i].Lane, other[i].Delay = "other", 0
	}
	insert(t, s, other...)
	read := 0
	hookSQL(s, table.Claimable.Text(), &hook{do: func(int, []driver.NamedValue) error { return nil }, read: func() { read++ }})
	claim := func(request store.ClaimRequest) store.ClaimResult {
		read = 0
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		return claimed
	}
	request := wanting(50)
	second := request.Queues[0]
	second.Queue.Lane = "other"
	request.Queues = []store.QueueClaim{second, request.Queues[0]}
	request.MaxBytes = 2000

	claimed := claim(request)
	require.Len(t, claimed.Jobs, 2)
	require.True(t, claimed.Queues[0].More)
	require.True(t, claimed.Queues[1].More)
	require.Equal(t, 3, read, "two that fit, one that does not, and nothing of the other queue")

	claimed = claim(wanting(50))
	require.Len(t, claimed.Jobs, 1)
	require.False(t, claimed.Queues[0].More)
	require.Equal(t, 2, read, "the one that is due, and the first that is not")
}

func TestClaim_SkipsAnUnreadableJob(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, numbered("job", 3, 0)...)
	shell(t, o.Path, "UPDATE jobs SET spec = x'05' WHERE id = 'job-0001'")
	jobs := claimUp(t, s, 3)
	require.Len(t, jobs, 2)
	require.Equal(t, job.Running, jobs[0].State)
}
