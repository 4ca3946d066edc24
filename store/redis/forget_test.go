package redis

import (
	"fmt"
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
)

// deliverJob inserts a job into a lane and settles it delivered.
func deliverJob(t *testing.T, s *Store, id, lane string) {
	t.Helper()
	e := entry(id)
	e.Lane = lane
	insert(t, s, e)
	request := wants(1)
	request.Queues[0].Queue = e.Queue
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
}

// numberedLanes returns the names of the lanes that have a number.
func numberedLanes(t *testing.T, s *Store) (lanes []string) {
	t.Helper()
	queues, err := s.Client.HKeys(t.Context(), s.shards[0].Keys.Queues).Result()
	require.NoError(t, err)
	for _, name := range queues {
		q, ok := layout.ParseQueue(name)
		require.True(t, ok)
		lanes = append(lanes, q.Lane)
	}
	return lanes
}

// openChecked opens a store whose data are checked, so that lanes may be forgotten.
func openChecked(t *testing.T, clock *fakeClock) *Store {
	t.Helper()
	s := open(t, clock.options())
	repairAll(t, s, 0)
	return s
}

func sweepAll(t *testing.T, s *Store) {
	t.Helper()
	for more := true; more; {
		swept, err := s.Shards()[0].Sweep(t.Context(), store.NewToken(), 100)
		require.NoError(t, err)
		more = swept.More
	}
}

func TestForget_KeepsLanesWhoseJobsAreKept(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	keep := policy.Builtin().KeepDelivered.For // 24 h
	deliverJob(t, s, "a", "first")
	clock.pass(time.Hour)
	deliverJob(t, s, "b", "second")
	waits := entry("c")
	waits.Lane, waits.Delay = "waits", 1000*time.Hour
	insert(t, s, waits)
	sweepAll(t, s)
	require.ElementsMatch(t, []string{"first", "second", "waits"}, numberedLanes(t, s))

	clock.pass(*keep - time.Hour + time.Second) // now job a goes
	sweepAll(t, s)
	_, err := s.Shards()[0].Get(t.Context(), ref("a"))
	require.ErrorIs(t, err, store.ErrNotFound)
	sweepAll(t, s)
	require.ElementsMatch(t, []string{"second", "waits"}, numberedLanes(t, s),
		"the oldest that is kept ended an hour later")
	found, err := s.Shards()[0].Get(t.Context(), ref("b"))
	require.NoError(t, err)
	require.Equal(t, "second", found.Lane)

	clock.pass(time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Equal(t, []string{"waits"}, numberedLanes(t, s))
	for _, key := range []string{s.shards[0].Keys.Names, s.shards[0].Keys.LastWakeups, s.shards[0].Keys.Agenda} {
		size := s.Client.HLen(t.Context(), key).Val()
		if key == s.shards[0].Keys.Agenda {
			size = s.Client.ZCard(t.Context(), key).Val()
		}
		require.LessOrEqual(t, size, int64(1), key)
	}
	total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
	require.NoError(t, err)
	require.EqualValues(t, 3, total.Registered)
	require.EqualValues(t, 2, total.Delivered)
}

func TestForget_ForgetsLanesOfInternalTopicsAndKeepsTheTopics(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	for _, name := range []string{"first", "second"} {
		e := entry("of-" + name)
		e.Topic, e.Lane = "_own", name
		insert(t, s, e)
		if name == "first" {
			_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
			require.NoError(t, err)
		}
	}
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Equal(t, []string{"second"}, numberedLanes(t, s))
	_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("of-second"), store.Cancellation{})
	require.NoError(t, err)
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
	stats, err := s.Shards()[0].TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{"_own"}})
	require.NoError(t, err)
	require.Len(t, stats, 1)
	require.EqualValues(t, 2, stats[0].Registered)
	total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
	require.NoError(t, err)
	require.Zero(t, total.Registered)
}

