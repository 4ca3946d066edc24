package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// damagePage overwrites one page of a database that is closed: the first whose first byte is kind (13: rows of a table,
// 10: entries of an index) and which holds a text.
func damagePage(t *testing.T, path string, kind byte, text string) (heal func()) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	const size = 4096
	for at := size; at < len(content); at += size {
		page := content[at : at+size]
		if page[0] == kind && bytes.Contains(page, []byte(text)) {
			writePage(t, path, int64(at), bytes.Repeat([]byte{0xee}, size))
			return func() { writePage(t, path, int64(at), page) }
		}
	}
	require.Fail(t, "no such page", text)
	return nil
}

func writePage(t *testing.T, path string, at int64, page []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteAt(page, at)
	require.NoError(t, errors.Join(err, f.Close()))
}

// laneCount is the number of lanes whose jobs lie side by side.
const laneCount = 20

// insertLanes registers jobs for each lane in turn, closes the store, and returns what claims from the lanes.
func insertLanes(t *testing.T, o Options, jobs int) store.ClaimRequest {
	t.Helper()
	s := openStore(t, o)
	request := store.ClaimRequest{Max: 64, MaxBytes: 1 << 20, Margin: time.Second}
	entries := newJobs("job", jobs, 0)
	for i := range entries {
		entries[i].Lane = fmt.Sprintf("lane-%02d", i%laneCount)
		entries[i].URL += strings.Repeat("x", 200) // about 12 on a page
		if i < laneCount {
			request.Queues = append(request.Queues,
				store.QueueClaim{Queue: entries[i].Queue, Max: 10, Timeout: time.Second})
		}
	}
	for batch := range slices.Chunk(entries, store.MaxBatch) {
		insert(t, s, batch...)
	}
	require.NoError(t, s.Close())
	return request
}

// deliver claims and settles until nothing is left or a call fails, and returns the ids of settled jobs.
func deliver(t *testing.T, s *Store, request store.ClaimRequest) (ids []string, err error) {
	t.Helper()
	for {
		claimed, err := s.Claim(t.Context(), store.NewToken(), request)
		if err != nil || len(claimed.Jobs) == 0 {
			return ids, err
		}
		items := make([]store.Settlement, len(claimed.Jobs))
		for i, h := range claimed.Jobs {
			items[i] = settlementOf(h, policy.Verdict{Kind: policy.Delivered})
		}
		errs, _, err := s.Settle(t.Context(), store.NewToken(), items, nil)
		if err != nil {
			return ids, err
		}
		for i, h := range claimed.Jobs {
			require.NoError(t, errs[i])
			ids = append(ids, h.ID)
		}
	}
}

// requireDamaged checks that a store is unavailable for good, and that one line of the log says what to do.
func requireDamaged(t *testing.T, s *Store, o Options, log *testkit.Log, err error) {
	t.Helper()
	check := func(err error) {
		t.Helper()
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "the database file is damaged")
	}
	check(err)
	for range 2 {
		check(s.Ping(t.Context()))
		_, err := s.Insert(t.Context(), store.NewToken(), []store.NewJob{newJob("another", 0)})
		check(err)
		_, err = s.Claim(t.Context(), store.NewToken(), claimRequest(1))
		check(err)
		_, _, err = s.Settle(t.Context(), store.NewToken(), nil, nil)
		check(err)
		_, err = s.Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		check(err)
		_, err = s.Get(t.Context(), ref("job-0001"))
		check(err)
	}
	require.Equal(t, 1, strings.Count(log.String(), "\n"), log)
	for _, part := range []string{"level=ERROR", o.Path, "ringback restore", ".recover"} {
		require.Contains(t, log.String(), part)
	}
}

func TestDamage_FoundByAClaimOrSettlementEndsService(t *testing.T) {
	const jobs = 600
	for name, text := range map[string]string{
		"rows of jobs": "job-0300", "rows at the head of every lane": "job-0000",
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			log := captureLog(&o)
			request := insertLanes(t, o, jobs)
			heal := damagePage(t, o.Path, 13, text)
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			delivered, err := deliver(t, s, request)
			requireDamaged(t, s, o, log, err)
			require.NoError(t, s.Close())

			heal()
			s = openStore(t, o)
			rest, err := deliver(t, s, request)
			require.NoError(t, err)
			all := make(map[string]bool)
			for _, id := range append(delivered, rest...) {
				require.False(t, all[id], "%s was settled twice", id)
				all[id] = true
			}
			require.Len(t, all, jobs, "nothing is lost with the damaged store")
		})
	}
}

func TestDamage_FoundByAReadEndsService(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	insertLanes(t, o, 200)
	damagePage(t, o.Path, 13, "job-0050")
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	require.NoError(t, s.Ping(t.Context()), "no call has met it yet")
	_, err = s.Get(t.Context(), ref("job-0050"))
	requireDamaged(t, s, o, log, err)
	require.NoError(t, s.Close())
}

func TestDamage_FoundAtTheStartRefusesIt(t *testing.T) {
	for name, damage := range map[string]func(*testing.T, Options, store.ClaimRequest){
		"lanes": func(t *testing.T, o Options, _ store.ClaimRequest) { damagePage(t, o.Path, 13, "orderslane-00") },
		"the index of what is waiting": func(t *testing.T, o Options, _ store.ClaimRequest) {
			damagePage(t, o.Path, 10, "scheduled")
		},
		"rows of claimed jobs": func(t *testing.T, o Options, request store.ClaimRequest) {
			s, err := Open(t.Context(), o)
			require.NoError(t, err)
			request.Max = 200
			claimed, err := s.Claim(t.Context(), store.NewToken(), request)
			require.NoError(t, err)
			require.Greater(t, len(claimed.Jobs), 100)
			require.NoError(t, s.Close())
			damagePage(t, o.Path, 13, "job-0050")
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t)
			damage(t, o, insertLanes(t, o, 200))
			_, err := Open(t.Context(), o)
			for _, part := range []string{o.Path, "the database file is damaged", "ringback restore", ".recover"} {
				require.ErrorContains(t, err, part)
			}
			require.NotContains(t, err.Error(), "\n")
		})
	}
}

func TestDamage_OfAnIndexThatNamesMissingJobsEndsService(t *testing.T) {
	o := options(t)
	log := captureLog(&o)
	s := openStore(t, o)
	insert(t, s, newJobs("job", 4, 0)...)
	require.NoError(t, s.Close())
	shell(t, o.Path, "CREATE TABLE aside AS SELECT * FROM sqlite_schema WHERE name = 'jobs_open'; "+
		"PRAGMA writable_schema = ON; DELETE FROM sqlite_schema WHERE name = 'jobs_open'")
	shell(t, o.Path, "DELETE FROM jobs WHERE id = 'job-0001'") // from the table, not from the index
	shell(t, o.Path, "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT * FROM aside")

	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	_, err = s.Claim(t.Context(), store.NewToken(), claimRequest(5))
	requireDamaged(t, s, o, log, err)
	require.NoError(t, s.Close())
}
