package dispatcher

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// turnJobs are jobs that are read in turns only: three pages of them.
type turnJobs struct {
	t     *testing.T
	inUse bool
	turns int
}

func (j *turnJobs) turn() (done func(), err error) {
	require.False(j.t, j.inUse)
	j.inUse = true
	j.turns++
	return func() { j.inUse = false }, nil
}

func (j *turnJobs) List(context.Context, store.Filter) (store.Page, error) {
	require.True(j.t, j.inUse)
	return store.Page{Jobs: make([]job.Job, 1), Scanned: 1, More: j.turns < 3}, nil
}

func (j *turnJobs) Get(context.Context, job.Ref) (job.Job, error) {
	assert.True(j.t, j.inUse)
	return job.Job{}, store.ErrNotFound
}

func TestGroups_TakeATurnForEachRead(t *testing.T) {
	jobs := &turnJobs{t: t}
	by := store.GroupBy{Topic: true, Turn: jobs.turn}
	found, err := countJobs(t.Context(), jobs, store.Filter{ScanLimit: scanLimit}, by)
	require.NoError(t, err)
	require.EqualValues(t, 3, found.Groups[0].Count)
	require.Equal(t, 3, jobs.turns)
	_, err = countIDs(t.Context(), jobs, job.DefaultNamespace, make([]string, groupedAtOnce+1), nil, by)
	require.NoError(t, err)
	require.Equal(t, 5, jobs.turns)
	require.False(t, jobs.inUse)

	full := errors.New("full")
	by.Turn = func() (func(), error) { return nil, full }
	_, err = countJobs(t.Context(), jobs, store.Filter{ScanLimit: scanLimit}, by)
	require.ErrorIs(t, err, full)
	_, err = countIDs(t.Context(), jobs, job.DefaultNamespace, []string{"a"}, nil, by)
	require.ErrorIs(t, err, full)
}
