package redis

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A tripCount counts the round trips of a client, and calls before, if it is set, ahead of each.
type tripCount struct {
	trips  atomic.Int64
	before func()
}

// countTrips counts the round trips of a store.
func countTrips(s *Store) *tripCount {
	c := &tripCount{}
	s.Client.AddHook(c)
	return c
}

func (c *tripCount) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (c *tripCount) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() != "eval" { // that of a script which the server did not know
			c.trips.Add(1)
		}
		if c.before != nil {
			c.before()
		}
		return next(ctx, cmd)
	}
}

func (c *tripCount) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		c.trips.Add(1)
		return next(ctx, cmds)
	}
}

// readList reads all pages of a list. It requires that no page needs more round trips than most.
func readList(t *testing.T, s *Store, f store.Filter, most int64) (ids []string) {
	t.Helper()
	c := countTrips(s)
	f.Namespace = lane.Namespace
	for pages, more := 0, true; more; pages++ {
		require.Less(t, pages, 1000)
		before := c.trips.Load()
		page, err := s.Shards()[0].List(t.Context(), f)
		require.NoError(t, err)
		require.LessOrEqual(t, c.trips.Load()-before, most, "round trips of page %d", pages)
		if page.More && page.Scanned > 0 && page.Scanned == len(page.Jobs) {
			require.Len(t, page.Jobs, f.Limit, "a page is full if no job was left out")
		}
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		f.After, more = page.Reached, page.More
	}
	return ids
}

// insertMany inserts jobs in batches, after change has changed each.
func insertMany(t *testing.T, s *Store, n int, change func(i int, e *store.NewJob)) (ids []string) {
	t.Helper()
	entries := make([]store.NewJob, n)
	for i := range entries {
		entries[i] = entry(fmt.Sprintf("job-%05d", i))
		change(i, &entries[i])
		ids = append(ids, entries[i].ID)
	}
	for part := range slices.Chunk(entries, store.MaxBatch) {
		insert(t, s, part...)
	}
	return ids
}

// cancelMany cancels jobs, several of them in a millisecond.
func cancelMany(t *testing.T, s *Store, ids []string) {
	t.Helper()
	for _, id := range ids {
		_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref(id), store.Cancellation{})
		require.NoError(t, err)
	}
}

func TestList_ReadsManyLanesInFewRoundTrips(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: redistest.Start(t).URL()})
	lanes := testkit.Of(3000, 10_000)
	ids := insertMany(t, s, lanes, func(i int, e *store.NewJob) {
		e.Topic, e.Lane, e.Delay = fmt.Sprint("topic-", i%7), fmt.Sprint("lane-", i), time.Hour
	})
	require.Equal(t, ids, slices.Sorted(slices.Values(readList(t, s, store.Filter{Limit: 500}, 20))))
	require.ElementsMatch(t, ids[:100], readList(t, s, store.Filter{IDPrefix: "job-000", Limit: 500}, 50))
	require.Empty(t, readList(t, s, store.Filter{States: []job.State{job.Running}, Limit: 500}, 25),
		"lanes without such jobs")
	require.Equal(t, ids[77:78], readList(t, s, store.Filter{Lane: "lane-77", Limit: 500}, 6))

	q := lane
	last := lanes - 5
	q.Topic, q.Lane = fmt.Sprint("topic-", last%7), fmt.Sprint("lane-", last)
	run := store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}}
	_, err := s.Shards()[0].Replace(t.Context(), store.NewToken(), ref(ids[last]), run)
	require.NoError(t, err)
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: q, Max: 1, Timeout: time.Minute}}, Max: 1, MaxBytes: 1 << 20,
	})
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, 1)
	require.Equal(t, ids[last:last+1], readList(t, s, store.Filter{States: []job.State{job.Running}, Limit: 500}, 25))
}

