package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

func TestUnreadable_JobStopsNoOther(t *testing.T) {
	var log testkit.Log
	s := open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	insert(t, s, entry("good"), entry("broken"), entry("better"))
	key := s.shards[0].Keys.Jobs
	record, err := s.Client.HGet(t.Context(), key, "broken").Result()
	require.NoError(t, err)
	require.NoError(t, s.Client.HSet(t.Context(), key, "broken", record+"\xff").Err())

	claimed := claimAll(t, s, 10)
	require.Len(t, claimed.Jobs, 2)
	require.Equal(t, "good", claimed.Jobs[0].ID)
	require.Equal(t, "better", claimed.Jobs[1].ID)
	require.Contains(t, log.String(), "level=ERROR")
	require.Contains(t, log.String(), "job=broken")
}

func TestUnreadable_JobIsLeftOutOfListsAndStatistics(t *testing.T) {
	var log testkit.Log
	s := open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx, keys := t.Context(), s.shards[0].Keys
	list := func(state job.State) (ids []string) {
		filter := store.Filter{
			Namespace: lane.Namespace, Topic: lane.Topic,
			States: []job.State{state}, Oldest: true, Limit: 1,
		}
		for more := true; more; {
			page, err := s.Shards()[0].List(ctx, filter)
			require.NoError(t, err)
			for _, j := range page.Jobs {
				ids = append(ids, j.ID)
			}
			filter.After, more = page.Reached, page.More
		}
		return ids
	}
	damages := map[string]func(record string) string{
		"torn-head":  func(string) string { return "\x01" },
		"torn":       func(record string) string { return record + "\xff" },
		"no-format":  func(record string) string { return "\x09" + record[1:] },
		"lost-queue": func(record string) string { return record[:2] + "\x00\x00\x00\x63" + record[6:] },
		"torn-queue": func(record string) string { return record[:2] + "\x00\x00\x00\x64" + record[6:] },
	}
	require.NoError(t, s.Client.HSet(ctx, keys.Names, "100", "default/orders").Err())
	entries := []store.NewJob{entry("1")}
	for id := range damages {
		entries = append(entries, entry(id))
	}
	insert(t, s, append(entries, entry("2"))...)
	whole := s.Client.HGetAll(ctx, keys.Jobs).Val()
	damage := func() {
		for id, tear := range damages {
			require.NoError(t, s.Client.HSet(ctx, keys.Jobs, id, tear(whole[id])).Err())
		}
	}
	damage()
	require.Equal(t, []string{"1", "2"}, list(job.Ready))
	for id := range damages {
		require.Contains(t, log.String(), "job="+id+" ")
	}
	require.NoError(t, s.Client.LPush(ctx, keys.Ready("1"), "torn").Err())
	stats, err := s.Shards()[0].TopicStats(ctx,
		store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.NoError(t, err)
	require.EqualValues(t, len(entries)+1, stats[0].Ready)
	_, err = s.Shards()[0].Totals(ctx, lane.Namespace)
	require.NoError(t, err)
	require.NoError(t, s.Client.LPop(ctx, keys.Ready("1")).Err())

	require.NoError(t, s.Client.HSet(ctx, keys.Jobs, whole).Err())
	var items []store.Settlement
	for _, h := range claimAll(t, s, len(entries)+1).Jobs {
		items = append(items, settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}, 410))
	}
	damage()
	require.Equal(t, []string{"1", "2"}, list(job.Running))
	settle(t, s, items...)
	require.Equal(t, []string{"1", "2"}, list(job.Dead))

	revived, err := s.Shards()[0].Revive(ctx, store.NewToken(),
		[]store.Revival{{Ref: ref("1")}, {Ref: ref("torn-head")}, {Ref: ref("lost-queue")}, {Ref: ref("torn-queue")}})
	require.NoError(t, err)
	require.NoError(t, revived[0].Err)
	require.ErrorIs(t, revived[1].Err, layout.ErrRecord)
	require.ErrorIs(t, revived[2].Err, layout.ErrRecord)
	require.ErrorIs(t, revived[3].Err, layout.ErrRecord)
	errs, err := s.Shards()[0].Purge(ctx, store.NewToken(), []store.Removal{
		{Ref: ref("2")},
		{Ref: ref("torn")},
		{Ref: ref("torn-head")},
		{Ref: ref("lost-queue")},
		{Ref: ref("torn-queue")},
	})
	require.NoError(t, err)
	require.NoError(t, errors.Join(errs[0], errs[1]))
	require.ErrorIs(t, errs[2], layout.ErrRecord)
	require.ErrorIs(t, errs[3], layout.ErrRecord)
	require.ErrorIs(t, errs[4], layout.ErrRecord)
	for _, id := range []string{"lost-queue", "torn-queue"} {
		_, err = s.Shards()[0].Get(ctx, ref(id))
		require.ErrorIs(t, err, layout.ErrRecord)
	}
}

