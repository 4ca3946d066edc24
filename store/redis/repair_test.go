package redis

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/storetest"
)

// recheck makes the next Repair of a shard begin a check, as after a restart of its server.
func recheck(tb testing.TB, s *Store, shard int) {
	tb.Helper()
	require.NoError(tb, s.Client.Del(tb.Context(), s.shards[shard].Keys.Checked).Err())
}

// markChecked makes the first shard seem to be checked since the start of its server.
func markChecked(tb testing.TB, s *Store) {
	tb.Helper()
	s.health.Check(tb.Context())
	mark := fmt.Sprint(s.health.RunID(tb.Context(), s.shards[0].Shard), " ", time.Now().UnixMilli())
	require.NoError(tb, s.Client.Set(tb.Context(), s.shards[0].Keys.Checked, mark, 0).Err())
}

// recheckDaily makes the next Repair of a shard begin a daily check.
func recheckDaily(tb testing.TB, s *Store, shard int) {
	tb.Helper()
	longAgo := s.health.RunID(tb.Context(), s.shards[shard].Shard) + " 1"
	require.NoError(tb, s.Client.Set(tb.Context(), s.shards[shard].Keys.Checked, longAgo, 0).Err())
}

// repairStep makes a step of a check that is due, after the pause of the step before.
func repairStep(tb testing.TB, s *Store, shard int) (result store.RepairResult, err error) {
	tb.Helper()
	result, err = s.Shards()[shard].Repair(tb.Context())
	if err == nil && !result.Complete {
		require.Less(tb, result.Wait, repairPause, "no check is due")
		time.Sleep(result.Wait)
	}
	return result, err
}

// repairPause is the pause between two looks at whether a check is due.
const repairPause = 5 * time.Second

// repairAll checks a whole shard, and returns the repairs.
func repairAll(tb testing.TB, s *Store, shard int) map[store.RepairKind]int {
	tb.Helper()
	s.health.Check(tb.Context())
	now := s.now()
	s.now = func() time.Time { return now } // no more checks: tests empty their store
	recheck(tb, s, shard)
	found := map[store.RepairKind]int{}
	for range 100_000 {
		result, err := repairStep(tb, s, shard)
		require.NoError(tb, err)
		addRepairs(found, result.Repairs)
		if result.Complete {
			return found
		}
	}
	require.Fail(tb, "a check must end")
	return nil
}

func addRepairs(to, more map[store.RepairKind]int) {
	for kind, n := range more {
		to[kind] += n
	}
}

// requireRepair checks the first shard, and returns the repairs. It requires consistent data afterwards, and that
// another check finds nothing.
func requireRepair(tb testing.TB, s *Store) map[store.RepairKind]int {
	tb.Helper()
	found := repairAll(tb, s, 0)
	requireConsistent(tb, s)
	require.Empty(tb, repairAll(tb, s, 0), "a second check")
	return found
}

