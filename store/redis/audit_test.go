package redis

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/storetest"
)

// audit audits the first shard, and returns the faults.
func audit(tb testing.TB, s *Store, repair bool) []store.Fault {
	tb.Helper()
	return auditShard(tb, s, 0, repair)
}

func auditShard(tb testing.TB, s *Store, shard int, repair bool) (faults []store.Fault) {
	tb.Helper()
	for page, err := range s.shards[shard].Audit(tb.Context(), repair) {
		require.NoError(tb, err)
		faults = append(faults, page.Faults...)
	}
	for _, f := range faults {
		require.NotEmpty(tb, f.Detail, "%+v", f)
		require.True(tb, f.Where != "" || f.ID != "", "%+v", f)
	}
	return faults
}

// kindsOf returns the kinds of faults.
func kindsOf(faults []store.Fault) (kinds []store.RepairKind) {
	for _, f := range faults {
		kinds = append(kinds, f.Kind)
	}
	return kinds
}

// dump returns the contents of all keys. Those of hashes and sets are sorted: Redis moves them between its tables in
// the background, and so changes their order.
func dump(tb testing.TB, s *Store) map[string]string {
	tb.Helper()
	ctx := tb.Context()
	all := map[string]string{}
	for _, key := range s.Client.Keys(ctx, "*").Val() {
		var err error
		switch s.Client.Type(ctx, key).Val() {
		case "none": // it has expired
			continue
		case "hash":
			var fields map[string]string
			fields, err = s.Client.HGetAll(ctx, key).Result()
			all[key] = fmt.Sprintf("%q", fields)
		case "set":
			var members []string
			members, err = s.Client.SMembers(ctx, key).Result()
			slices.Sort(members)
			all[key] = fmt.Sprintf("%q", members)
		default:
			all[key], err = s.Client.Dump(ctx, key).Result()
		}
		if errors.Is(err, redis.Nil) {
			delete(all, key)
			continue
		}
		require.NoError(tb, err)
	}
	return all
}

// requireStillEnded requires that the jobs of sampleJobs that had ended are as they were, unless their record is lost.
func requireStillEnded(tb testing.TB, s *Store, at map[string]string) {
	tb.Helper()
	for state, want := range map[string]job.State{"d": job.Delivered, "x": job.Dead, "c": job.Cancelled} {
		if at[state] == "" {
			continue
		}
		got, err := s.Shards()[0].Get(tb.Context(), ref(at[state]))
		if !errors.Is(err, store.ErrNotFound) {
			require.NoError(tb, err)
			require.Equal(tb, want, got.State, at[state])
		}
	}
}

func TestAudit_RepairsWithoutACarrier(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("first")) // its queue is number 1
		fillStore(t, s, 60)
		require.Empty(t, audit(t, s, false))
		at, sh := sampleJobs(t, s), s.shards[0]
		require.NoError(t, s.Client.ZRem(t.Context(), sh.Keys.Due("1"), at["due"]).Err())
		require.NoError(t, s.Client.HDel(t.Context(), sh.Keys.Runs, at["d"]).Err())
		for _, repair := range []bool{false, true} {
			faults := audit(t, s, repair)
			require.Contains(t, faults, store.Fault{
				Kind: store.RepairUnplaced, ID: at["due"], Where: lane.String(),
				Detail: "in no place, but it belongs to due or ready", Repaired: repair,
			})
			require.Contains(t, faults, store.Fault{
				Kind: store.RepairMisplaced, ID: at["d"], Where: lane.String(),
				Detail: "it has lost its run, and is in delivered", Repaired: repair,
			})
		}
		require.Empty(t, audit(t, s, false))
		requireConsistent(t, s)
		requireStillEnded(t, s, at)
	})
}

func TestAudit_FindsWhatItCannotRepair(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, c, sh := t.Context(), s.Client, s.shards[0]
	insert(t, s, entry("first")) // its queue is number 1
	fillStore(t, s, 60)
	at := sampleJobs(t, s)
	of := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic))
	for kind, damage := range map[store.RepairKind]func(){
		store.FaultUnreadable: func() { c.HSet(ctx, sh.Keys.Runs, at["due"], "what is this") },
		store.FaultNameless: func() {
			e := entry("nameless")
			e.Topic = "lost"
			insert(t, s, e)
			n := c.HGet(ctx, sh.Keys.Queues, "default/lost/l").Val()
			c.HDel(ctx, sh.Keys.Names, n)
			c.HDel(ctx, sh.Keys.Queues, "default/lost/l")
		},
		store.FaultRelay: func() {
			first := c.ZRange(ctx, sh.Keys.OutboxQueue, 0, 0).Val()[0]
			c.ZAdd(ctx, sh.Keys.OutboxQueue,
				redis.Z{Score: float64(time.Now().Add(-time.Hour).UnixMilli()), Member: first})
		},
	} {
		damage()
		for range 2 {
			require.Contains(t, kindsOf(audit(t, s, false)), kind)
			audit(t, s, true)
		}
	}
	require.NotContains(t, kindsOf(audit(t, s, false)), store.RepairCounter, "%s", of.Name)
}

// A ledger counts each job once, and in each way.
func TestAudit_CountsALedger(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	fillStore(t, s, 900)
	var ledger store.Ledger
	pages := 0
	for page, err := range s.shards[0].Audit(t.Context(), false) {
		require.NoError(t, err)
		require.LessOrEqual(t, page.Ledger.Records.Sum(), int64(2048), "jobs of one step")
		require.LessOrEqual(t, page.Pause, 100*time.Millisecond)
		ledger = ledger.Plus(page.Ledger)
		pages++
	}
	require.Greater(t, pages, 10)
	require.Equal(t, ledger.Records, ledger.Places)
	require.Equal(t, ledger.Places, ledger.Counters, "nothing was removed")
	require.EqualValues(t, 900, ledger.Registered)
	require.EqualValues(t, 900, ledger.Records.Sum())
	require.NotZero(t, ledger.Outbox)
	require.Equal(t, ledger.Outbox, s.Client.HLen(t.Context(), s.shards[0].Keys.Outbox).Val())
}

// While jobs are inserted, claimed, settled and carried nothing is a fault.
func TestAudit_FindsNothingInABusyStore(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	storetest.AuditBusy(t, s, func() []store.Fault { return audit(t, s, false) })
	require.Empty(t, audit(t, s, true), "a repair finds nothing either")
	require.Empty(t, audit(t, s, false))
}

func TestOpenAuditor_LaysOutNothing(t *testing.T) {
	server := miniredis.RunT(t)
	_, err := OpenAuditor(t.Context(), Options{URL: "redis://" + server.Addr()})
	require.ErrorContains(t, err, "there are no data under the prefix rb")
	require.Empty(t, server.Keys())

	s := open(t, Options{URL: "redis://" + server.Addr(), Shards: 3})
	waiting := insert(t, s, entry("waiting"))[0].Job.Ref()
	a, err := OpenAuditor(t.Context(), Options{URL: "redis://" + server.Addr()})
	require.NoError(t, err)
	defer func() { require.NoError(t, a.Close()) }()
	require.Equal(t, 3, a.Shards())
	found, err := a.Unfinished(t.Context(), []job.Ref{waiting, ref("none")})
	require.NoError(t, err)
	require.Equal(t, []bool{true, false}, found)
	for shard := range a.Shards() {
		for page, err := range a.Audit(t.Context(), shard, false) {
			require.NoError(t, err)
			require.Empty(t, page.Faults)
		}
	}
}
