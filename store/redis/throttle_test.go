package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// hasThrottles reports whether a shard stores any throttle.
func hasThrottles(t *testing.T, s *Store) bool {
	t.Helper()
	sh := s.shards[0]
	n, err := s.Client.Exists(t.Context(), sh.Keys.Throttles, sh.Keys.ThrottleQueue,
		sh.Keys.Topic(lane.Namespace, lane.Topic).Open).Result()
	require.NoError(t, err)
	return n > 0
}

func putLane(t *testing.T, s *Store, settings policy.Lane) store.Lane {
	t.Helper()
	put, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(), store.Lane{Queue: lane, Settings: settings})
	require.NoError(t, err)
	return put
}

// deliverWith inserts a job of the test queue and settles it delivered, with a change of the lane.
func deliverWith(t *testing.T, s *Store, id string, change store.LaneChange) {
	t.Helper()
	insert(t, s, entry(id))
	claimed := claimAll(t, s, 1).Jobs
	require.Len(t, claimed, 1)
	item := settlement(claimed[0], policy.Verdict{Kind: policy.Delivered}, 200)
	item.LaneChange = change
	settle(t, s, item)
}

func TestThrottle_LeavesNoKeysOfFreeLanes(t *testing.T) {
	clock := newClock(t)
	pass := clock.pass
	s := open(t, clock.options())
	carry := func() {
		_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
	}
	deliverWith(t, s, "free", store.LaneChange{})
	require.False(t, hasThrottles(t, s), "a lane without a throttle")
	deliverWith(t, s, "closed", store.LaneChange{Breaker: store.CloseBreaker})
	require.False(t, hasThrottles(t, s))

	deliverWith(t, s, "held", store.LaneChange{Cooldown: time.Minute})
	require.True(t, hasThrottles(t, s))
	pass(time.Minute - time.Millisecond)
	carry()
	require.True(t, hasThrottles(t, s))
	pass(time.Millisecond)
	carry()
	require.False(t, hasThrottles(t, s), "a cooldown that is over")

	putLane(t, s, policy.Lane{LaneRate: policy.Rate{Starts: 1, Per: time.Minute}})
	deliverWith(t, s, "rated", store.LaneChange{})
	require.True(t, hasThrottles(t, s))
	pass(time.Minute)
	carry()
	require.False(t, hasThrottles(t, s), "starts that have left the window")
	putLane(t, s, policy.Lane{})

	deliverWith(t, s, "broken", store.LaneChange{Cooldown: time.Minute, Breaker: store.OpenBreaker})
	pass(time.Minute + store.BreakerRetention)
	carry()
	require.True(t, hasThrottles(t, s))
	pass(2 * time.Millisecond)
	carry()
	require.False(t, hasThrottles(t, s), "a breaker that is forgotten")
	carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.Negative(t, carried.Next)
}

func TestThrottle_BreakerOutlivesItsRetentionDuringAProbe(t *testing.T) {
	clock := newClock(t)
	s := open(t, clock.options())
	insert(t, s, entry("second"))
	deliverWith(t, s, "first", store.LaneChange{Breaker: store.OpenBreaker})
	request := wants(5)
	request.Queues[0].Timeout = 2 * store.BreakerRetention
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.True(t, claimed.Jobs[0].Probe)
	clock.pass(store.BreakerRetention + time.Second)
	_, err = s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	stats, err := s.Shards()[0].TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.EqualValues(t, 1, stats[0].OpenBreakers)
	settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Released}, 0))
	require.False(t, hasThrottles(t, s), "it is forgotten with its probe")
}

// A run without a status is that of a job that got no answer. Fields that a newer version adds are kept.
func TestRun_KeepsWhatItDoesNotKnow(t *testing.T) {
	const runFields = 13 // before the status
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		insert(t, s, entry("a"))
		h := claimAll(t, s, 1).Jobs[0]
		settle(t, s, settlement(h, policy.Verdict{Kind: policy.Again}, 503))
		line, err := s.Client.HGet(t.Context(), sh.Keys.Runs, "a").Result()
		require.NoError(t, err)
		fields := strings.Fields(line)
		require.Len(t, fields, runFields+1)
		require.Equal(t, "503", fields[runFields])
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Runs, "a", strings.Join(fields[:runFields], " ")).Err())
		found, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Zero(t, found.Status)

		// A field that a newer version adds.
		h = claimAll(t, s, 1).Jobs[0]
		line, err = s.Client.HGet(t.Context(), sh.Keys.Runs, "a").Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Runs, "a", line+" 418 more").Err())
		settle(t, s, settlement(h, policy.Verdict{Kind: policy.Again}, 502))
		line, err = s.Client.HGet(t.Context(), sh.Keys.Runs, "a").Result()
		require.NoError(t, err)
		require.True(t, strings.HasSuffix(line, " 502 more"), line)

		deliverWith(t, s, "opens the breaker", store.LaneChange{Breaker: store.OpenBreaker})
		number, err := s.Client.HGet(t.Context(), sh.Keys.Queues, lane.String()).Result()
		require.NoError(t, err)
		line, err = s.Client.HGet(t.Context(), sh.Keys.Throttles, number).Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Throttles, number, line+" more").Err())
		deliverWith(t, s, "sets a cooldown", store.LaneChange{Cooldown: time.Millisecond})
		line, err = s.Client.HGet(t.Context(), sh.Keys.Throttles, number).Result()
		require.NoError(t, err)
		require.Regexp(t, ` - \d+ a more$`, line)
		require.NoError(t, s.Client.Del(t.Context(), sh.Keys.Throttles, sh.Keys.ThrottleQueue).Err())

		put := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{
			LaneConcurrency: 3, LaneRate: policy.Rate{Starts: 1, Per: time.Hour},
		}}
		_, err = store.PutTopic(t.Context(), s, put)
		require.NoError(t, err)
		name := layout.TopicName(lane.Namespace, lane.Topic)
		line, err = s.Client.HGet(t.Context(), sh.Keys.Limits, name).Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Limits, name, line+" more").Err())
		insert(t, s, entry("b"), entry("c"))
		claimed := claimAll(t, s, 5)
		require.Len(t, claimed.Jobs, 1, "the limits are those before the new field")
		require.True(t, claimed.Jobs[0].Rated)
	})
}