// requireConsistent checks that the first shard's data are as DESIGN.md describes them.
func requireConsistent(tb testing.TB, s *Store) {
	tb.Helper()
	ctx, sh := tb.Context(), s.shards[0]
	require.NoError(tb, storetest.Check(ctx, s))
	hash := func(key string) map[string]string {
		all, err := s.Client.HGetAll(ctx, key).Result()
		require.NoError(tb, err)
		return all
	}
	set := func(key string) []string {
		all, err := s.Client.ZRange(ctx, key, 0, -1).Result()
		require.NoError(tb, err)
		return all
	}
	places := map[string][]string{}
	agenda, numbers, owners, runs := set(sh.Keys.Agenda), hash(sh.Keys.Queues), hash(sh.Keys.Owners), hash(sh.Keys.Runs)
	for number, name := range hash(sh.Keys.Names) {
		require.Equal(tb, number, numbers[name], "the number of %s", name)
		ready, err := s.Client.LRange(ctx, sh.Keys.Ready(number), 0, -1).Result()
		require.NoError(tb, err)
		due, claimed := set(sh.Keys.Due(number)), set(sh.Keys.Claimed(number))
		for kind, members := range map[string][]string{"due": due, "ready": ready, "claimed": claimed} {
			for _, m := range members {
				places[m] = append(places[m], kind+":"+number)
			}
		}
		require.Equal(tb, len(due)+len(ready)+len(claimed) > 0, slices.Contains(agenda, number),
			"queue %s on the agenda", name)
		for _, z := range s.Client.ZRangeWithScores(ctx, sh.Keys.Due(number), 0, -1).Val() {
			q, _ := layout.ParseQueue(name)
			found, err := s.Shards()[0].Get(ctx, job.Ref{Namespace: q.Namespace, ID: z.Member.(string)})
			require.NoError(tb, err)
			require.Equal(tb, found.DueAt.UnixMilli(), int64(z.Score), "the due time of %s", found.ID)
		}
		if s.Client.HGet(ctx, sh.Keys.Ordered, number).Val() == "-" {
			require.Subset(tb, set(sh.Keys.OrderedJobs(number)), due, "the order of %s", name)
		}
		if owner := owners[number]; owner != "" {
			for _, m := range claimed {
				require.Equal(tb, owner, runs[m][:len(owner)], "the owner of all leases of %s", name)
			}
		}
	}
	for _, topic := range set(sh.Keys.Topics) {
		t := sh.Keys.TopicByName(topic)
		for _, state := range []string{"d", "x", "c"} {
			var bytes int64
			for _, m := range set(t.Ended(state)) {
				places[m] = append(places[m], state)
				require.Contains(tb, runs, m)
				bytes += layout.Int(strings.Fields(runs[m])[2])
			}
			require.Equal(tb, bytes, layout.Num(hash(t.Stats)[state+"b"]), "bytes of %s in state %s", topic, state)
		}
	}
	jobs := hash(sh.Keys.Jobs)
	for m := range jobs {
		require.Len(tb, places[m], 1, "%s is in %v", m, places[m])
	}
	for m := range places {
		require.Contains(tb, jobs, m, "what is in a place is a job")
	}
	for _, key := range []string{sh.Keys.Runs, sh.Keys.Attempts} {
		for m := range hash(key) {
			require.Contains(tb, jobs, m, "of %s", key)
		}
	}
	entries, order := slices.Sorted(maps.Keys(hash(sh.Keys.Outbox))), set(sh.Keys.OutboxQueue)
	slices.Sort(order)
	require.ElementsMatch(tb, entries, order, "the outbox")
}

// fillStore inserts jobs into two lanes of a topic and into another topic, and brings them into every state.
func fillStore(tb testing.TB, s *Store, jobs int) {
	tb.Helper()
	ctx := tb.Context()
	for from := 0; from < jobs; from += 100 {
		var entries []store.NewJob
		for i := from; i < min(from+100, jobs); i++ {
			e := entry(fmt.Sprint("job-", i))
			e.Lane = []string{"l", "m"}[i%2]
			if i%7 == 0 {
				e.Topic = "other"
			}
			if i%5 == 0 {
				e.Delay = time.Hour
			}
			if i%3 == 0 {
				e.Fingerprint = []byte("print")
			}
			entries = append(entries, e)
		}
		insert(tb, s, entries...)
	}
	for _, q := range []job.Queue{lane, {Namespace: lane.Namespace, Topic: lane.Topic, Lane: "m"}, {
		Namespace: lane.Namespace, Topic: "other", Lane: "l",
	}} {
		request := wants(max(jobs/4, 1))
		request.Queues[0].Queue, request.Queues[0].Ahead = q, jobs
		claimed, err := s.Shards()[0].Claim(ctx, store.NewToken(), request)
		require.NoError(tb, err)
		var items []store.Settlement
		for i, h := range claimed.Jobs {
			switch i % 5 {
			case 0:
				items = append(items, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
			case 1:
				gaveUp := policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}
				items = append(items, settlement(h, gaveUp, 410))
			case 2:
				items = append(items, settlement(h, policy.Verdict{Kind: policy.Again, Wait: time.Minute}, 500))
			case 3:
				item := settlement(h, policy.Verdict{Kind: policy.Delivered}, 200)
				item.Outbox = []store.NewJob{entry("outbox-" + h.ID)}
				items = append(items, item)
			}
		}
		settle(tb, s, items...)
	}
	_, err := s.Shards()[0].Cancel(ctx, store.NewToken(), ref(fmt.Sprint("job-", 5)), store.Cancellation{})
	require.NoError(tb, err)
}