// A lane that became idle while the clock was set back seems to have been idle for longer than its jobs are kept.
func TestForget_KeepsLanesOfJobsThatEndedAheadOfTheClock(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	keep := *policy.Builtin().KeepDelivered.For
	deliverJob(t, s, "ahead", "lane") // ends now
	carryAll(t, s)
	clock.step(-6 * time.Hour)
	carryAll(t, s)
	sweepAll(t, s)
	deliverJob(t, s, "behind", "lane") // idle since six hours ago
	clock.pass(keep + time.Minute)     // "behind" goes, "ahead" stays for six hours more
	sweepAll(t, s)
	sweepAll(t, s)
	_, err := s.Shards()[0].Get(t.Context(), ref("behind"))
	require.ErrorIs(t, err, store.ErrNotFound)
	found, err := s.Shards()[0].Get(t.Context(), ref("ahead"))
	require.NoError(t, err)
	require.Equal(t, "lane", found.Lane)
	require.Equal(t, []string{"lane"}, numberedLanes(t, s))
	clock.pass(6 * time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
}

func TestForget_OtherProcessesGetAnotherNumber(t *testing.T) {
	clock := newClock(t)
	s, other := openChecked(t, clock), open(t, clock.options())
	deliverJob(t, s, "a", "lane")
	deliverJob(t, other, "b", "lane")
	before, err := s.Client.HGet(t.Context(), s.shards[0].Keys.Queues,
		(&job.Queue{Namespace: lane.Namespace, Topic: lane.Topic, Lane: "lane"}).String()).Result()
	require.NoError(t, err)
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
	require.Zero(t, s.Client.ZCard(t.Context(), s.shards[0].Keys.Topics).Val(), "the topic is forgotten, too")

	deliverJob(t, other, "d", "new") // which must not get the number that s remembers
	deliverJob(t, s, "c", "lane")
	deliverJob(t, other, "e", "lane")
	numbers, err := s.Client.HGetAll(t.Context(), s.shards[0].Keys.Queues).Result()
	require.NoError(t, err)
	require.Len(t, numbers, 2)
	for name, n := range numbers {
		require.NotEqual(t, before, n, name)
	}
	for _, id := range []string{"c", "d", "e"} {
		found, err := s.Shards()[0].Get(t.Context(), ref(id))
		require.NoError(t, err)
		require.Equal(t, job.Delivered, found.State)
	}
}

func TestForget_GoesThroughTopicsWithManyLanes(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	lanes := testkit.Of(266, 522) // more than one look, or two, take
	entries := make([]store.NewJob, lanes)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("job-%04d", i))
		entries[i].Lane, entries[i].Delay = entries[i].ID, time.Hour
	}
	for from := 0; from < lanes; from += 500 {
		insert(t, s, entries[from:min(from+500, lanes)]...)
	}
	for _, e := range entries[1:] {
		_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), e.Ref(), store.Cancellation{})
		require.NoError(t, err)
	}
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	for range 10 {
		sweepAll(t, s)
	}
	require.Equal(t, []string{entries[0].Lane}, numberedLanes(t, s))
}

// After a restart of Redis a job may be in no queue until the check has found it.
func TestForget_WaitsForTheCheckAfterARestart(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	sh := s.shards[0]
	waits := entry("a")
	waits.Delay = time.Hour
	insert(t, s, waits)
	sweepAll(t, s)
	number, err := s.Client.HGet(t.Context(), sh.Keys.Queues, lane.String()).Result()
	require.NoError(t, err)
	require.NoError(t, s.Client.Del(t.Context(), sh.Keys.Due(number), sh.Keys.Agenda).Err(), "a torn script")
	recheck(t, s, 0)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Equal(t, []string{lane.Lane}, numberedLanes(t, s))
	require.Equal(t, 1, repairAll(t, s, 0)[store.RepairUnplaced])
	requireConsistent(t, s)
}

// A lane on the agenda is still to be processed: the time when its last job ended may not be written yet.
func TestForget_KeepsLanesOnTheAgenda(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	sh := s.shards[0]
	deliverJob(t, s, "a", "lane")
	number := s.Client.HGet(t.Context(), sh.Keys.Queues,
		job.Queue{Namespace: lane.Namespace, Topic: lane.Topic, Lane: "lane"}.String()).Val()
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	for _, key := range []string{sh.Keys.Agenda, sh.Keys.StaleAgenda, sh.Keys.StaleThrottles} {
		require.NoError(t, s.Client.ZAdd(t.Context(), key, redis.Z{Score: 1, Member: number}).Err())
		sweepAll(t, s)
		sweepAll(t, s)
		require.Equal(t, []string{"lane"}, numberedLanes(t, s), key)
		require.NoError(t, s.Client.Del(t.Context(), key).Err())
	}
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
}

// A check skips lanes that are forgotten while it is in progress.
func TestForget_StopsNoCheck(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	const lanes = 300 // more than one step takes
	entries := make([]store.NewJob, lanes)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("job-%04d", i))
		entries[i].Lane, entries[i].Delay = entries[i].ID, 1000*time.Hour
	}
	insert(t, s, entries...)
	sweepAll(t, s)
	recheckDaily(t, s, 0)
	clock.pass(*policy.Builtin().KeepDelivered.For)
	for step := 1; ; step++ {
		result, err := repairStep(t, s, 0)
		require.NoError(t, err)
		require.Empty(t, result.Repairs)
		if result.Complete {
			break
		}
		if step == 2 { // the queues have been read, and some of them checked
			for i := 0; i < lanes; i += 6 {
				_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), entries[i].Ref(), store.Cancellation{})
				require.NoError(t, err)
			}
			clock.pass(2 * *policy.Builtin().KeepDelivered.For)
			for range 4 {
				sweepAll(t, s)
			}
			require.Len(t, numberedLanes(t, s), lanes*5/6)
		}
	}
	requireConsistent(t, s)
}

