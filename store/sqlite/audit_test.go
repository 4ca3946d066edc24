package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// auditFile audits a database, and returns the faults and the ledger.
func auditFile(t *testing.T, path string, repair bool) (faults []store.Fault, ledger store.Ledger) {
	t.Helper()
	ctx := context.Background() // also while the test ends
	a, err := OpenAuditor(ctx, path, repair, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	require.Equal(t, 1, a.Shards())
	for page, err := range a.Audit(ctx, 0, repair) {
		require.NoError(t, err)
		require.LessOrEqual(t, page.Ledger.Records.Sum(), int64(2048), "jobs of one step")
		faults = append(faults, page.Faults...)
		ledger = ledger.Plus(page.Ledger)
	}
	for _, f := range faults {
		require.NotEmpty(t, f.Detail, "%+v", f)
		require.NotEmpty(t, f.Where+f.ID, "%+v", f)
	}
	return faults, ledger
}

// filled returns the content of a database with jobs in every state, one with a large body and one that expires.
func filled(t *testing.T) []byte {
	t.Helper()
	o := options(t)
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	large, expiring := newJob("large", time.Hour), newJob("expiring", time.Hour)
	large.BodyKind, large.Body = job.BodyText, make([]byte, 5000)
	expiring.ExpiresIn = 2 * time.Hour
	insert(t, s, large, expiring)
	insert(t, s, newJobs("a", 20, 0)...)
	for i, j := range claimJobs(t, s, 12) {
		if i < 9 {
			verdict := []policy.Verdict{
				{Kind: policy.Delivered},
				{Kind: policy.Dead, Reason: policy.ReasonGaveUp},
				{Kind: policy.Again, Wait: time.Hour},
			}[i%3]
			item := settlementOf(j, verdict)
			if i == 0 {
				item.Outbox = []store.NewJob{newJob("outbox", 0)}
			}
			settle(t, s, item)
		}
	}
	_, err = s.Cancel(t.Context(), store.NewToken(), ref("a-0019"), store.Cancellation{})
	require.NoError(t, err)
	verify(t, s)
	require.NoError(t, s.Close())
	content, err := os.ReadFile(o.Path)
	require.NoError(t, err)
	return content
}

// copyOf returns the options of a new database with a content.
func copyOf(t *testing.T, content []byte) Options {
	t.Helper()
	o := options(t)
	require.NoError(t, os.WriteFile(o.Path, content, 0o600))
	return o
}

// damage runs SQL on a database that no process uses.
func damage(t *testing.T, path, text string) {
	t.Helper()
	d, err := sql.Open("sqlite", "file:"+path)
	require.NoError(t, err)
	result, err := d.ExecContext(t.Context(), text)
	require.NoError(t, err)
	changed, err := result.RowsAffected()
	require.NoError(t, err)
	require.NotZero(t, changed, "the damage changes something")
	require.NoError(t, d.Close())
}

func TestAudit_FindsAndRepairsDamage(t *testing.T) {
	ended := map[string]job.State{
		"a-0000": job.Delivered, "a-0001": job.Dead, "a-0019": job.Cancelled,
		"a-0012": job.Ready, "large": job.Scheduled,
	}
	content := filled(t)
	for name, c := range map[string]struct {
		damage string
		kind   store.RepairKind
		want   map[string]job.State // of the jobs that the repair leaves otherwise; empty: gone
	}{
		"a lane lost":      {"DELETE FROM queues", store.RepairUnplaced, nil},
		"a topic lost":     {"DELETE FROM topics", store.RepairQueue, nil},
		"of another topic": {"UPDATE jobs SET t = 99 WHERE id = 'a-0012'", store.RepairMisplaced, nil},
		"of no lane":       {"UPDATE jobs SET q = 99 WHERE id = 'a-0012'", store.RepairUnplaced, nil},
		"waiting with an end": {"UPDATE jobs SET finished = 1 WHERE id = " +
			"'a-0012'", store.RepairUnplaced, map[string]job.State{"a-0012": job.Dead}},
		"delivered without an end": {"UPDATE jobs SET finished = NULL WHERE id = " +
			"'a-0000'", store.RepairUnplaced, nil},
		"delivered, and scheduled": {"UPDATE jobs SET state = 'scheduled' WHERE id = " +
			"'a-0000'", store.RepairUnplaced, map[string]job.State{"a-0000": job.Dead}},
		"an unknown state": {"UPDATE jobs SET state = 'lost' WHERE id = " +
			"'a-0012'", store.RepairUnplaced, map[string]job.State{"a-0012": job.Dead}},
		"an expiry lost": {"UPDATE jobs SET ttl_end = NULL WHERE id = " +
			"'expiring'", store.RepairLifetime, nil},
		"a row lost": {"DELETE FROM jobs WHERE id = " +
			"'a-0012'", store.RepairCounter, map[string]job.State{"a-0012": ""}},
		"a claimed row lost": {"DELETE FROM jobs WHERE id = 'a-0010'", store.RepairNoJob, nil},
		"a row with attempts " +
			"lost": {"DELETE FROM jobs WHERE id = 'a-0001'", store.RepairLeftover, map[string]job.State{"a-0001": ""}},
		"a row with a body " +
			"lost": {"DELETE FROM jobs WHERE id = 'large'", store.RepairLeftover, map[string]job.State{"large": ""}},
		"attempts of no job": {"INSERT INTO attempts VALUES (99, 1, 1, '{}')", store.RepairLeftover, nil},
		"a claim of an ended job": {"INSERT INTO leases SELECT 99, 1, '[[' || q || ',' || n || ']]' FROM jobs " +
			"WHERE id = 'a-0000'", store.RepairMisplaced, nil},
		"a claim of another lane": {"INSERT INTO leases SELECT 99, 1, '[[99,' || n || ']]' FROM jobs WHERE id = " +
			"'a-0012'", store.RepairMisplaced, nil},
		"claimed twice": {"INSERT INTO leases SELECT c + 9, claimed, jobs FROM " +
			"leases", store.RepairMisplaced, nil},
		"a claim that is unreadable": {"INSERT INTO leases VALUES (99, 1, 'what is this')", store.RepairLease, nil},
		"unfinished counted wrong":   {"UPDATE queues SET unfinished = unfinished + 1", store.RepairCounter, nil},
		"rows counted wrong":         {"UPDATE queues SET rows = rows - 1", store.RepairCounter, nil},
		"registered counted wrong":   {"UPDATE topics SET registered = registered + 1", store.RepairCounter, nil},
		"delivered counted " +
			"wrong": {"UPDATE topics SET delivered = 0, registered = registered + 5", store.RepairCounter, nil},
		"bytes counted wrong":      {"UPDATE topics SET bytes = bytes + 1", store.RepairCounter, nil},
		"kept counted wrong":       {"UPDATE topics SET kept_done = 0, kept_dead_bytes = 7", store.RepairCounter, nil},
		"ids counted wrong":        {"UPDATE topics SET ids = ids + 1", store.RepairCounter, nil},
		"an entry of another name": {"UPDATE outbox SET id = 'other'", store.RepairOutbox, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := copyOf(t, content)
			faults, _ := auditFile(t, o.Path, false)
			require.Empty(t, faults, "before")
			damage(t, o.Path, c.damage)
			for _, repair := range []bool{false, true} {
				faults, _ = auditFile(t, o.Path, repair)
				require.True(t,
					slices.ContainsFunc(faults, func(f store.Fault) bool { return f.Kind == c.kind }), "%+v", faults)
				for _, f := range faults {
					require.Equal(t, repair, f.Repaired, "%+v", f)
				}
			}
			faults, ledger := auditFile(t, o.Path, false)
			require.Empty(t, faults, "after")
			require.Equal(t, ledger.Records, ledger.Places)
			require.Equal(t, ledger.Registered, ledger.Counters.Sum())

			s := openStore(t, o) // which compares memory and rows when the test ends
			require.NoError(t, storetest.Check(t.Context(), s))
			for id, want := range ended {
				if other, differs := c.want[id]; differs {
					want = other
				}
				got, err := s.Get(t.Context(), ref(id))
				if want == "" {
					require.ErrorIs(t, err, store.ErrNotFound)
					continue
				}
				require.NoError(t, err, id)
				require.Equal(t, want, got.State, id)
			}
		})
	}
}