// sampleJobs returns one job of the test queue for each place that has any.
func sampleJobs(tb testing.TB, s *Store) map[string]string {
	tb.Helper()
	ctx, sh := tb.Context(), s.shards[0]
	t := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic))
	found := map[string]string{}
	for place, key := range map[string]string{
		"due": sh.Keys.Due("1"), "claimed": sh.Keys.Claimed("1"), "d": t.Done, "x": t.Dead, "c": t.Cancelled,
	} {
		members, err := s.Client.ZRange(ctx, key, 0, 0).Result()
		require.NoError(tb, err)
		if len(members) > 0 {
			found[place] = members[0]
		}
	}
	var err error
	found["ready"], err = s.Client.LIndex(ctx, sh.Keys.Ready("1"), 0).Result()
	require.NoError(tb, err)
	return found
}

func TestRepair_FindsNothingInSoundData(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		require.Empty(t, requireRepair(t, s), "nothing there")
		fillStore(t, s, 150)
		require.Empty(t, requireRepair(t, s))
		result, err := s.Shards()[0].Repair(t.Context())
		require.NoError(t, err)
		require.Equal(t, store.RepairResult{Wait: repairPause}, result, "it is checked")
	})
}

func TestRepair_HealsWhatDoesNotAgree(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, sh, c := t.Context(), s.shards[0], s.Client
	due, ready, claimed := sh.Keys.Due("1"), sh.Keys.Ready("1"), sh.Keys.Claimed("1")
	of := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic))
	for name, damage := range map[string]struct {
		do   func(at map[string]string)
		kind store.RepairKind
	}{
		"a job lost from due": {func(at map[string]string) { c.ZRem(ctx, due, at["due"]) }, store.RepairUnplaced},
		"a job lost from " +
			"ready": {func(at map[string]string) { c.LRem(ctx, ready, 0, at["ready"]) }, store.RepairUnplaced},
		"a job lost from " +
			"claimed": {func(at map[string]string) { c.ZRem(ctx, claimed, at["claimed"]) }, store.RepairUnplaced},
		"a job lost from done": {func(at map[string]string) { c.ZRem(ctx, of.Done, at["d"]) }, store.RepairUnplaced},
		"a job lost from dead": {func(at map[string]string) { c.ZRem(ctx, of.Dead, at["x"]) }, store.RepairUnplaced},
		"ready twice": {
			func(at map[string]string) { c.RPush(ctx, ready, at["ready"]) }, store.RepairMisplaced,
		},
		"ready and due": {func(at map[string]string) {
			c.ZAdd(ctx, due, redis.Z{Score: 1, Member: at["ready"]})
		}, store.RepairMisplaced},
		"due and ready": {func(at map[string]string) { c.LPush(ctx, ready, at["due"]) }, store.RepairMisplaced},
		"due and claimed": {func(at map[string]string) {
			c.ZAdd(ctx, claimed, redis.Z{Score: 1, Member: at["due"]})
		}, store.RepairMisplaced},
		"claimed and due": {func(at map[string]string) {
			c.ZAdd(ctx, due, redis.Z{Score: 1, Member: at["claimed"]})
		}, store.RepairMisplaced},
		"claimed and " +
			"ready": {func(at map[string]string) { c.LPush(ctx, ready, at["claimed"]) }, store.RepairMisplaced},
		"due too early": {
			func(at map[string]string) { c.ZAdd(ctx, due, redis.Z{Score: 7, Member: at["due"]}) }, "",
		},
		"ended and due": {
			func(at map[string]string) { c.ZAdd(ctx, due, redis.Z{Score: 7, Member: at["d"]}) }, store.RepairMisplaced,
		},
		"ended and ready": {func(at map[string]string) { c.LPush(ctx, ready, at["x"]) }, store.RepairMisplaced},
		"ended and claimed": {func(at map[string]string) {
			c.ZAdd(ctx, claimed, redis.Z{Score: 7, Member: at["d"]})
		}, store.RepairMisplaced},
		"dead and done": {func(at map[string]string) {
			c.ZAdd(ctx, of.Done, redis.Z{Score: 7, Member: at["x"]})
		}, store.RepairMisplaced},
		"waiting and done": {func(at map[string]string) {
			c.ZAdd(ctx, of.Done, redis.Z{Score: 7, Member: at["due"]})
		}, store.RepairMisplaced},
		"nothing due": {
			func(map[string]string) { c.ZAdd(ctx, due, redis.Z{Score: 7, Member: "none"}) }, store.RepairNoJob,
		},
		"nothing ready": {func(map[string]string) { c.LPush(ctx, ready, "none", "none") }, store.RepairNoJob},
		"nothing claimed": {
			func(map[string]string) { c.ZAdd(ctx, claimed, redis.Z{Score: 7, Member: "none"}) }, store.RepairNoJob,
		},
		"nothing done": {
			func(map[string]string) { c.ZAdd(ctx, of.Done, redis.Z{Score: 7, Member: "none"}) }, store.RepairNoJob,
		},
		"a record lost": {
			func(at map[string]string) { c.HDel(ctx, sh.Keys.Jobs, at["due"]) }, store.RepairNoJob,
		},
		"an ended record " +
			"lost": {func(at map[string]string) { c.HDel(ctx, sh.Keys.Jobs, at["d"]) }, store.RepairLeftover},
		"a run lost": {func(at map[string]string) { c.HDel(ctx, sh.Keys.Runs, at["claimed"]) }, store.RepairMisplaced},
		"a lease of another queue": {func(at map[string]string) {
			run := c.HGet(ctx, sh.Keys.Runs, at["claimed"]).Val()
			c.HSet(ctx, sh.Keys.Runs, at["claimed"], strings.Replace(run, "@1 ", "@9 ", 1))
		}, store.RepairMisplaced},
		"a queue off the agenda": {func(map[string]string) { c.ZRem(ctx, sh.Keys.Agenda, "1") }, store.RepairAgenda},
		"a queue late on the agenda": {func(map[string]string) {
			c.ZAdd(ctx, sh.Keys.Agenda, redis.Z{Score: float64(layout.Never), Member: "1"})
		}, store.RepairAgenda},
		"no queue on the agenda": {
			func(map[string]string) { c.ZAdd(ctx, sh.Keys.Agenda, redis.Z{Score: 7, Member: "77"}) }, store.RepairQueue,
		},
		"all of due":        {func(map[string]string) { c.Del(ctx, due) }, store.RepairUnplaced},
		"all of ready":      {func(map[string]string) { c.Del(ctx, ready) }, store.RepairUnplaced},
		"all of claimed":    {func(map[string]string) { c.Del(ctx, claimed) }, store.RepairUnplaced},
		"all of the agenda": {func(map[string]string) { c.Del(ctx, sh.Keys.Agenda) }, store.RepairAgenda},
		"a name":            {func(map[string]string) { c.HDel(ctx, sh.Keys.Names, "1") }, store.RepairQueue},
		"a number": {
			func(map[string]string) { c.HDel(ctx, sh.Keys.Queues, lane.String()) }, store.RepairQueue,
		},
		"a topic": {
			func(map[string]string) { c.ZRem(ctx, sh.Keys.Topics, of.Name) }, store.RepairQueue,
		},
		"the lanes of a " +
			"topic": {func(map[string]string) { c.Del(ctx, sh.Keys.TopicLanes(of.Name)) }, store.RepairQueue},
		"ready counted " +
			"wrong": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "ready", -3) }, store.RepairCounter},
		"claimed counted " +
			"wrong": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "claimed", 2) }, store.RepairCounter},
		"registered one " +
			"short": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "reg", -1) }, store.RepairCounter},
		"delivered one " +
			"short": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "d", -1) }, store.RepairCounter},
		"unfinished bytes too " +
			"many": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "b", 1000) }, store.RepairCounter},
		"bytes counted " +
			"wrong": {func(map[string]string) { c.HIncrBy(ctx, of.Stats, "db", 1000) }, store.RepairCounter},
		"no counters":                {func(map[string]string) { c.Del(ctx, of.Stats) }, store.RepairCounter},
		"an outbox without order":    {func(map[string]string) { c.Del(ctx, sh.Keys.OutboxQueue) }, store.RepairOutbox},
		"an order without an outbox": {func(map[string]string) { c.Del(ctx, sh.Keys.Outbox) }, store.RepairNoJob},
		"a run of no job": {func(at map[string]string) {
			c.HSet(ctx, sh.Keys.Runs, "none", c.HGet(ctx, sh.Keys.Runs, at["d"]).Val())
		}, store.RepairLeftover},
		"attempts of no job": {
			func(map[string]string) { c.HSet(ctx, sh.Keys.Attempts, "none", "{}\n") }, store.RepairLeftover,
		},
		"an id of no job": {
			func(map[string]string) { c.HSet(ctx, sh.Keys.IDs, "none", "\x01p") }, store.RepairLeftover,
		},
		"an id never forgotten": {
			func(map[string]string) { c.HSet(ctx, sh.Keys.IDs, "none", "\x01pd 5 - 7") }, store.RepairLeftover,
		},
		"a lease without an end": {func(at map[string]string) {
			c.ZAdd(ctx, claimed,
				redis.Z{Score: float64(time.Now().Add(99 * time.Hour).UnixMilli()), Member: at["claimed"]})
		}, store.RepairLease},
		"an expiry of no job": {func(map[string]string) {
			c.ZAdd(ctx, sh.Keys.TTL, redis.Z{Score: 7, Member: "none"})
		}, store.RepairLeftover},
		"no expiries":       {func(map[string]string) { c.Del(ctx, sh.Keys.TTL) }, store.RepairLifetime},
		"an ended run lost": {func(at map[string]string) { c.HDel(ctx, sh.Keys.Runs, at["d"]) }, store.RepairMisplaced},
		"a dead run lost":   {func(at map[string]string) { c.HDel(ctx, sh.Keys.Runs, at["x"]) }, store.RepairMisplaced},
	} {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, c.FlushDB(ctx).Err())
			sh.ForgetQueues()
			expiring := entry("first") // its queue is number 1
			expiring.Delay, expiring.ExpiresIn = time.Hour, 2*time.Hour
			insert(t, s, expiring)
			fillStore(t, s, 60)
			at := sampleJobs(t, s)
			damage.do(at)
			before := dump(t, s)
			audited := audit(t, s, false)
			require.Equal(t, before, dump(t, s), "an audit changes nothing")
			found := requireRepair(t, s)
			if damage.kind != "" {
				require.NotZero(t, found[damage.kind], "%v", found)
				require.Contains(t, kindsOf(audited), damage.kind)
			}
			require.NotEmpty(t, found)
			require.NotEmpty(t, audited)
			require.Empty(t, audit(t, s, false), "nothing is left")
			requireStillEnded(t, s, at)
		})
	}
}