// A daily check or a new policy does not make lanes seem used.
func TestForget_CountsFromTheLastJobWhateverLooksAtTheLane(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	sh := s.shards[0]
	deliverJob(t, s, "a", "lane")
	idle := s.Client.HVals(t.Context(), sh.Keys.LastWakeups).Val()
	clock.pass(time.Hour)
	recheckDaily(t, s, 0)
	for complete := false; !complete; {
		result, err := repairStep(t, s, 0)
		require.NoError(t, err)
		complete = result.Complete
	}
	require.Equal(t, idle, s.Client.HVals(t.Context(), sh.Keys.LastWakeups).Val(), "after a daily check")
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	for range 3 {
		_, err = s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
	}
	require.Equal(t, idle, s.Client.HVals(t.Context(), sh.Keys.LastWakeups).Val(), "after a policy was put")
	repairAll(t, s, 0)
	require.NotEqual(t, idle, s.Client.HVals(t.Context(), sh.Keys.LastWakeups).Val(),
		"after a crash that may have lost when it was")
}

// Counting reads every lane. If it cached them, they would displace those that a process works with.
func TestTotals_CachesNoQueues(t *testing.T) {
	server := redistest.Start(t)
	s, other := open(t, Options{URL: server.URL()}), open(t, Options{URL: server.URL()})
	admin := client(t, server.Addr())
	commands := func(s *Store) int64 {
		before := calls(t, admin)
		total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
		require.NoError(t, err)
		require.EqualValues(t, 1, total.Scheduled)
		return calls(t, admin) - before
	}
	waits := entry("a")
	waits.Delay = time.Hour
	insert(t, s, waits) // caches the queue in s
	for _, p := range []*Store{s, other} {
		commands(p) // connects and loads scripts
	}
	require.Equal(t, commands(s)+1, commands(other), "the name of the queue is read again")
}

// After a crash Redis may have only a part of the writes of forget.lua.
func TestForget_CountsATopicOnceThoughItsScriptWasTorn(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	sh := s.shards[0]
	deliverJob(t, s, "a", "lane")
	of, all := sh.Keys.TopicByName(layout.TopicName(lane.Namespace, lane.Topic)),
		sh.Keys.TopicByName(layout.TopicName(lane.Namespace, layout.ForgottenTopic))
	counters := s.Client.HGetAll(t.Context(), of.Stats).Val()
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	forget := func() {
		sweepAll(t, s)
		sweepAll(t, s)
		require.Zero(t, s.Client.Exists(t.Context(), of.Stats).Val())
		require.Empty(t, s.Client.ZRange(t.Context(), sh.Keys.Topics, 0, -1).Val())
		require.NotContains(t, s.Client.HGetAll(t.Context(), all.Stats).Val(), "moved")
		total, err := s.Shards()[0].Totals(t.Context(), lane.Namespace)
		require.NoError(t, err)
		require.EqualValues(t, 1, total.Registered)
		require.EqualValues(t, 1, total.Delivered)
	}
	forget()
	require.NoError(t, s.Client.HSet(t.Context(), all.Stats, "moved", of.Name).Err())
	require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.Topics, redis.Z{Member: of.Name}).Err())
	forget() // all but the last two writes
	require.NoError(t, s.Client.HSet(t.Context(), all.Stats, "moved", of.Name).Err())
	require.NoError(t, s.Client.HSet(t.Context(), of.Stats, counters).Err())
	require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.Topics, redis.Z{Member: of.Name}).Err())
	forget() // the first write alone
}

func TestForget_LeavesNoStoreThatSeemsToBeEmptied(t *testing.T) {
	clock := newClock(t)
	s := openChecked(t, clock)
	sh := s.shards[0]
	deliverJob(t, s, "a", "lane")
	require.NoError(t, pingNow(t, s))
	clock.pass(*policy.Builtin().KeepDelivered.For + time.Hour)
	sweepAll(t, s)
	sweepAll(t, s)
	require.Empty(t, numberedLanes(t, s))
	require.NoError(t, s.Client.Del(t.Context(), sh.Keys.Checked).Err(), "as of a process that may not check")
	require.NoError(t, pingNow(t, s))
	require.NoError(t, s.health.CheckReady())
}