func TestUnreadable_JobsCountAgainstTheBoundOfAList(t *testing.T) {
	var log testkit.Log
	s := open(t, Options{URL: redistest.Start(t).URL(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	keys := &s.shards[0].Keys
	records, members := make([]any, 0, 6000), make([]redis.Z, 0, 3000)
	for i := range 3000 {
		key := fmt.Sprintf("torn-%04d", i)
		records, members = append(records, key, "\x01"), append(members, redis.Z{Score: 1, Member: key})
	}
	require.NoError(t, s.Client.HSet(t.Context(), keys.Jobs, records...).Err())
	require.NoError(t, s.Client.ZAdd(t.Context(), keys.Topic(lane.Namespace, lane.Topic).Dead, members...).Err())
	filter := store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, Limit: 500, ScanLimit: 2000}
	list := func() store.Page {
		page, err := s.Shards()[0].List(t.Context(), filter)
		require.NoError(t, err)
		require.Empty(t, page.Jobs)
		filter.After = page.Reached
		return page
	}
	page := list()
	require.Equal(t, 2000, page.Scanned)
	require.True(t, page.More)
	require.Equal(t, 20, strings.Count(log.String(), "level=ERROR"), "for a while")
	page = list()
	require.Equal(t, 1000, page.Scanned)
	require.False(t, page.More)

	insert(t, s, entry("good"))
	require.NoError(t, s.Client.ZAdd(t.Context(), keys.Due("1"), members...).Err())
	filter.States, filter.After, filter.Oldest = []job.State{job.Scheduled, job.Ready}, store.Position{}, true
	page = list()
	require.Equal(t, 2000, page.Scanned)
	require.True(t, page.More)

	require.NoError(t, s.Client.Del(t.Context(), keys.Due("1")).Err())
	var torn []any
	for _, m := range members[:700] {
		torn = append(torn, m.Member)
	}
	require.NoError(t, s.Client.RPush(t.Context(), keys.Ready("1"), torn...).Err())
	filter.After, filter.Limit, filter.ScanLimit = store.Position{}, 1, 1
	page, err := s.Shards()[0].List(t.Context(), filter)
	require.NoError(t, err)
	require.Len(t, page.Jobs, 1, "jobs without a place end no page")
	require.Equal(t, "good", page.Jobs[0].ID)
	require.Equal(t, 701, page.Scanned)
}

func TestUnreadable_OutboxEntryStopsNoOther(t *testing.T) {
	var log testkit.Log
	s := open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	insert(t, s, entry("a"))
	item := settlement(claimAll(t, s, 1).Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200)
	item.Outbox = []store.NewJob{entry("outbox")}
	settle(t, s, item)
	keys := &s.shards[0].Keys
	require.NoError(t, s.Client.HSet(t.Context(), keys.Outbox, "broken", "{").Err())
	require.NoError(t, s.Client.ZAdd(t.Context(), keys.OutboxQueue, redis.Z{Score: 1, Member: "broken"}).Err())
	for range 2 {
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		require.Len(t, carried.Outbox, 1)
		require.Equal(t, "outbox", carried.Outbox[0].ID)
		require.NotZero(t, carried.Next)
	}
	require.Equal(t, 1, strings.Count(log.String(), "job=broken"))
	require.Contains(t, log.String(), "level=ERROR")
}

func TestCarry_BoundsItsOptions(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("first"))
		const jobs, maxMoves = 9000, 4096
		z := make([]redis.Z, jobs)
		for i := range z {
			z[i] = redis.Z{Score: 1, Member: fmt.Sprint("no-record-", i)}
		}
		require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Due("1"), z...).Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Agenda, redis.Z{Score: 1, Member: "1"}).Err())
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(),
			store.CarryOptions{Jobs: 100_000, Ready: 100_000})
		require.NoError(t, err)
		require.Equal(t, maxMoves-1, carried.Moved)
		require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Claimed("1"), z...).Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), s.shards[0].Keys.Agenda, redis.Z{Score: 1, Member: "1"}).Err())
		carried, err = s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{Jobs: 100_000})
		require.NoError(t, err)
		require.Equal(t, maxMoves, carried.ExpiredLeases)
		_, err = s.Shards()[0].Carry(t.Context(), store.NewToken(),
			store.CarryOptions{Queues: -1, Jobs: -1, Ready: -1, ExpireLeasesBefore: time.Now()})
		require.NoError(t, err)
	})
}