// failing fails runs of scripts, given by their hash, before they are sent.
type failing struct {
	redis.Hook
	fails func(script string) bool
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" && f.fails(fmt.Sprint(cmd.Args()[1])) {
			cmd.SetErr(errLost)
			return errLost
		}
		return next(ctx, cmd)
	}
}

func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// If a call fails, the next one checks the same data. Here the first call of each script fails.
func TestRepair_ChecksAgainWhatAFaultKeptItFrom(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, sh := t.Context(), s.shards[0]
	insert(t, s, entry("first"))
	const lanes = 768 // more than one call reads
	entries := make([]store.NewJob, lanes)
	for i := range entries {
		entries[i] = entry(fmt.Sprint("one-", i))
		entries[i].Lane = entries[i].ID
	}
	for page := range slices.Chunk(entries, store.MaxBatch) {
		insert(t, s, page...)
	}
	fillStore(t, s, 60)
	require.NoError(t, s.Client.Del(ctx, sh.Keys.Queues, sh.Keys.Due("1"), sh.Keys.OutboxQueue).Err())
	require.NoError(t, s.Client.HSet(ctx, sh.Keys.Attempts, "none", "{}\n").Err())
	recheck(t, s, 0)
	failed, complete := map[string]bool{}, false
	s.Client.AddHook(&failing{fails: func(script string) bool {
		fails := !complete && !failed[script]
		failed[script] = true
		return fails
	}})
	found := map[store.RepairKind]int{}
	for !complete {
		result, err := repairStep(t, s, 0)
		if err != nil {
			require.ErrorIs(t, err, store.ErrUnavailable)
		}
		addRepairs(found, result.Repairs)
		complete = err == nil && result.Complete
	}
	require.Equal(t, lanes+4, found[store.RepairQueue])
	for _, kind := range []store.RepairKind{store.RepairUnplaced, store.RepairOutbox, store.RepairLeftover} {
		require.NotZero(t, found[kind], "%s of %v", kind, found)
	}
	requireConsistent(t, s)
}

