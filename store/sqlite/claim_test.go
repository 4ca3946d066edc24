package sqlite

import (
	"context"
	"database/sql/driver"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// counting is a statement that counts the rows read from it.
type counting struct {
	driverStmt
	rows *int
}

type countedRows struct {
	driver.Rows
	rows *int
}

func (c counting) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.driverStmt.QueryContext(ctx, args)
	return countedRows{rows, c.rows}, err
}

func (c countedRows) Next(into []driver.Value) error {
	*c.rows++
	return c.Rows.Next(into)
}

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
	var fault error
	inWriter(t, s, func() {
		var stmt driverStmt
		stmt, fault = s.conn.stmt(claimable)
		s.conn.stmts[claimable] = counting{stmt, &read}
	})
	require.NoError(t, fault)
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
