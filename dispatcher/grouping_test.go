package dispatcher

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// turnJobs are jobs that are read in turns only: three pages of them.
type turnJobs struct {
	t     *testing.T
	inUse bool
	turns int
}

func (j *turnJobs) acquireTurn(context.Context) (release func(), err error) {
	require.False(j.t, j.inUse)
	j.inUse = true
	j.turns++
	return func() { j.inUse = false }, nil
}

func (j *turnJobs) List(_ context.Context, filter store.Filter) (store.Page, error) {
	require.True(j.t, j.inUse)
	require.LessOrEqual(j.t, filter.ScanLimit, store.MaxListLimit)
	return store.Page{Jobs: make([]job.Job, 1), Scanned: 1, More: j.turns < 3}, nil
}

func (j *turnJobs) Get(context.Context, job.Ref) (job.Job, error) {
	assert.True(j.t, j.inUse)
	return job.Job{}, store.ErrNotFound
}

func TestGroups_TakeATurnForEachRead(t *testing.T) {
	jobs := &turnJobs{t: t}
	by := store.GroupBy{Topic: true, AcquireTurn: jobs.acquireTurn}
	found, err := countJobs(t.Context(), jobs, store.Filter{ScanLimit: scanLimit}, by)
	require.NoError(t, err)
	require.EqualValues(t, 3, found.Groups[0].Count)
	require.Equal(t, 3, jobs.turns)
	_, err = countIDs(t.Context(), jobs, job.DefaultNamespace, make([]string, groupedAtOnce+1), nil, by)
	require.NoError(t, err)
	require.Equal(t, 5, jobs.turns)
	require.False(t, jobs.inUse)

	full := errors.New("full")
	by.AcquireTurn = func(context.Context) (func(), error) { return nil, full }
	_, err = countJobs(t.Context(), jobs, store.Filter{ScanLimit: scanLimit}, by)
	require.ErrorIs(t, err, full)
	_, err = countIDs(t.Context(), jobs, job.DefaultNamespace, []string{"a"}, nil, by)
	require.ErrorIs(t, err, full)
}

func TestGroups_HaveTheirTimeFromTheFirstTurnOn(t *testing.T) {
	type countFunc func(ctx context.Context, jobs *turnJobs, by store.GroupBy) (store.Groups, error)
	for name, count := range map[string]countFunc{
		"jobs": func(ctx context.Context, jobs *turnJobs, by store.GroupBy) (store.Groups, error) {
			return countJobs(ctx, jobs, store.Filter{ScanLimit: scanLimit}, by)
		},
		"ids": func(ctx context.Context, jobs *turnJobs, by store.GroupBy) (store.Groups, error) {
			return countIDs(ctx, jobs, job.DefaultNamespace, make([]string, 3*groupedAtOnce), nil, by)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				jobs := &turnJobs{t: t}
				by := store.GroupBy{Topic: true, Within: time.Second}
				by.AcquireTurn = func(ctx context.Context) (func(), error) {
					switch jobs.turns {
					case 0:
						time.Sleep(5 * time.Second) // a bubble's time
					case 2:
						<-ctx.Done()
						return nil, &capacity.FullError{Limit: capacity.Lists}
					}
					return jobs.acquireTurn(ctx)
				}
				found, err := count(t.Context(), jobs, by)
				require.NoError(t, err)
				require.False(t, found.Exact)
				require.Equal(t, 2, jobs.turns, "what was counted before the turn that did not come is answered")
				require.Positive(t, found.Scanned)
				require.Equal(t, 6*time.Second, time.Since(began))

				jobs.turns = 0
				full := &capacity.FullError{Limit: capacity.Lists}
				by.AcquireTurn = func(context.Context) (func(), error) { return nil, full }
				_, err = count(t.Context(), jobs, by)
				require.ErrorIs(t, err, full, "nothing was counted")
			})
		})
	}
}