func TestRepair_IsNotMadeAgainByAProcessThatCarriesNext(t *testing.T) {
	server := redistest.Start(t)
	s, other := open(t, Options{URL: server.URL()}), open(t, Options{URL: server.URL()})
	repairAll(t, s, 0)
	recheck(t, s, 0) // as after a restart that both have noticed
	repairAll(t, other, 0)
	result, err := s.Shards()[0].Repair(t.Context())
	require.NoError(t, err)
	require.Equal(t, store.RepairResult{Wait: repairPause}, result)
}

func TestRepair_CountsLargeTopicsInSeveralSteps(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, sh := t.Context(), s.shards[0]
	insert(t, s, entry("first"))
	fillStore(t, s, 60)
	of := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic))
	// Queues without jobs, and copies of a job: more queues and ended jobs than one call counts.
	delivered := sampleJobs(t, s)["d"]
	record, run := s.Client.HGet(ctx, sh.Keys.Jobs, delivered).Val(), s.Client.HGet(ctx, sh.Keys.Runs, delivered).Val()
	pipe := s.Client.Pipeline()
	for i := range 8200 {
		pipe.ZAdd(ctx, sh.Keys.TopicLanes(of.Name), redis.Z{Member: fmt.Sprintf("empty-%d\x00%d", i, 1000+i)})
	}
	for i := range 4100 {
		id := fmt.Sprint("copy-", i)
		pipe.HSet(ctx, sh.Keys.Jobs, id, record)
		pipe.HSet(ctx, sh.Keys.Runs, id, run)
		pipe.ZAdd(ctx, of.Done, redis.Z{Score: 1, Member: id})
	}
	_, err := pipe.Exec(ctx)
	require.NoError(t, err)
	require.Equal(t, map[store.RepairKind]int{store.RepairCounter: 3}, repairAll(t, s, 0), "reg, d and db")
	for _, field := range []string{"reg", "ready", "claimed", "db"} {
		require.NoError(t, s.Client.HIncrBy(ctx, of.Stats, field, 3).Err())
	}
	require.Equal(t, map[store.RepairKind]int{store.RepairCounter: 4}, repairAll(t, s, 0))
	require.Empty(t, repairAll(t, s, 0), "a second check")
}