func TestLaneSettings_UnreadableOnesConcernTheirLaneAlone(t *testing.T) {
	s := open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr()})
	queues := []job.Queue{lane, lane, lane, lane}
	request := store.ClaimRequest{Max: 10, MaxBytes: 1 << 20}
	for i := range queues {
		queues[i].Lane = fmt.Sprint("lane-", i)
		request.Queues = append(request.Queues, store.QueueClaim{Queue: queues[i], Max: 5, Timeout: time.Second})
		put, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
			store.Lane{Queue: queues[i], Settings: policy.Lane{LaneConcurrency: 5}})
		require.NoError(t, err)
		if i == 1 || i == 3 { // the last has no jobs
			text := fmt.Sprint(put.Revision, " {")
			require.NoError(t,
				s.Client.HSet(t.Context(), s.shards[0].Keys.LaneSettings, queues[i].String(), text).Err())
		}
		if i < 3 {
			e := entry(fmt.Sprint("job-", i))
			e.Lane = queues[i].Lane
			insert(t, s, e)
		}
	}
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 3)
	for i, left := range claimed.Queues {
		_, err := left.LaneDocument.Lane()
		require.Equal(t, i == 1 || i == 3, errors.Is(err, store.ErrUnreadable), "lane %d", i)
	}

	for _, read := range []func() ([]store.Lane, error){
		func() ([]store.Lane, error) { return store.GetLanes(t.Context(), s.Shards()[0], queues) },
		func() ([]store.Lane, error) {
			return store.ListLanes(t.Context(), s.Shards()[0], lane.Namespace, lane.Topic, "", 10)
		},
	} {
		lanes, err := read()
		require.NoError(t, err)
		require.Len(t, lanes, len(queues))
		for i, l := range lanes {
			require.Equal(t, i == 1 || i == 3, l.Settings.Paused, "lane %d", i)
			require.NotZero(t, l.Revision)
		}
	}

	_, err = store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
		store.Lane{Queue: queues[1], Settings: policy.Lane{LaneConcurrency: 5}})
	require.NoError(t, err)
	lanes, err := store.ListLanes(t.Context(), s.Shards()[0], lane.Namespace, lane.Topic, "", 10)
	require.NoError(t, err)
	require.False(t, lanes[1].Settings.Paused, "settings that were put again are readable")
}

// Jobs that cannot be claimed, because their record is torn or the name of their queue is lost, do not block other
// expired jobs.
func TestClaimExpired_PassesOverJobsThatNobodyCanClaim(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		e, nameless := entry("a"), entry("nameless")
		e.Delay, e.ExpiresIn = 0, time.Millisecond
		nameless.Lane, nameless.ExpiresIn = "nameless", time.Millisecond
		insert(t, s, e, nameless)
		name := nameless.String()
		number, err := s.Client.HGet(t.Context(), sh.Keys.Queues, name).Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.HDel(t.Context(), sh.Keys.Names, number).Err())
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Jobs, "torn", "\x01").Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.TTL, redis.Z{Score: 1, Member: "torn"},
			redis.Z{Score: 2, Member: "nameless"}).Err())
		var claimed []store.ClaimedJob
		require.Eventually(t, func() bool {
			claimed, err = s.Shards()[0].ClaimExpired(t.Context(), store.NewToken(),
				store.ClaimExpiredRequest{Max: 1, MaxBytes: 1 << 20, Lease: time.Minute})
			require.NoError(t, err)
			return len(claimed) > 0
		}, time.Minute, 10*time.Millisecond)
		require.Equal(t, "a", claimed[0].ID)
	})
}
