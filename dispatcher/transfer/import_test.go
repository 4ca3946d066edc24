package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func ref(id string) job.Ref { return job.Ref{Namespace: "default", ID: id} }

// twice returns a store with n jobs, the first and the last of which have one id.
func twice(t *testing.T, n int) store.Store {
	t.Helper()
	s := model(16)
	a, b := queues[0], queues[2]
	require.NotSame(t, shardOf(s, a), shardOf(s, b))
	for i := 1; i < n-1; i++ {
		insert(t, s, newJob(fmt.Sprintf("job-%d", i), a))
	}
	for _, q := range []job.Queue{a, b} {
		results, err := shardOf(s, q).Insert(t.Context(), store.NewToken(), []store.NewJob{newJob("same", q)})
		require.NoError(t, err)
		require.Equal(t, store.Created, results[0].Outcome)
	}
	return s
}

func TestImport_LeavesOutTheSecondJobOfAnID(t *testing.T) {
	for _, n := range []int{3, 40} { // in one section, and in two
		file, ledger := export(t, options(twice(t, n)))
		require.EqualValues(t, n, ledger.Jobs())
		for name, inner := range map[string]store.Store{
			"sqlite": openSQLite(t), "one shard": model(1), "shards": model(16),
		} {
			to := &interrupted{Store: inner}
			var result transfer.Imported
			for _, left := range []int64{0, 1, 100} { // it is interrupted before the end
				_, err := transfer.Check(t.Context(), bytes.NewReader(file), options(to))
				require.NoError(t, err, name)
				to.left.Store(left)
				if result, err = transfer.Import(t.Context(), bytes.NewReader(file), options(to)); !errors.Is(
					err, errCut,
				) {
					leftOut, ok := errors.AsType[*transfer.LeftOutError](err)
					require.True(t, ok, "%s: %v", name, err)
					require.EqualValues(t, 1, leftOut.Jobs, name)
					break
				}
				require.ErrorAs(t, transfer.CheckImports(t.Context(), to), new(*transfer.UnfinishedImportError))
			}
			require.EqualValues(t, n-1, result.Stored.Jobs(), name)
			require.NoError(t, transfer.CheckImports(t.Context(), to))
			require.False(t, importFile(t, file, options(to)).DoneAt.IsZero())
		}
	}
}

func TestImport_RefusesJobsThatAreStoredWithOtherProgress(t *testing.T) {
	from, to := options(model(1)), options(model(3))
	insert(t, from.Stores[0], newJob("a", queues[0]), newJob("b", queues[2]))
	file, _ := export(t, from)
	last := bytes.LastIndexByte(file[:len(file)-1], '\n')
	_, err := transfer.Import(t.Context(), bytes.NewReader(file[:last+1]), to)
	require.ErrorAs(t, err, new(*transfer.CutOffError))
	_, err = from.Stores[0].Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
	require.NoError(t, err)

	second, _ := export(t, from)
	for range 2 {
		_, err = transfer.Import(t.Context(), bytes.NewReader(second), to)
		stale, ok := errors.AsType[*transfer.StaleError](err)
		require.True(t, ok, "%v", err)
		require.EqualValues(t, 1, stale.Jobs)
		require.ErrorAs(t, transfer.CheckImports(t.Context(), to.Stores[0]), new(*transfer.UnfinishedImportError))
	}
	_, err = transfer.Export(t.Context(), io.Discard, to)
	require.ErrorAs(t, err, new(*transfer.UnfinishedImportError))

	n, err := transfer.AcceptImports(t.Context(), to)
	require.NoError(t, err)
	require.Equal(t, 2, n)
	require.NoError(t, transfer.CheckImports(t.Context(), to.Stores[0]))
	require.Equal(t, job.Scheduled, read(t, to, "default").jobs[ref("a")].State, "what the stores have is kept")
	require.True(t, importFile(t, second, to).Accepted)
	require.True(t, importFile(t, file, to).Accepted)
	require.NoError(t, transfer.CheckImports(t.Context(), to.Stores[0]))
}

func TestImport_RemovedJobsAreStale(t *testing.T) {
	from, to := options(model(1)), options(model(1))
	insert(t, from.Stores[0], newJob("a", queues[0]))
	file, _ := export(t, from)
	_, err := transfer.Check(t.Context(), bytes.NewReader(file), options(removed{to.Stores[0].Store}))
	require.ErrorContains(t, err,
		"line 2: the store has another job default/a (it was removed, and its id is remembered)")
	_, err = transfer.Import(t.Context(), bytes.NewReader(file), options(removed{to.Stores[0].Store}))
	require.ErrorAs(t, err, new(*transfer.StaleError))
}

// removed is a store that knows all ids, and has no job.
type removed struct{ store.Store }

func (s removed) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return removedShard{next} })
}

type removedShard struct{ store.Shard }

func (removedShard) Known(_ context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	known := make([]store.IDStatus, len(refs))
	for i := range known {
		known[i].Ended = job.Delivered
	}
	return known, nil
}

func (removedShard) PutRecords(_ context.Context, _ store.Token, records []store.Record) ([]store.Outcome, error) {
	outcomes := make([]store.Outcome, len(records))
	for i := range outcomes {
		outcomes[i] = store.Existing
	}
	return outcomes, nil
}

// A pipe that was repeated leaves the document of the import that was cut off.
func TestImport_EndsThoseThatWereCutOff(t *testing.T) {
	from, to := options(model(1)), options(model(3))
	insert(t, from.Stores[0], newJob("a", queues[0]), newJob("b", queues[2]))
	file, _ := export(t, from)
	_, err := transfer.Import(t.Context(), bytes.NewReader(file[:len(file)-2]), to)
	require.ErrorAs(t, err, new(*transfer.CutOffError))
	second, _ := export(t, from)
	require.EqualValues(t, 2, importFile(t, second, to).Existing)
	require.NoError(t, transfer.CheckImports(t.Context(), to.Stores[0]))

	// If the stores have more than the file, the other import may have stored it.
	full := options(model(1))
	insert(t, full.Stores[0], newJob("c", queues[0]))
	_, err = transfer.Import(t.Context(), bytes.NewReader(file[:len(file)-2]), full)
	require.ErrorAs(t, err, new(*transfer.CutOffError))
	_, err = transfer.Import(t.Context(), bytes.NewReader(second), full)
	require.ErrorAs(t, err, new(*transfer.UnfinishedImportError))
}

func TestImport_IsNotedBeforeAnythingIsStored(t *testing.T) {
	from := options(model(1))
	insert(t, from.Stores[0], newJob("a", queues[0]))
	file, _ := export(t, from)
	to := &interrupted{Store: model(1)}
	to.left.Store(-1)
	_, err := transfer.Import(t.Context(), bytes.NewReader(file), options(to))
	require.ErrorIs(t, err, errCut)
	require.ErrorContains(t, transfer.CheckImports(t.Context(), to),
		"is not complete: repeat ringback import with the same file")
	to.left.Store(100)
	importFile(t, file, options(to))
	require.NoError(t, transfer.CheckImports(t.Context(), to))
}