func TestRepair_ChecksManyTopicsInOneStep(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, sh := t.Context(), s.shards[0]
	topics := testkit.Of(150, 300)
	var entries []store.NewJob
	for i := range topics {
		for _, id := range []string{"waiting", "cancelled"} {
			e := entry(fmt.Sprint(id, "-", i))
			e.Topic = fmt.Sprint("topic-", i)
			entries = append(entries, e)
		}
	}
	for some := range slices.Chunk(entries, store.MaxBatch) {
		insert(t, s, some...)
	}
	for i := range topics {
		_, err := s.Shards()[0].Cancel(ctx, store.NewToken(), ref(fmt.Sprint("cancelled-", i)), store.Cancellation{})
		require.NoError(t, err)
	}
	requireConsistent(t, s)
	topic := func(i int) *layout.Topic {
		return sh.Keys.TopicByName(layout.TopicName(lane.Namespace, fmt.Sprint("topic-", i)))
	}
	for _, i := range []int{0, 63, 64, topics - 1} {
		require.NoError(t, s.Client.HIncrBy(ctx, topic(i).Stats, "claimed", 2).Err())
		require.NoError(t, s.Client.HIncrBy(ctx, topic(i).Stats, "cb", 5).Err())
		require.NoError(t, s.Client.ZAdd(ctx, topic(i).Done, redis.Z{Score: 1, Member: "none"}).Err())
	}
	scripts := 0
	s.Client.AddHook(&failing{fails: func(string) bool { scripts++; return false }})
	found := repairAll(t, s, 0)
	require.Equal(t, map[store.RepairKind]int{store.RepairNoJob: 4, store.RepairCounter: 8}, found,
		"claimed and cb of each")
	require.Less(t, scripts, topics/4, "scripts of a whole check")
	requireConsistent(t, s)
}

