package sqlite

import (
	"context"
	"database/sql/driver"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// newLargeJobs returns n jobs with bodies of a size.
func newLargeJobs(prefix string, n, size int) []store.NewJob {
	entries := newJobs(prefix, n, time.Hour)
	for i := range entries {
		entries[i].BodyKind, entries[i].Body = job.BodyText, []byte(strings.Repeat("x", size))
	}
	return entries
}

// limitPages limits the growth of the database to more pages, as a full disk does; -1 removes the limit.
func limitPages(t *testing.T, s *Store, more int64) {
	t.Helper()
	inWriter(t, s, func() {
		pages := "1073741823"
		if more >= 0 {
			require.NoError(t, s.db.Conn().QueryText(t.Context(), "PRAGMA page_count", func(v []driver.Value) error {
				pages = strconv.FormatInt(db.Int(v[0])+more, 10)
				return nil
			}))
		}
		require.NoError(t, s.db.Conn().QueryText(t.Context(), "PRAGMA max_page_count="+pages,
			func([]driver.Value) error { return nil }))
	})
}

func TestFullDisk_UndoesWholeCallsUntilThereIsSpace(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJobs("first", 10, 0)...)
	jobs := claimJobs(t, s, 3)
	limitPages(t, s, 8)

	token := store.NewToken()
	big := newLargeJobs("big", 100, 10_000)
	for range 3 {
		_, err := s.Insert(t.Context(), token, big)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "the disk under the database is full")
	}
	_, err := s.Get(t.Context(), big[0].Ref())
	require.ErrorIs(t, err, store.ErrNotFound)
	settle(t, s, settlementOf(jobs[0], policy.Verdict{Kind: policy.Delivered})) // needs no new page
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
	settle(t, s, settlementOf(jobs[1], policy.Verdict{Kind: policy.Again, Wait: time.Minute}))
	stats, err := s.TopicStats(t.Context(), store.StatsFilter{Namespace: lane.Namespace, Limit: store.MaxBatch})
	require.NoError(t, err)
	require.Equal(t, []int64{110, 1, 1}, []int64{stats[0].Registered, stats[0].Delivered, stats[0].Running})
}

func TestWriter_FinishesACallWhoseCallerHasLeft(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJob("a", 0))
	h := claimJobs(t, s, 1)[0]
	release := blockWriter(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	gaveUp := make(chan error)
	go func() {
		_, _, err := s.Settle(ctx, store.NewToken(),
			[]store.Settlement{settlementOf(h, policy.Verdict{Kind: policy.Delivered})}, nil)
		gaveUp <- err
	}()
	waitForCalls(t, s, 1)
	cancel()
	require.ErrorIs(t, <-gaveUp, context.Canceled)
	release()
	inWriter(t, s, func() {})
	require.Eventually(t, func() bool { return get(t, s, "a").State == job.Delivered }, time.Minute, time.Millisecond)
}

func TestWriter_SyncsDurableCallsOnly(t *testing.T) {
	s := openStore(t, options(t))
	fsync := faultsOf(s.db.Path()).fsync.Load
	insert(t, s, newJob("a", 0))
	require.True(t, fsync())
	h := claimJobs(t, s, 1)[0]
	require.False(t, fsync())
	_, err := s.Cancel(t.Context(), store.NewToken(), h.Ref(), store.Cancellation{})
	require.NoError(t, err)
	require.True(t, fsync())
	settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Again}))
	require.False(t, fsync())
	revive(t, s, h.ID, 0)
	require.True(t, fsync())
}

func TestUnload_LanesServeAndAreRemovedWithTheirLastJob(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJob("a", 0), newJob("b", 0))
	for _, h := range claimJobs(t, s, 2) {
		settle(t, s, settlementOf(h, policy.Verdict{Kind: policy.Delivered}))
	}
	require.NoError(t, s.Close())
	now := time.Now
	o.Clock = clock.New(func() time.Time { return now().Add(8 * 24 * time.Hour) })
	s = openStore(t, o)
	inWriter(t, s, func() { require.Empty(t, s.mem.Queues) })
	revive(t, s, "a", time.Hour)
	verify(t, s)
	swept, err := s.Sweep(t.Context(), store.NewToken(), 10)
	require.NoError(t, err)
	require.Equal(t, store.SweepResult{Jobs: 1}, swept)
	_, err = s.Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
	require.NoError(t, err)
	_, err = store.PutTopic(t.Context(), s, store.Topic{
		Namespace: lane.Namespace, Name: lane.Topic,
		Policy: policy.Topic{KeepDelivered: policy.Retention{Max: new(int64(0))}},
	})
	require.NoError(t, err)
	for range 2 {
		_, err = s.Sweep(t.Context(), store.NewToken(), 10)
		require.NoError(t, err)
	}
	inWriter(t, s, func() {
		require.Empty(t, s.mem.Queues)
		require.NoError(t, s.db.Conn().QueryText(t.Context(), "SELECT count(*) FROM "+
			"queues", func(v []driver.Value) error {
			require.Zero(t, db.Int(v[0]))
			return nil
		}))
	})
	insert(t, s, newJob("c", 0))
}
