package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// generated is a store of waiting jobs that are made when they are read, and that keeps nothing.
type generated struct {
	store.Store
	jobs int
	body []byte
}

func (s *generated) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return generatedShard{next, s} })
}

type generatedShard struct {
	store.Shard
	*generated
}

func (s generatedShard) List(_ context.Context, f store.Filter) (page store.Page, err error) {
	from := 0
	if f.After.Tie != "" {
		if from, err = strconv.Atoi(f.After.Tie); err != nil {
			return page, err
		}
	}
	for i := from; i < min(from+f.Limit, s.jobs); i++ {
		n := newJob(fmt.Sprint(i), queues[0])
		page.Jobs = append(page.Jobs, job.Job{Spec: n.Spec, Progress: job.Progress{State: job.Scheduled}})
		page.Ties = append(page.Ties, strconv.Itoa(i+1))
	}
	page.Reached.Tie, page.More = strconv.Itoa(from+len(page.Jobs)), from+len(page.Jobs) < s.jobs
	return page, nil
}

func (s generatedShard) GetRecords(_ context.Context, refs []job.Ref) (records []store.Record, err error) {
	size, at := 0, time.UnixMilli(1_800_000_000_000).UTC()
	for _, ref := range refs {
		n := newJob(ref.ID, queues[0])
		n.Body = s.body
		r := store.Record{Job: job.Job{
			Spec:     n.Spec,
			Progress: job.Progress{State: job.Scheduled, Version: 1, CreatedAt: at, DueAt: at, FirstDueAt: at},
		}}
		if size += r.Size(); size > store.RecordBytes && len(records) > 0 {
			break
		}
		records = append(records, r)
	}
	return records, nil
}

func (s generatedShard) PutRecords(_ context.Context, _ store.Token, records []store.Record) ([]store.Outcome, error) {
	outcomes := make([]store.Outcome, len(records))
	for i := range outcomes {
		outcomes[i] = store.Created
	}
	return outcomes, nil
}

// heap returns the memory in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// The size of the file is many times that of the memory that an export and an import take.
func TestTransfer_MemoryDoesNotGrowWithTheNumberOfJobs(t *testing.T) {
	from := &generated{Store: model(1), jobs: 400, body: bytes.Repeat([]byte("x"), 32<<10)}
	before, most := heap(), int64(0)
	o, to := options(from), options(&generated{Store: model(1)})
	to.Progress = func(int64, int64) { most = max(most, heap()-before) }
	r, w := io.Pipe()
	exported := make(chan error, 1)
	var file counted
	go func() {
		_, err := transfer.Export(t.Context(), io.MultiWriter(w, &file), o)
		exported <- errors.Join(err, w.Close())
	}()
	result, err := transfer.Import(t.Context(), r, to)
	require.EqualValues(t, 400, result.Created)
	missing, ok := errors.AsType[*transfer.MissingError](err)
	require.True(t, ok, "%v", err)
	require.EqualValues(t, 400, missing.Jobs, "the target keeps nothing")
	require.ErrorAs(t, transfer.CheckImports(t.Context(), to.Stores[0]), new(*transfer.UnfinishedImportError))
	require.ErrorAs(t, <-exported, new(*transfer.UnreadableError), "the counters know of no job")
	require.Greater(t, int64(file), int64(12<<20))
	require.Positive(t, most)
	require.Less(t, most, int64(8<<20))
	t.Logf("%d MiB of memory for a file of %d MiB", most>>20, int64(file)>>20)
}

// counted counts the bytes that are written to it.
type counted int64

func (c *counted) Write(p []byte) (int, error) {
	*c += counted(len(p))
	return len(p), nil
}
