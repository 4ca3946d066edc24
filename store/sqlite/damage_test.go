package sqlite

import (
	"bytes"
	"database/sql/driver"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	lib "modernc.org/sqlite/lib"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// damagePage overwrites one page of a database that is closed: the first whose first byte is kind (13: rows of a table,
// 10: entries of an index) and which holds a text.
func damagePage(t *testing.T, path string, kind byte, text string) (page []byte) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	const size = 4096
	for at := size; at < len(content); at += size {
		page = content[at : at+size]
		if page[0] == kind && bytes.Contains(page, []byte(text)) {
			whole := bytes.Clone(page)
			for i := range page {
				page[i] = 0xee
			}
			require.NoError(t, os.WriteFile(path, content, 0o600))
			return whole
		}
	}
	require.Fail(t, "no such page", text)
	return nil
}

// A manyLaneStore is a store whose lanes have their jobs side by side.
type manyLaneStore struct {
	s     *Store
	lanes []store.QueueClaim
	jobs  int
}

const laneCount = 20

// newManyLaneStore registers jobs for each lane in turn, and closes the store.
func newManyLaneStore(t *testing.T, o Options, jobs int) *manyLaneStore {
	t.Helper()
	s := openStore(t, o)
	m := &manyLaneStore{jobs: jobs}
	entries := newJobs("job", jobs, 0)
	for i := range entries {
		entries[i].Lane = fmt.Sprintf("lane-%02d", i%laneCount)
		entries[i].URL += strings.Repeat("x", 200) // about 12 on a page
		if i < laneCount {
			m.lanes = append(m.lanes, store.QueueClaim{Queue: entries[i].Queue, Max: 10, Timeout: time.Second})
		}
	}
	for ; len(entries) > 0; entries = entries[min(len(entries), store.MaxBatch):] {
		insert(t, s, entries[:min(len(entries), store.MaxBatch)]...)
	}
	require.NoError(t, s.Close())
	return m
}

func (m *manyLaneStore) open(t *testing.T, o Options) {
	t.Helper()
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	m.s = s
}

// deliver claims and settles until nothing is left to claim, and returns how many jobs were delivered.
func (m *manyLaneStore) deliver(t *testing.T) (delivered int) {
	t.Helper()
	request := store.ClaimRequest{Queues: m.lanes, Max: 64, MaxBytes: 1 << 20, Margin: time.Second}
	for range m.jobs {
		claimed, err := m.s.Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		if len(claimed.Jobs) == 0 {
			for _, q := range claimed.Queues {
				require.False(t, q.More, "a pool would claim again and again")
			}
			return delivered
		}
		items := make([]store.Settlement, len(claimed.Jobs))
		for i, h := range claimed.Jobs {
			items[i] = settlementOf(h, policy.Verdict{Kind: policy.Delivered})
		}
		errs, _, err := m.s.Settle(t.Context(), store.NewToken(), items, nil)
		require.NoError(t, err)
		for _, err := range errs {
			if err == nil {
				delivered++
			} else {
				require.ErrorIs(t, err, store.ErrLeaseLost)
			}
		}
		carry(t, m.s)
	}
	require.Fail(t, "it does not end")
	return 0
}

func TestDamage_OfOnePageSkipsOnlyItsJobs(t *testing.T) {
	const jobs = 600
	for name, c := range map[string]struct {
		kind  byte
		text  string
		least int // jobs that are delivered
	}{
		"rows of jobs":                   {13, "job-0300", jobs * 4 / 5},
		"the index of what is waiting":   {10, "scheduled", jobs / 2},
		"rows at the head of every lane": {13, "job-0000", jobs * 4 / 5},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			log := captureLog(&o)
			m := newManyLaneStore(t, o, jobs)
			damagePage(t, o.Path, c.kind, c.text)
			m.open(t, o)
			delivered := m.deliver(t)
			require.GreaterOrEqual(t, delivered, c.least)
			require.Contains(t, log.String(), "level=ERROR", "it is logged")
			require.Less(t, strings.Count(log.String(), "\n"), 100, "and not again and again")
			require.ErrorContains(t, m.s.Ping(t.Context()), "damaged", "not ready")
			_, err := m.s.Insert(t.Context(), store.NewToken(), []store.NewJob{newJob("another", 0)})
			require.NoError(t, err, "other jobs can be registered")
			require.Len(t, claimJobs(t, m.s, 1), 1)
			t.Logf("%d of %d delivered", delivered, jobs)
		})
	}
}

func TestDamage_OfClaimedJobsLetsOthersBeSettled(t *testing.T) {
	o := options(t)
	m := newManyLaneStore(t, o, 200)
	// Some of the jobs that are claimed when the process ends lie on a page that is damaged then.
	m.open(t, o)
	claimed, err := m.s.Claim(t.Context(), store.NewToken(),
		store.ClaimRequest{Queues: m.lanes, Max: 200, MaxBytes: 1 << 20, Margin: time.Second})
	require.NoError(t, err)
	require.Greater(t, len(claimed.Jobs), 100)
	require.NoError(t, m.s.Close())
	damagePage(t, o.Path, 13, "job-0050")
	m.open(t, o)
	delivered := m.deliver(t)
	require.GreaterOrEqual(t, delivered, 200/2)
	require.Less(t, delivered, 200)
}

