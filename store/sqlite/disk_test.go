package sqlite

import (
	"context"
	"database/sql/driver"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// bulky entries carry a body of the given size.
func bulky(prefix string, n, size int) []store.NewJob {
	entries := numbered(prefix, n, time.Hour)
	for i := range entries {
		entries[i].BodyKind, entries[i].Body = job.BodyText, []byte(strings.Repeat("x", size))
	}
	return entries
}

// limitPages lets the database grow to so many pages and no further, as a full disk would; 0 lets it grow again.
func limitPages(t *testing.T, s *Store, more int64) {
	t.Helper()
	inWriter(t, s, func() {
		pages := "1073741823"
		if more >= 0 {
			require.NoError(t, s.conn.queryText(t.Context(), "PRAGMA page_count", func(v []driver.Value) error {
				pages = strconv.FormatInt(integer(v[0])+more, 10)
				return nil
			}))
		}
		require.NoError(t, s.conn.queryText(t.Context(), "PRAGMA max_page_count="+pages, func([]driver.Value) error { return nil }))
	})
}

func TestFullDisk_UndoesWholeCallsUntilThereIsSpace(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, numbered("first", 10, 0)...)
	jobs := claimUp(t, s, 3)
	limitPages(t, s, 8)

	token := store.NewToken()
	big := bulky("big", 100, 10_000)
	for range 3 {
		_, err := s.Insert(t.Context(), token, big)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "the disk under the database is full")
	}
	_, err := s.Get(t.Context(), big[0].Ref())
	require.ErrorIs(t, err, store.ErrNotFound)
	settle(t, s, settled(jobs[0], policy.Verdict{Kind: policy.Delivered})) // needs no new page
	verify(t, s)
	limitPages(t, s, 0)
	require.ErrorIs(t, s.Ping(t.Context()), store.ErrUnavailable)

	limitPages(t, s, -1)
	require.NoError(t, s.Ping(t.Context()))
	inserted, err := s.Insert(t.Context(), token, big)
	require.NoError(t, err)
	for _, i := range inserted {
		require.Equal(t, store.Created, i.Outcome)
	}
	settle(t, s, settled(jobs[1], policy.Verdict{Kind: policy.Again, Wait: time.Minute}))
	stats, err := s.TopicStats(t.Context(), store.StatsFilter{Namespace: lane.Namespace, Limit: store.MaxBatch})
	require.NoError(t, err)
	require.Equal(t, []int64{110, 1, 1}, []int64{stats[0].Registered, stats[0].Delivered, stats[0].Running})
}

func TestWriter_FailsOnlyTheCallThatCannotBeWritten(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, numbered("first", 10, 0)...)
	limitPages(t, s, 4)
	release := stall(t, s)
	var group sync.WaitGroup
	errs := make([]error, 4)
	for i := range errs {
		group.Go(func() {
			if i == 0 {
				_, errs[0] = s.Insert(t.Context(), store.NewToken(), bulky("big", 100, 10_000))
				return
			}
			_, errs[i] = s.Cancel(t.Context(), store.NewToken(), ref(numbered("first", 10, 0)[i].ID))
		})
	}
	waiting(t, s, len(errs))
	release()
	group.Wait()
	require.ErrorIs(t, errs[0], store.ErrUnavailable)
	for _, err := range errs[1:] {
		require.NoError(t, err)
	}
	limitPages(t, s, -1)
}

func TestWriter_ReplacesABrokenConnection(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", time.Hour))
	inWriter(t, s, func() { s.broken = true })
	insert(t, s, entry("b", 0))
	require.Len(t, claimUp(t, s, 2), 1)
}

// stall keeps the writer from its next transaction until release is called.
func stall(t *testing.T, s *Store) (release func()) {
	t.Helper()
	gate := make(chan struct{})
	s.later(t.Context(), func() { <-gate })
	return sync.OnceFunc(func() { close(gate) })
}

// waiting waits until so many calls stand before the writer.
func waiting(t *testing.T, s *Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.ops) == n }, 10*time.Second, time.Millisecond)
}