func TestList_ReadsEndedJobsOfManyTopicsInFewRoundTrips(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: redistest.Start(t).URL()})
	const topics = 1_100 // more than are read at once
	topicOf, queues := map[string]string{}, []job.Queue{}
	ids := insertMany(t, s, topics+100, func(i int, e *store.NewJob) {
		e.Topic = fmt.Sprint("topic-", i%topics)
		topicOf[e.ID] = e.Topic
		if i < topics {
			queues = append(queues, e.Queue)
		}
	})
	for part := range slices.Chunk(queues, store.MaxBatch/2) {
		request := store.ClaimRequest{Max: store.MaxBatch, MaxBytes: 1 << 20, Margin: 5 * time.Minute}
		for _, q := range part {
			request.Queues = append(request.Queues, store.QueueClaim{Queue: q, Max: 2, Timeout: time.Minute})
		}
		claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
		require.NoError(t, err)
		var items []store.Settlement
		for _, h := range claimed.Jobs {
			items = append(items, settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}, 410))
		}
		settle(t, s, items...) // many in a millisecond
	}
	ends := map[string]int64{}
	for part := range slices.Chunk(ids, 500) {
		pipe := s.Client.Pipeline()
		scores := make([]*redis.FloatCmd, len(part))
		for i, id := range part {
			scores[i] = pipe.ZScore(t.Context(), s.shards[0].Keys.Topic(lane.Namespace, topicOf[id]).Dead, id)
		}
		_, err := pipe.Exec(t.Context())
		require.NoError(t, err)
		for i, id := range part {
			ends[id] = int64(scores[i].Val())
		}
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(ends[a], ends[b]), cmp.Compare(a, b)) })
	for _, limit := range []int{500, 37} {
		oldest := store.Filter{Oldest: true, States: []job.State{job.Dead}, Limit: limit}
		require.Equal(t, ids, readList(t, s, oldest, 12))
		newest := slices.Clone(ids)
		slices.Reverse(newest)
		require.Equal(t, newest,
			readList(t, s, store.Filter{States: []job.State{job.Cancelled, job.Dead}, Limit: limit}, 12))
	}
	require.ElementsMatch(t, ids[:0], readList(t, s, store.Filter{Reason: "unknown", Limit: 500}, 40))
	require.Len(t, readList(t, s, store.Filter{Topic: "topic-7", Limit: 1}, 6), 2)
}

func TestList_ReadsALongLaneInFewRoundTrips(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: redistest.Start(t).URL()})
	due := time.Now().Add(time.Hour)
	ids := insertMany(t, s, 6_000, func(i int, e *store.NewJob) {
		e.RunAt = due.Add(time.Duration(i/2000) * time.Millisecond) // 2,000 in a millisecond
		e.Labels = map[string]string{"tenth": fmt.Sprint(i % 10)}
	})
	require.Equal(t, ids, readList(t, s, store.Filter{Oldest: true, Limit: 500}, 8))
	slices.Reverse(ids)
	require.Equal(t, ids, readList(t, s, store.Filter{Limit: 77}, 8))
	labelled := store.Filter{
		Topic: lane.Topic, Labels: []store.Label{{Key: "tenth", Value: "3"}},
		Limit: 500, ScanLimit: 5_000,
	}
	require.Len(t, readList(t, s, labelled, 40), 600)
	page, err := s.Shards()[0].List(t.Context(), store.Filter{
		Namespace: lane.Namespace, Labels: []store.Label{{Key: "tenth", Value: "none"}}, Limit: 10, ScanLimit: 1_234,
	})
	require.NoError(t, err)
	require.Equal(t, 1_234, page.Scanned)
	require.True(t, page.More)
}

// Sorted sets compare members by their bytes, and so must scripts and Go.
func TestList_OrdersJobsOfAMillisecondByTheBytesOfTheirIDs(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		ids := []string{"-", "0", "A", "Aa", "B", "Z", "_", "a", "a-", "aB", "aa", "b"}
		const ms = 1_700_000_000_000
		topic := func(i int) string { return fmt.Sprint("topic-", i%3) }
		for i, id := range ids {
			e := entry(id)
			e.RunAt, e.Topic = time.UnixMilli(2*ms), topic(i)
			insert(t, s, e)
		}
		for i := range 3 {
			var wanted []string
			for n := i; n < len(ids); n += 3 {
				wanted = append(wanted, ids[n])
			}
			f := store.Filter{Topic: topic(i), Limit: 1, Oldest: true}
			require.Equal(t, wanted, readList(t, s, f, 8))
			slices.Reverse(wanted)
			f.Oldest = false
			require.Equal(t, wanted, readList(t, s, f, 8))
		}
		cancelMany(t, s, ids)
		keys := &s.shards[0].Keys
		for i, id := range ids { // as if all had ended at once
			run := strings.Fields(s.Client.HGet(t.Context(), keys.Runs, id).Val())
			run[4] = fmt.Sprint(ms)
			require.NoError(t, s.Client.HSet(t.Context(), keys.Runs, id, strings.Join(run, " ")).Err())
			set := keys.Topic(lane.Namespace, topic(i)).Cancelled
			require.NoError(t, s.Client.ZAdd(t.Context(), set, redis.Z{Score: ms, Member: id}).Err())
		}
		for limit := 1; limit < 5; limit++ {
			require.Equal(t, ids, readList(t, s, store.Filter{Limit: limit, Oldest: true}, 8))
		}
		slices.Reverse(ids)
		for limit := 1; limit < 5; limit++ {
			require.Equal(t, ids, readList(t, s, store.Filter{Limit: limit}, 8))
		}
	})
}