func TestAudit_ReportsWhatItCannotRepair(t *testing.T) {
	content := filled(t)
	for kind, text := range map[store.RepairKind]string{
		store.FaultBody:       "DELETE FROM bodies",
		store.FaultUnreadable: "UPDATE jobs SET spec = x'ff' WHERE id = 'a-0012'",
		store.RepairUnplaced:  "UPDATE jobs SET q = 98, t = 99 WHERE id = 'a-0012'",
	} {
		o := copyOf(t, content)
		damage(t, o.Path, text)
		auditFile(t, o.Path, true)
		faults, _ := auditFile(t, o.Path, true)
		require.Len(t, faults, 1, "%+v", faults)
		require.Equal(t, kind, faults[0].Kind)
		require.False(t, faults[0].Repaired)
	}
	o := copyOf(t, content)
	damage(t, o.Path, "UPDATE outbox SET entry = x'ff'")
	faults, _ := auditFile(t, o.Path, true)
	require.Len(t, faults, 1)
	require.Equal(t,
		store.Fault{Kind: store.FaultUnreadable, Where: "outbox", ID: "outbox", Detail: faults[0].Detail}, faults[0])
}

// A database in use is read beside the process, which shows two more faults.
func TestAudit_ReadsADatabaseInUse(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	insert(t, s, newJobs("a", 3, 0)...)
	item := settlementOf(claimJobs(t, s, 1)[0], policy.Verdict{Kind: policy.Delivered})
	item.Outbox = []store.NewJob{newJob("outbox", 0)}
	settle(t, s, item)
	faults, ledger := auditFile(t, o.Path, false)
	require.Equal(t, []store.Fault{{
		Kind: store.FaultRelay, Where: "outbox", ID: "outbox",
		Detail: "the oldest entry, for more than ten seconds", After: 10 * time.Second,
	}}, faults)
	require.Equal(t, store.Ledger{
		Records: store.States{Waiting: 2, Delivered: 1}, Places: store.States{Waiting: 2, Delivered: 1},
		Counters: store.States{Waiting: 2, Delivered: 1}, Registered: 3, Outbox: 1,
	}, ledger)
	_, err := OpenAuditor(t.Context(), o.Path, true, o.Logger)
	require.ErrorContains(t, err, "another process uses the database")

	require.Len(t, claimJobs(t, s, 1), 1)
	damage(t, o.Path, "UPDATE leases SET claimed = 1")
	faults, ledger = auditFile(t, o.Path, false)
	require.Equal(t, store.RepairLease, faults[0].Kind)
	require.Equal(t, store.States{Waiting: 1, Running: 1, Delivered: 1}, ledger.Records)
	require.Equal(t, ledger.Records, ledger.Places)
	require.Equal(t, ledger.Records, ledger.Counters)
}