func TestThrottle_NewLaneGetsConcurrentlyWrittenSettings(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		put := putLane(t, s, policy.Lane{Paused: true})
		insert(t, s, entry("a"))
		c := sh.NewCall(scriptPutLane, sh.Keys.Reply(string(store.NewToken()), "l"), nil, nil, 5)
		c.Keys = append(c.Keys, sh.Keys.LaneSettings,
			sh.Keys.ConfiguredLanes(layout.TopicName(lane.Namespace, lane.Topic)), sh.Keys.Queues)
		c.Add(lane.String(), lane.Lane, put.Revision, "", "")
		_, err := s.Run(t.Context(), c)
		require.ErrorIs(t, err, layout.ErrStale, "else no wake-up would be written")
		putLane(t, s, policy.Lane{})
		notified, err := s.Shards()[0].Wait(t.Context(), store.WaitOptions{
			Groups: []string{store.GroupPush}, Timeout: time.Minute,
		})
		require.NoError(t, err)
		require.Equal(t, []job.Queue{lane}, notified)
	})
}

func TestSettings_CanBePutWhereNoneAre(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		settings := store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}, Revision: store.MustNotExist}
		topic := store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Revision: store.MustNotExist}
		_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(), settings)
		require.NoError(t, err)
		_, err = store.PutLane(t.Context(), s.Shards()[0], store.NewToken(), settings)
		require.ErrorIs(t, err, store.ErrVersion)
		_, err = store.PutTopic(t.Context(), s, topic)
		require.NoError(t, err)
		_, err = store.PutTopic(t.Context(), s, topic)
		require.ErrorIs(t, err, store.ErrVersion)
	})
}

// The cost of a call does not depend on how many other lanes have settings and throttles.
func TestThrottle_CallsDoNotGrowWithOtherLanes(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	putLane(t, s, policy.Lane{LaneRate: policy.Rate{Starts: 1000, Per: time.Hour}})
	commands := func(id string) int64 {
		before := calls(t, c)
		deliverWith(t, s, id, store.LaneChange{Breaker: store.OpenBreaker})
		deliverWith(t, s, id+" probe", store.LaneChange{Breaker: store.CloseBreaker})
		_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		return calls(t, c) - before
	}
	commands("first")
	few := commands("few")
	for i := range 300 {
		q := lane
		q.Lane = fmt.Sprint("other", i)
		_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
			store.Lane{Queue: q, Settings: policy.Lane{LaneRate: policy.Rate{Starts: 1, Per: time.Hour}}})
		require.NoError(t, err)
		e := entry(q.Lane)
		e.Queue = q
		insert(t, s, e)
		request := wants(1)
		request.Queues[0].Queue = q
		claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		item := settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Again, Wait: time.Hour}, 503)
		item.LaneChange = store.LaneChange{Cooldown: time.Hour, Breaker: store.OpenBreaker}
		settle(t, s, item)
	}
	require.InDelta(t, few, commands("many"), 5, "but for whether the carrier is woken")
	stats, err := s.Shards()[0].TopicStats(t.Context(),
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.EqualValues(t, 300, stats[0].OpenBreakers)
}

// calls returns how many commands a server has run, including those of scripts.
func calls(t *testing.T, c *redis.Client) (n int64) {
	t.Helper()
	stats, err := c.InfoMap(t.Context(), "commandstats").Result()
	require.NoError(t, err)
	for name, line := range stats["Commandstats"] {
		text, _, _ := strings.Cut(strings.TrimPrefix(line, "calls="), ",")
		if name != "cmdstat_info" {
			n += layout.Num(text)
		}
	}
	return n
}