func TestDamage_FoundWhenAnAttemptEndsSkipsTheJob(t *testing.T) {
	c := &twoClocks{}
	s, err := Open(t.Context(), at(c.read, options(t)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	insert(t, s, newJobs("job", 6, 0)...)
	jobs := claimJobs(t, s, 6)
	require.Len(t, jobs, 6)
	// breaks lets a statement fail for one job, whose number is its last argument.
	breaks := func(id db.Statement, n int64) (heal func()) {
		return hookInto(t, s, id, func(_ int, args []driver.NamedValue) error {
			if args[len(args)-1].Value == n {
				return codeError(lib.SQLITE_CORRUPT)
			}
			return nil
		})
	}
	heal := breaks(table.EndJob, 2)
	items := []store.Settlement{}
	for _, h := range jobs[:3] {
		items = append(items, settlementOf(h, policy.Verdict{Kind: policy.Delivered}))
	}
	token := store.NewToken()
	for range 2 { // and its repetition
		errs, _, err := s.Settle(t.Context(), token, items, nil)
		require.NoError(t, err)
		require.NoError(t, errs[0])
		require.ErrorIs(t, errs[1], store.ErrLeaseLost)
		require.NoError(t, errs[2])
	}
	heal()
	heal = breaks(table.MoveJob, 5)
	c.pass(time.Minute)
	require.Equal(t, 2, carry(t, s).ExpiredLeases, "job 4 and 6")
	heal()
	require.Len(t, claimJobs(t, s, 6), 2)
	require.ErrorContains(t, s.Ping(t.Context()), "damaged")
	inWriter(t, s, func() { require.Equal(t, map[int64]bool{2: true, 5: true}, s.mem.Unreadable) })
}

func TestDamage_OfDispensableTasksStopsNoRound(t *testing.T) {
	for name, broken := range map[string]db.Statement{
		"times to live": table.FirstTTL, "expired jobs": table.Overdue,
		"delayed jobs after a step of the clock": table.Stepped,
		"the outbox":                             table.ReadOutbox, "ended jobs": table.OldestEnded,
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			log := captureLog(&o)
			o.Limits.KeepDelivered.Max = new(int64(1))
			s, c := openWithClock(t, o)
			insert(t, s, newJobs("job", 4, 0)...)
			jobs := claimJobs(t, s, 4)
			require.Len(t, jobs, 4)
			delivered := settlementOf(jobs[0], policy.Verdict{Kind: policy.Delivered})
			delivered.Outbox = []store.NewJob{newJob("rb:callback", 0)}
			settle(t, s, delivered)
			settle(t, s, settlementOf(jobs[1], policy.Verdict{Kind: policy.Delivered}))
			waits := newJob("waits", time.Hour)
			waits.ExpiresIn = time.Second
			insert(t, s, waits)
			heal := hookInto(t, s, broken,
				func(int, []driver.NamedValue) error { return codeError(lib.SQLITE_CORRUPT) })
			c.pass(time.Minute)
			c.ms.Add(-10_000)
			for range 3 {
				carry(t, s)
				_, err := s.Sweep(t.Context(), store.NewToken(), 100)
				require.NoError(t, err)
				_, err = s.ClaimExpired(t.Context(), store.NewToken(),
					store.ClaimExpiredRequest{Max: 10, MaxBytes: 1 << 20, Lease: time.Minute})
				require.NoError(t, err)
			}
			require.Len(t, claimJobs(t, s, 4), 2, "their leases have expired")
			require.Equal(t, 1, strings.Count(log.String(), "skipping a task"), log.String())
			require.ErrorContains(t, s.Ping(t.Context()), "damaged", "not ready")
			heal() // before the store is verified
		})
	}
}

func TestDamage_OfAnIndexThatNamesMissingJobsBlocksTheLane(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 4, 0)...)
	insert(t, s, newJobInLane("whole", "whole", 0))
	require.NoError(t, s.Close())
	shell(t, o.Path, "CREATE TABLE aside AS SELECT * FROM sqlite_schema WHERE name = 'jobs_open'; "+
		"PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'jobs_open'")
	shell(t, o.Path, "DELETE FROM jobs WHERE id = 'job-0001'") // from the table, not from the index
	shell(t, o.Path, "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM aside")

	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	request := claimRequest(5)
	request.Queues = append(request.Queues,
		store.QueueClaim{Queue: newJobInLane("whole", "whole", 0).Queue, Max: 1, Timeout: time.Second})
	claimed, err := s.Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.Equal(t, "whole", claimed.Jobs[0].ID)
	require.Equal(t, store.QueueStatus{Queue: lane, Blocked: true}, claimed.Queues[0])
	require.Error(t, s.Ping(t.Context()), "not ready")
}

func TestTotals_SkipTheOldestDueOfABlockedLane(t *testing.T) {
	o := options(t)
	m := newManyLaneStore(t, o, 200)
	damagePage(t, o.Path, 10, "scheduled")
	m.open(t, o)
	m.deliver(t)
	total, err := m.s.Totals(t.Context(), m.lanes[0].Queue.Namespace)
	require.NoError(t, err)
	require.Positive(t, total.Ready+total.Scheduled)
	require.Less(t, total.OldestDue.Year(), 3000)
}