func TestRepair_MakesOneStepAtATimeAndNoneOfTheDailyCheckBetweenThoseAfterARestart(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL(), Shards: 3})
	for shard := range s.Shards() {
		_, err := s.Shards()[shard].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("a")})
		require.NoError(t, err)
		repairAll(t, s, shard)
	}
	recheck(t, s, 0)
	recheck(t, s, 1)
	recheckDaily(t, s, 2)
	scripts := 0 // one in the first step of a check
	s.Client.AddHook(&failing{fails: func(string) bool {
		if scripts++; scripts == 1 {
			result, err := s.Shards()[1].Repair(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2*time.Millisecond, result.Wait, "another shard makes a step")
			require.Equal(t, 1, scripts)
			_, err = s.Shards()[2].Repair(t.Context())
			require.NoError(t, err)
			require.Equal(t, 2, scripts, "the daily check goes its own pace")
		}
		return false
	}})
	for scripts == 0 { // the last check may still be in its pause
		_, err := s.Shards()[0].Repair(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, 2, scripts)
}

// After a crash of Redis a queue may have the id of a job that has ended or is claimed, until the shard is checked.
func TestClaim_SkipsJobsThatHaveEndedOrAreClaimed(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("ended"), entry("claimed"))
		claimed := claimAll(t, s, 2)
		settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
		ready, due := s.shards[0].Keys.Ready("1"), s.shards[0].Keys.Due("1")
		require.NoError(t, s.Client.RPush(t.Context(), ready, "ended", "claimed").Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), due, redis.Z{Score: 1, Member: "ended"},
			redis.Z{Score: 1, Member: "claimed"}).Err())
		insert(t, s, entry("next"))
		jobs := claimAll(t, s, 10).Jobs
		require.Len(t, jobs, 1)
		require.Equal(t, "next", jobs[0].ID)
		settle(t, s, settlement(claimed.Jobs[1], policy.Verdict{Kind: policy.Delivered}, 200),
			settlement(jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
		requireRepair(t, s)
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
		require.NoError(t, err)
		require.EqualValues(t, 3, stats[0].Delivered)
		require.EqualValues(t, 3, stats[0].Registered)
	})
}

func TestCarry_LapsesNoJobThatHasEnded(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("ended"))
		settle(t, s, settlement(claimAll(t, s, 1).Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
		sh := s.shards[0]
		require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.Claimed("1"), redis.Z{Score: 1, Member: "ended"}).Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.Agenda, redis.Z{Score: 1, Member: "1"}).Err())
		_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		got, err := s.Shards()[0].Get(t.Context(), ref("ended"))
		require.NoError(t, err)
		require.Equal(t, job.Delivered, got.State)
		require.Len(t, got.History, 1)
		requireRepair(t, s)
	})
}