func TestWriter_CommitsConcurrentCallsTogether(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("first", time.Hour))
	var before, after int64
	inWriter(t, s, func() { before = s.commits })
	release := stall(t, s)
	const calls = 200
	var group sync.WaitGroup
	for i := range calls {
		group.Go(func() {
			_, err := s.Insert(t.Context(), store.NewToken(), numbered(string(rune('a'+i)), 1, time.Hour))
			if err != nil {
				t.Error(err)
			}
		})
	}
	waiting(t, s, calls)
	release()
	group.Wait()
	inWriter(t, s, func() { after = s.commits })
	require.EqualValues(t, 1, after-before)
}

func TestWriter_FinishesACallWhoseCallerHasLeft(t *testing.T) {
	s := opened(t, options(t))
	insert(t, s, entry("a", 0))
	h := claimUp(t, s, 1)[0]
	release := stall(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, _, err := s.Settle(ctx, store.NewToken(), []store.Settlement{settled(h, policy.Verdict{Kind: policy.Delivered})}, nil)
		gaveUp <- err
	}()
	waiting(t, s, 1)
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	release()
	inWriter(t, s, func() {})
	require.Eventually(t, func() bool { return get(t, s, "a").State == job.Delivered }, 10*time.Second, time.Millisecond)
}

func TestWriter_SyncsDurableCallsOnly(t *testing.T) {
	s := opened(t, options(t))
	level := func() (l int) {
		inWriter(t, s, func() { l = s.level })
		return l
	}
	insert(t, s, entry("a", 0))
	require.Equal(t, full, level())
	h := claimUp(t, s, 1)[0]
	require.Equal(t, normal, level())
	_, err := s.Cancel(t.Context(), store.NewToken(), h.Ref())
	require.NoError(t, err)
	require.Equal(t, full, level())
	settle(t, s, settled(h, policy.Verdict{Kind: policy.Again}))
	require.Equal(t, normal, level())
	revive(t, s, h.ID, 0)
	require.Equal(t, full, level())
}

func TestLog_StaysSmallUnderLoad(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	inWriter(t, s, func() { s.dirty = 0 })
	s.cutAbove.Store(4 << 20)
	var largest int64
	for i := range 60 {
		insert(t, s, bulky(string(rune('a'+i)), 100, 10_000)...)
		info, err := os.Stat(o.Path + "-wal")
		require.NoError(t, err)
		largest = max(largest, info.Size())
	}
	info, err := os.Stat(o.Path)
	require.NoError(t, err)
	require.Greater(t, info.Size(), int64(40<<20), "what was written")
	require.Less(t, largest, int64(24<<20), "the log")
}

func TestSweep_GivesFreePagesBackAfterRetention(t *testing.T) {
	o := options(t)
	o.Defaults.KeepDelivered.Max = new(int64(1))
	s := opened(t, o)
	for i := range 20 {
		entries := bulky(string(rune('a'+i)), 100, 10_000)
		insert(t, s, entries...)
		for _, e := range entries {
			_, err := s.Cancel(t.Context(), store.NewToken(), e.Ref())
			require.NoError(t, err)
		}
	}
	pages := func() (n int64) {
		inWriter(t, s, func() {
			require.NoError(t, s.conn.queryText(t.Context(), "PRAGMA page_count", func(v []driver.Value) error {
				n = integer(v[0])
				return nil
			}))
		})
		return n
	}
	before := pages()
	for more := true; more; {
		swept, err := s.Sweep(t.Context(), store.NewToken(), 500)
		require.NoError(t, err)
		more = swept.More
	}
	require.Less(t, pages(), before-vacuumPages)
	require.FileExists(t, filepath.Clean(o.Path))
}