// While jobs are inserted, claimed, settled and carried nothing is a fault.
func TestAudit_FindsNothingInABusyStore(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	storetest.AuditBusy(t, s, func() []store.Fault {
		faults, ledger := auditFile(t, o.Path, false)
		require.Equal(t, ledger.Records, ledger.Places)
		require.Equal(t, ledger.Places.Waiting, ledger.Counters.Waiting)
		require.Equal(t, ledger.Places.Running, ledger.Counters.Running)
		// nobody relays the outbox
		return slices.DeleteFunc(faults, func(f store.Fault) bool { return f.Kind == store.FaultRelay })
	})
}

func TestAudit_ReadsLargeTablesInPages(t *testing.T) {
	o := options(t)
	s := openStore(t, o)
	for range 10 {
		insert(t, s, newJobs(string(store.NewToken()), store.MaxBatch, time.Hour)...)
	}
	pages, total := 0, int64(0)
	a, err := OpenAuditor(t.Context(), o.Path, false, o.Logger)
	require.NoError(t, err)
	for page, err := range a.Audit(t.Context(), 0, false) {
		require.NoError(t, err)
		require.LessOrEqual(t, page.Ledger.Records.Sum(), int64(2048))
		if page.Ledger.Records.Sum() > 0 {
			pages++
			require.Positive(t, page.Pause, "for the process that uses the database")
		}
		total += page.Ledger.Records.Sum()
	}
	require.NoError(t, a.Close())
	require.Equal(t, 3, pages)
	require.EqualValues(t, 5120, total)
}