// A crash of Redis may leave some counters of a script unwritten. The next change of a counter corrects it.
func TestCounters_AreWrittenAsSums(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, Options{URL: server.URL()})
	stats := s.shards[0].Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic)).Stats
	insert(t, s, entry("a"), entry("b"))
	commands, err := client(t, server.Addr()).InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	require.NotContains(t, commands["Commandstats"], "cmdstat_hincrby")
	bytes := s.Client.HStrLen(t.Context(), s.shards[0].Keys.Jobs, "a").Val() +
		s.Client.HStrLen(t.Context(), s.shards[0].Keys.Jobs, "b").Val()
	require.Equal(t, map[string]string{"reg": "2", "ready": "2", "b": fmt.Sprint(bytes)},
		s.Client.HGetAll(t.Context(), stats).Val())
}

// Whatever is damaged at random, the data are consistent after a check, and no job with a record is stuck.
func TestRepair_HealsRandomDamage(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	ctx, sh := t.Context(), s.shards[0]
	for seed := range testkit.Of[uint64](6, 20) {
		require.NoError(t, s.Client.FlushDB(ctx).Err())
		sh.ForgetQueues()
		_, err := store.PutTopic(ctx, s,
			store.Topic{Namespace: lane.Namespace, Name: "other", Policy: policy.Topic{Ordered: seed%2 == 0}})
		require.NoError(t, err)
		fillStore(t, s, 120)
		random := rand.New(rand.NewPCG(seed, seed))
		for range 40 {
			damageRandomKey(t, s, random)
		}
		found := requireRepair(t, s)
		require.NotEmpty(t, found)
		t.Logf("seed %d: %v", seed, found)
	}
}

// damageRandomKey removes or moves an entry of a random key of the first shard, but never both the name and the number
// of a queue.
func damageRandomKey(t *testing.T, s *Store, random *rand.Rand) {
	ctx, sh, c := t.Context(), s.shards[0], s.Client
	all, err := c.Keys(ctx, "*").Result()
	require.NoError(t, err)
	slices.Sort(all)
	all = slices.DeleteFunc(all, func(key string) bool {
		return !strings.HasPrefix(key, sh.Keys.Tag) || strings.Contains(key, "reply:") || key == sh.Keys.Names ||
			key == sh.Keys.Checked
	})
	key := all[random.IntN(len(all))]
	pick := func(from []string) string {
		if len(from) == 0 {
			return "none"
		}
		slices.Sort(from)
		return from[random.IntN(len(from))]
	}
	switch kind := c.Type(ctx, key).Val(); kind {
	case "hash":
		field := pick(c.HKeys(ctx, key).Val())
		if n, err := c.HGet(ctx, key, field).Int64(); err == nil && key != sh.Keys.Queues && random.IntN(2) == 0 {
			c.HSet(ctx, key, field, n+int64(random.IntN(7))-3)
		} else {
			c.HDel(ctx, key, field)
		}
	case "zset":
		member := pick(c.ZRange(ctx, key, 0, -1).Val())
		c.ZRem(ctx, key, member)
		if random.IntN(2) == 0 { // into the place of another queue or state
			other := all[random.IntN(len(all))]
			for _, place := range []string{"due:", "claimed:", "done:", "dead:"} {
				if strings.HasPrefix(other, sh.Keys.Tag+place) {
					c.ZAdd(ctx, other, redis.Z{Score: float64(time.Now().UnixMilli()), Member: member})
				}
			}
		}
	case "list":
		if strings.HasPrefix(key, sh.Keys.Tag+"ready:") {
			member := pick(c.LRange(ctx, key, 0, -1).Val())
			if random.IntN(2) == 0 {
				c.LRem(ctx, key, 1, member)
			} else {
				c.RPush(ctx, key, member)
			}
		}
	}
}