func TestSweep_GivesFreePagesBackAfterSettlements(t *testing.T) {
	o := options(t)
	o.Defaults.KeepDelivered.Max = new(int64(0))
	o.Defaults.LaneConcurrency = 1000
	s := opened(t, o)
	for i := range 10 {
		entries := bulky(string(rune('a'+i)), 100, 10_000)
		for k := range entries {
			entries[k].Delay = 0
		}
		insert(t, s, entries...)
	}
	for jobs := claimUp(t, s, 64); len(jobs) > 0; jobs = claimUp(t, s, 64) {
		ends := make([]store.Settlement, len(jobs))
		for i, h := range jobs {
			ends[i] = settled(h, policy.Verdict{Kind: policy.Delivered})
		}
		settle(t, s, ends...)
	}
	var free, left int64
	inWriter(t, s, func() { free, _ = s.freePages() })
	require.Greater(t, free, int64(4*vacuumPages))
	steps := 0
	for more := true; more; steps++ {
		swept, err := s.Sweep(t.Context(), store.NewToken(), 500)
		require.NoError(t, err)
		require.Zero(t, swept.Jobs)
		more = swept.More
	}
	inWriter(t, s, func() { left, _ = s.freePages() })
	require.Less(t, left, int64(2*vacuumPages), "all but what is soon used again")
	require.Greater(t, steps, 1)
}

func TestLog_IsCutWithoutWaitingForReaders(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("a", time.Hour))
	reader, err := connect(o.Path, true)
	require.NoError(t, err)
	_, err = reader.exec(snapshot)
	require.NoError(t, err)
	require.NoError(t, reader.query(t.Context(), countOutbox, func([]driver.Value) error { return nil }))
	insert(t, s, entry("b", time.Hour))
	size := func() int64 {
		info, err := os.Stat(o.Path + "-wal")
		require.NoError(t, err)
		return info.Size()
	}
	fastest := time.Hour
	var again, timeout int64
	var fault error
	inWriter(t, s, func() {
		for range 3 {
			start := time.Now()
			s.cutAgain = 0
			s.cutLog()
			fastest = min(fastest, time.Since(start))
			again = s.cutAgain
		}
		fault = s.conn.queryText(t.Context(), "PRAGMA busy_timeout", func(v []driver.Value) error {
			timeout = integer(v[0])
			return nil
		})
	})
	require.NoError(t, fault)
	require.Positive(t, again, "not again at once")
	require.EqualValues(t, busyTimeout, timeout, "of everything else")
	require.Less(t, fastest, busyTimeout*time.Millisecond)
	_, err = reader.exec(commit)
	require.NoError(t, err)
	require.NoError(t, reader.close())
	inWriter(t, s, s.cutLog)
	require.Positive(t, size())
	inWriter(t, s, func() {
		s.cutAgain = 0
		s.cutLog()
	})
	require.Zero(t, size())
}

func TestWriter_WaitsOneSecondForAShellsLock(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("a", 0))
	other, err := connect(o.Path, false)
	require.NoError(t, err)
	require.NoError(t, other.execText("BEGIN IMMEDIATE"))
	_, err = s.Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b", 0)})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "somebody else has the database locked")
	require.Equal(t, job.Ready, get(t, s, "a").State, "reads go on")
	require.NoError(t, other.close())
	insert(t, s, entry("b", 0))
}

func TestUnload_LanesServeAndAreRemovedWithTheirLastJob(t *testing.T) {
	o := options(t)
	s := opened(t, o)
	insert(t, s, entry("a", 0), entry("b", 0))
	for _, h := range claimUp(t, s, 2) {
		settle(t, s, settled(h, policy.Verdict{Kind: policy.Delivered}))
	}
	require.NoError(t, s.Close())
	now := time.Now
	o.Now = func() time.Time { return now().Add(8 * 24 * time.Hour) }
	s = opened(t, o)
	inWriter(t, s, func() { require.Empty(t, s.mem.queues) })
	revive(t, s, "a", time.Hour)
	verify(t, s)
	swept, err := s.Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err)
	require.Equal(t, store.SweepResult{Jobs: 1}, swept)
	_, err = s.Cancel(t.Context(), store.NewToken(), ref("a"))
	require.NoError(t, err)
	_, err = s.PutTopic(t.Context(), store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{KeepDelivered: policy.Retention{Max: new(int64(0))}},
	})
	require.NoError(t, err)
	for range 2 {
		_, err = s.Sweep(t.Context(), store.NewToken(), 10)
		require.NoError(t, err)
	}
	inWriter(t, s, func() {
		require.Empty(t, s.mem.queues)
		require.NoError(t, s.conn.queryText(t.Context(), "SELECT count(*) FROM queues", func(v []driver.Value) error {
			require.Zero(t, integer(v[0]))
			return nil
		}))
	})
	insert(t, s, entry("c", 0))
}