// A job that becomes ready or running while a page is read stays at its place in the list.
func TestList_MissesNoJobThatMovesMeanwhile(t *testing.T) {
	t.Parallel()
	s := open(t, Options{URL: redistest.Start(t).URL(), Limits: policy.Limits{Concurrency: 1000}})
	const jobs = 3_000
	var last time.Time
	ids := insertMany(t, s, jobs, func(i int, e *store.NewJob) {
		e.Delay = 5 * time.Millisecond
		e.Labels = map[string]string{"sixth": fmt.Sprint(i % 6)}
	})
	wanted := make([]string, 0, jobs/6)
	for i := 3; i < jobs; i += 6 {
		wanted = append(wanted, ids[i])
	}
	found, err := s.Shards()[0].Get(t.Context(), ref(ids[jobs-1]))
	require.NoError(t, err)
	last = found.DueAt
	later := func() bool { return s.Client.Time(t.Context()).Val().After(last) }
	require.Eventually(t, later, time.Minute, time.Millisecond)
	keys := &s.shards[0].Keys
	moved := func() int64 {
		return s.Client.LLen(t.Context(), keys.Ready("1")).Val() + s.Client.ZCard(t.Context(), keys.Claimed("1")).Val()
	}
	hook, calls := countTrips(s), 0
	for _, oldest := range []bool{true, false} {
		f := store.Filter{
			Namespace: lane.Namespace, Labels: []store.Label{{Key: "sixth", Value: "3"}},
			Oldest: oldest, Limit: 500,
		}
		before := moved()
		var move func()
		move = func() {
			hook.before = nil
			defer func() { hook.before = move }()
			if calls++; calls%3 == 0 {
				claimAll(t, s, 10)
				return
			}
			require.NoError(t, s.Client.ZAdd(t.Context(), keys.Agenda, redis.Z{Score: 1, Member: "1"}).Err())
			_, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{Jobs: 50})
			require.NoError(t, err)
		}
		hook.before = move
		page, err := s.Shards()[0].List(t.Context(), f)
		hook.before = nil
		require.NoError(t, err)
		found := make([]string, 0, len(page.Jobs))
		for _, j := range page.Jobs {
			found = append(found, j.ID)
		}
		slices.Sort(found)
		require.Equal(t, wanted, found)
		require.Greater(t, moved(), before+100)
	}
}

// Expired jobs are claimed before they are due.
func TestList_ShowsARunningJobThatIsDueInTheFuture(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		due := time.Now().Add(time.Hour)
		ids := insertMany(t, s, 50, func(i int, e *store.NewJob) {
			e.RunAt = due.Add(time.Duration(i) * time.Minute)
			if i == 20 {
				e.ExpiresIn = time.Millisecond
			}
		})
		require.Eventually(t, func() bool {
			claimed, err := s.Shards()[0].ClaimExpired(t.Context(), store.NewToken(),
				store.ClaimExpiredRequest{Max: 1, MaxBytes: 1 << 20, Lease: time.Hour})
			require.NoError(t, err)
			return len(claimed) == 1
		}, time.Minute, time.Millisecond)
		for limit := 1; limit < 100; limit += 9 {
			require.Equal(t, ids, readList(t, s, store.Filter{Limit: limit, Oldest: true}, 8))
			newest := slices.Clone(ids)
			slices.Reverse(newest)
			require.Equal(t, newest, readList(t, s, store.Filter{Limit: limit}, 8))
		}
		require.Equal(t, ids[20:21], readList(t, s, store.Filter{States: []job.State{job.Running}, Limit: 1}, 8))
	})
}

func TestList_ShowsAJobOnceThatACrashLeftInTwoSets(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("a"), entry("b"), entry("c"))
		sh := s.shards[0]
		score := func(id string) float64 {
			found, err := s.Shards()[0].Get(t.Context(), ref(id))
			require.NoError(t, err)
			return float64(found.DueAt.UnixMilli())
		}
		topic := sh.Keys.Topic(lane.Namespace, lane.Topic)
		require.NoError(t, s.Client.ZAdd(t.Context(), sh.Keys.Due("1"), redis.Z{Score: score("a"), Member: "a"},
			redis.Z{Score: 1, Member: "b"}).Err())
		require.NoError(t, s.Client.ZAdd(t.Context(), topic.Dead, redis.Z{Score: score("c"), Member: "c"}).Err())
		require.NoError(t,
			s.Client.ZAdd(t.Context(), sh.Keys.TopicLanes(topic.Name), redis.Z{Member: lane.Lane + "\x000"}).Err())
		for _, limit := range []int{1, 2, 10} {
			require.ElementsMatch(t, []string{"a", "b", "c"}, readList(t, s, store.Filter{Limit: limit}, 8))
		}
		cancelMany(t, s, []string{"a", "b", "c"})
		ended := s.Client.ZScore(t.Context(), topic.Cancelled, "a").Val()
		require.NoError(t, s.Client.ZAdd(t.Context(), topic.Dead, redis.Z{Score: ended, Member: "a"}).Err())
		for _, limit := range []int{1, 2, 10} {
			require.ElementsMatch(t, []string{"a", "b", "c"}, readList(t, s, store.Filter{Limit: limit}, 8))
		}
	})
}
