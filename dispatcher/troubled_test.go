package dispatcher_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/storetest"
)

// holds are situations in which lane a of topic orders holds jobs back. in is the time until the end of the first
// reason, roughly; zero: unknown. failed is the last failure but its job and time; nil: none.
var holds = []struct {
	name   string
	stage  func(s *scene)
	codes  []job.ObstacleCode
	in     time.Duration
	detail string
	failed *store.LaneFailure
}{
	{
		"breaker open", func(s *scene) {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: 20 * time.Minute}})
			s.attempted(s.add("orders", "a", "/refused", retries(time.Hour)), 1)
			for range 60 { // which are due after every retry
				s.add("orders", "a", "/ok", func(n *job.New) { n.Delay = 100 * time.Hour })
			}
		},
		[]job.ObstacleCode{job.ObstacleBreakerOpen},
		20 * time.Minute, "one job is attempted as a probe",
		&store.LaneFailure{Error: "connection refused", ErrorClass: policy.ClassRefused},
	},
	{
		"breaker open of a paused lane", func(s *scene) {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: 20 * time.Minute}})
			s.attempted(s.add("orders", "a", "/refused", retries(time.Hour)), 1)
			s.putLane("a", policy.Lane{Paused: true})
		},
		[]job.ObstacleCode{job.ObstacleBreakerOpen, job.ObstacleLanePaused},
		20 * time.Minute, "one job is attempted as a probe",
		&store.LaneFailure{Error: "connection refused", ErrorClass: policy.ClassRefused},
	},
	{
		"breaker half open", func(s *scene) {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: time.Second}})
			j := s.add("orders", "a", "/refused", retries(time.Hour))
			s.attempted(j, 1)
			s.until("the end of the cooldown", func() bool {
				counts, err := s.LaneCounts(s.t.Context(), j.Queue)
				require.NoError(s.t, err)
				return !counts.CooldownUntil.After(time.Now())
			})
		},
		[]job.ObstacleCode{job.ObstacleBreakerHalfOpen},
		0, "the next attempt of the lane is its probe",
		&store.LaneFailure{Error: "connection refused", ErrorClass: policy.ClassRefused},
	},
	{
		"cooldown by Retry-After", func(s *scene) {
			s.attempted(s.add("orders", "a", "/later"), 1)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleRetryAfter},
		30 * time.Second, "(Retry-After)", &store.LaneFailure{Status: 429},
	},
	{
		"failing", func(s *scene) {
			for range 3 {
				s.attempted(s.add("orders", "a", "/500", retries(time.Hour)), 1)
			}
		},
		[]job.ObstacleCode{job.ObstacleFailing},
		0, "The receiver has failed 3 of 3 attempts since ", &store.LaneFailure{Status: 500},
	},
	{
		"topic paused", func(s *scene) {
			s.put("orders", policy.Topic{Paused: true, Pause: heldPause})
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleTopicPaused},
		0, "POST /v1/topics/orders/resume", nil,
	},
	{
		"lane paused", func(s *scene) {
			s.putLane("a", policy.Lane{Paused: true, Pause: heldPause})
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleLanePaused},
		0, "POST /v1/topics/orders/lanes/a/resume", nil,
	},
	{
		"behind a failed job of an ordered lane", func(s *scene) {
			s.putLane("a", policy.Lane{Ordered: true})
			s.attempted(s.add("orders", "a", "/500", retries(time.Hour), func(n *job.New) { n.ID = "first" }), 1)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleOrder},
		time.Hour, "POST /v1/jobs/first/run attempts it now, and DELETE /v1/jobs/first cancels it",
		&store.LaneFailure{Status: 500},
	},
	{
		"at its lane_concurrency", func(s *scene) {
			s.put("orders", policy.Topic{LaneConcurrency: 1})
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleLaneFull},
		0, "lane_concurrency of 1: the next job follows when an attempt ends, and PATCH /v1/topics/orders raises", nil,
	},
	{
		"at its lane_rate", func(s *scene) {
			s.putLane("a", policy.Lane{LaneRate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.inState(s.add("orders", "a", "/ok"), job.Delivered)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleLaneRate},
		time.Hour, "lane_rate of 1/h: the next start is free then, and PATCH /v1/topics/orders/lanes/a raises", nil,
	},
	{
		"at the rate of its topic", func(s *scene) {
			s.put("orders", policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.inState(s.add("orders", "b", "/ok"), job.Delivered)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleTopicRate},
		time.Hour, "PATCH /v1/topics/orders raises the rate", nil,
	},
	{
		"behind a failed job of an ordered lane that is paused, too", func(s *scene) {
			s.putLane("a", policy.Lane{Ordered: true})
			s.attempted(s.add("orders", "a", "/500", retries(time.Hour), func(n *job.New) { n.ID = "first" }), 1)
			s.add("orders", "a", "/ok")
			s.putLane("a", policy.Lane{Ordered: true, Paused: true, Pause: heldPause})
		},
		[]job.ObstacleCode{job.ObstacleOrder, job.ObstacleLanePaused},
		time.Hour, "job first has to end first", &store.LaneFailure{Status: 500},
	},
	{
		"behind a failed job of an ordered lane at the rate of its topic", func(s *scene) {
			s.putLane("a", policy.Lane{Ordered: true})
			s.attempted(s.add("orders", "a", "/500", retries(time.Hour), func(n *job.New) { n.ID = "first" }), 1)
			s.put("orders", policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.inState(s.add("orders", "b", "/ok"), job.Delivered)
			s.add("orders", "a", "/ok")
		},
		[]job.ObstacleCode{job.ObstacleOrder, job.ObstacleTopicRate},
		time.Hour, "job first has to end first", &store.LaneFailure{Status: 500},
	},
}

var heldPause = policy.Pause{At: time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC), By: "ops-anna", Note: "receiver moves"}

// held returns the lanes of the default namespace that hold jobs back.
func held(t *testing.T, d *fixture, limit int) store.TroubledLanes {
	t.Helper()
	found, err := d.TroubledLanes(t.Context(), store.TroubledFilter{Namespace: job.DefaultNamespace, Limit: limit})
	require.NoError(t, err)
	return found
}

func testHeld(t *testing.T, n int, empty store.Store) {
	c := holds[n]
	s := &scene{start(t,
		dispatcher.Options{Store: empty, Grace: 100 * time.Millisecond, Deliverer: &receiver{answer: answerByPath}}), t}
	began := time.Now()
	c.stage(s)
	s.add("healthy", "z", "/ok", hourDelay)
	var all store.TroubledLanes
	s.until(c.name, func() bool {
		all = held(t, s.fixture, 10)
		return len(all.Lanes) > 0 && len(all.Lanes[0].Reasons) >= len(c.codes)
	})
	require.Len(t, all.Lanes, 1)
	l := all.Lanes[0]
	require.Equal(t, job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}, l.Queue)
	var codes []job.ObstacleCode
	for _, r := range l.Reasons {
		codes = append(codes, r.Code)
		requireSentence(t, &r)
	}
	require.Equal(t, c.codes, codes)
	first := l.Reasons[0]
	require.Contains(t, first.Detail(), c.detail)
	if c.in == 0 {
		require.Zero(t, first.Until)
	} else {
		require.WithinRange(t, first.Until, began.Add(c.in*3/4), time.Now().Add(c.in*5/4))
	}
	if first.Code == job.ObstacleTopicPaused || first.Code == job.ObstacleLanePaused {
		got := policy.Pause{At: first.Since, By: first.By, Note: first.Note}
		require.Equal(t, heldPause, got)
	}
	require.Positive(t, l.Scheduled+l.Ready)
	require.NotZero(t, l.OldestDue)
	if c.failed == nil {
		require.Nil(t, l.LastFailure)
	} else {
		require.NotNil(t, l.LastFailure)
		require.NotEmpty(t, l.LastFailure.JobID)
		require.WithinDuration(t, time.Now(), l.LastFailure.At, time.Minute)
		failed := *l.LastFailure
		failed.JobID, failed.At = "", time.Time{}
		require.Equal(t, *c.failed, failed)
	}
	for _, filter := range []store.TroubledFilter{{Topic: "orders"}, {Topic: "orders", Lane: "a"}} {
		filter.Namespace, filter.Limit = job.DefaultNamespace, 10
		var same store.TroubledLanes
		s.until("a search that had enough time", func() bool {
			var err error
			same, err = s.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			return same.Exact
		})
		require.Len(t, same.Lanes, 1)
		for i := range same.Lanes[0].Reasons { // the engines' clocks differ by a millisecond from read to read
			require.WithinDuration(t, l.Reasons[i].Until, same.Lanes[0].Reasons[i].Until, time.Minute)
			same.Lanes[0].Reasons[i].Until = l.Reasons[i].Until
		}
		require.Equal(t, l, same.Lanes[0], filter)
	}
	_ = s.stop()
}

func TestTroubledLanes_NameTheirReasons(t *testing.T) {
	for n, c := range holds {
		t.Run(c.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) { testHeld(t, n, s) })
		})
	}
}

func TestTroubledLanes_NameTheirReasonsOnRedis(t *testing.T) {
	for _, engine := range redisEngines(t) {
		for n, c := range holds {
			t.Run(engine.name+"/"+c.name, func(t *testing.T) {
				s, err := redis.Open(t.Context(), redis.Options{
					URL: engine.url, Shards: engine.shards, Prefix: fmt.Sprint("held", n),
					Limits: policy.Builtin().Limits(), Logger: quiet,
				})
				require.NoError(t, err)
				testHeld(t, n, s)
			})
		}
	}
}

// counting is a store that counts the calls of a search for held lanes, each of which takes a while.
type counting struct {
	store.Store
	mu    sync.Mutex
	calls map[string]int
	takes time.Duration
	err   error // of TopicStats
}

func (c *counting) count(name string) {
	c.mu.Lock()
	c.calls[name]++
	c.mu.Unlock()
	time.Sleep(c.takes)
}

func (c *counting) Shards() []store.Shard {
	return storetest.WrapShards(c.Store, func(_ int, next store.Shard) store.Shard { return countingShard{next, c} })
}

type countingShard struct {
	store.Shard
	of *counting
}

func (s countingShard) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	s.of.count("TopicStats")
	if s.of.err != nil {
		return nil, s.of.err
	}
	return s.Shard.TopicStats(ctx, filter)
}

func (s countingShard) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	s.of.count("LaneStats")
	return s.Shard.LaneStats(ctx, namespace, topic, after, limit)
}

func (s countingShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	s.of.count("GetDocuments")
	return s.Shard.GetDocuments(ctx, keys)
}

func (s countingShard) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	s.of.count("ListDocuments")
	return s.Shard.ListDocuments(ctx, after, limit)
}

func (s countingShard) QueueState(ctx context.Context, q job.Queue) (store.QueueState, error) {
	s.of.count("QueueState")
	return s.Shard.QueueState(ctx, q)
}

func (s countingShard) ListHealth(ctx context.Context, f store.HealthFilter) ([]store.LaneHealth, error) {
	s.of.count("ListHealth")
	return s.Shard.ListHealth(ctx, f)
}

func (s countingShard) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (store.TopicState, error) {
	s.of.count("TopicState")
	return s.Shard.TopicState(ctx, namespace, topic, rate)
}

func (s countingShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	s.of.count("Get")
	return s.Shard.Get(ctx, ref)
}

func (s countingShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	s.of.count("List")
	return s.Shard.List(ctx, filter)
}

// startCounting returns a dispatcher that registers only, and its store.
func startCounting(t *testing.T) (*fixture, *counting) {
	c := &counting{Store: model(), calls: make(map[string]int)}
	return start(t, dispatcher.Options{Store: c, RegisterOnly: true}), c
}

// registerLanes registers a due job in each lane of each topic.
func registerLanes(t *testing.T, r *fixture, topics, lanes int) {
	t.Helper()
	var jobs []job.New
	for i := range topics * lanes {
		jobs = append(jobs, job.New{Spec: job.Spec{
			Queue: job.Queue{Namespace: job.DefaultNamespace, Topic: fmt.Sprintf("t%05d",
				i/lanes), Lane: fmt.Sprintf("l%05d", i%lanes)}, URL: "https://shop.example/",
		}})
	}
	for part := range slices.Chunk(jobs, store.MaxBatch) {
		for _, result := range r.Register(t.Context(), part) {
			require.NoError(t, result.Err)
		}
	}
}

// search searches, and requires that it took no more calls than most, each of which took a while.
func (c *counting) search(t *testing.T, r *fixture, takes time.Duration, most map[string]int) store.TroubledLanes {
	t.Helper()
	clear(c.calls)
	c.takes = takes
	found := held(t, r, 30)
	require.LessOrEqual(t, c.calls["ListHealth"], 1)
	delete(c.calls, "ListHealth")
	for name, calls := range c.calls {
		require.LessOrEqual(t, calls, most[name], name)
	}
	return found
}

func TestTroubledLanes_LookAtABoundedNumberOfLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 2, 1500)
		paused := policy.Topic{Paused: true}
		for _, topic := range []string{"t00000", "t00001"} {
			_, err := r.PutTopic(t.Context(), store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: paused})
			require.NoError(t, err)
		}
		found := calls.search(t, r, 0, map[string]int{"TopicStats": 2, "LaneStats": 10, "ListDocuments": 2, "List": 40})
		require.False(t, found.Exact)
		require.GreaterOrEqual(t, found.LookedAt, 2000)
		require.LessOrEqual(t, found.LookedAt, 2500)
		require.Equal(t, found.LookedAt, found.Total)
		require.Len(t, found.Lanes, 30)
		require.NotZero(t, found.Lanes[19].OldestDue)
		require.Zero(t, found.Lanes[20].OldestDue)
	})
}

func TestTroubledLanes_EndWithTheirTimeAndBeginWithPausedTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 1500, 1)
		for _, topic := range []string{"t00700", "t01499"} {
			_, err := r.PutTopic(t.Context(),
				store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: policy.Topic{Paused: true}})
			require.NoError(t, err)
		}
		began := time.Now()
		// Half of the time is for topics: 1 call for the paused ones, then 4 pages. The other half is for 5 rounds with
		// 4 topics each.
		found := calls.search(t, r, 10*time.Millisecond,
			map[string]int{"TopicStats": 5, "LaneStats": 20, "ListDocuments": 2, "List": 4})
		require.Less(t, time.Since(began), 200*time.Millisecond)
		require.False(t, found.Exact)
		require.Equal(t, 2, found.Total)
		require.Equal(t, "t00700", found.Lanes[0].Queue.Topic)
		require.Equal(t, "t01499", found.Lanes[1].Queue.Topic)

		calls.search(t, r, time.Minute, map[string]int{"TopicStats": 1})
	})
}

func TestTroubledLanes_FindPausedLanesBehindManyOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 1, 4000)
		_, err := r.ChangeLane(t.Context(), job.Queue{Namespace: job.DefaultNamespace, Topic: "t00000", Lane: "l03999"},
			store.ChangeOptions{}, func(l *policy.Lane) error { l.Paused = true; return nil })
		require.NoError(t, err)
		found := calls.search(t, r, 0,
			map[string]int{"TopicStats": 1, "LaneStats": 8, "ListDocuments": 1, "QueueState": 1, "List": 2})
		require.False(t, found.Exact)
		require.Equal(t, 1, found.Total)
		require.Equal(t, "l03999", found.Lanes[0].Queue.Lane)
	})
}

func TestTroubledLanes_AskForAFewStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 1, 100)
		_, err := r.PutTopic(
			t.Context(), store.Topic{Namespace: job.DefaultNamespace, Name: "t00000", Policy: policy.Topic{
				LaneRate: policy.Rate{Starts: 1, Per: time.Hour}, Rate: policy.Rate{Starts: 1, Per: time.Hour},
			}},
		)
		require.NoError(t, err)
		found := calls.search(t, r, 0,
			map[string]int{"TopicStats": 1, "LaneStats": 1, "ListDocuments": 1, "QueueState": 20, "TopicState": 1})
		require.Equal(t, store.TroubledLanes{LookedAt: 100}, found, "none was started, and 80 were not asked")
	})
}

// Of lanes with another reason the state adds limits, so the answer is exact without it, unless an order may hide a
// failing receiver.
func TestTroubledLanes_AskForTheStatesOfTroubledLanes(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r, calls := startCounting(t)
			registerLanes(t, r, 1, 100)
			_, err := r.PutTopic(
				t.Context(), store.Topic{Namespace: job.DefaultNamespace, Name: "t00000", Policy: policy.Topic{
					LaneRate: policy.Rate{Starts: 1, Per: time.Hour}, Ordered: ordered, Paused: true,
				}},
			)
			require.NoError(t, err)
			found := calls.search(t, r, 0, map[string]int{
				"TopicStats": 2, "LaneStats": 1, "ListDocuments": 1,
				"QueueState": 20, "List": 40, "Get": 20,
			})
			require.Equal(t, []any{100, 20, !ordered}, []any{found.Total, calls.calls["QueueState"], found.Exact})
		})
	}
}

func TestTroubledLanes_AreOfTheTopicsThatAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := startCounting(t)
		registerLanes(t, r, 3, 2)
		for _, topic := range []string{"t00000", "t00001"} {
			_, err := r.PutTopic(t.Context(),
				store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: policy.Topic{Paused: true}})
			require.NoError(t, err)
		}
		find := func(filter store.TroubledFilter) store.TroubledLanes {
			found, err := r.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			return found
		}
		found := find(store.TroubledFilter{Namespace: job.DefaultNamespace, Limit: 3})
		require.Equal(t, 4, found.Total)
		require.Equal(t, 6, found.LookedAt)
		require.True(t, found.Exact)
		require.Len(t, found.Lanes, 3)
		found = find(store.TroubledFilter{
			Namespace: job.DefaultNamespace, Limit: 3,
			Shown: func(topic string) bool { return topic == "t00001" },
		})
		require.Equal(t, 2, found.LookedAt)
		require.Equal(t, "t00001", found.Lanes[0].Queue.Topic)
		require.Equal(t, store.TroubledLanes{Exact: true}, find(store.TroubledFilter{Namespace: "other", Limit: 3}))
	})
}

func TestTroubledLanes_OfALaneAreReadWithoutASearch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 1, 2500)
		q := job.Queue{Namespace: job.DefaultNamespace, Topic: "t00000", Lane: "l02499"}
		_, err := r.ChangeLane(t.Context(), q, store.ChangeOptions{}, func(l *policy.Lane) error {
			l.Paused, l.LaneRate = true, policy.Rate{Starts: 1, Per: time.Hour}
			return nil
		})
		require.NoError(t, err)
		find := func(filter store.TroubledFilter) store.TroubledLanes {
			filter.Namespace, filter.Limit = job.DefaultNamespace, 3
			clear(calls.calls)
			found, err := r.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			return found
		}
		calls.takes = 10 * time.Millisecond // of which the budget has 10
		found := find(store.TroubledFilter{Topic: q.Topic, Lane: q.Lane})
		require.Equal(t, map[string]int{"QueueState": 1, "GetDocuments": 1, "List": 1}, calls.calls)
		require.Equal(t, []any{1, 1, true}, []any{found.Total, found.LookedAt, found.Exact})
		require.Equal(t, q, found.Lanes[0].Queue)
		require.Equal(t, job.ObstacleLanePaused, found.Lanes[0].Reasons[0].Code)

		require.Equal(t, store.TroubledLanes{LookedAt: 1, Exact: true},
			find(store.TroubledFilter{Topic: q.Topic, Lane: "l00000"}), "nothing holds it")
		for _, none := range []store.TroubledFilter{
			{Topic: q.Topic, Lane: "x"},
			{Topic: "x", Lane: q.Lane},
			{Topic: "x"},
			{Topic: q.Topic, Lane: q.Lane, Shown: func(topic string) bool { return topic != q.Topic }},
			{Topic: q.Topic, Shown: func(string) bool { return false }},
		} {
			require.Equal(t, store.TroubledLanes{Exact: true}, find(none))
		}
	})
}

func TestTroubledLanes_OfATopicLookAtNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 300, 2)
		for _, topic := range []string{"t00000", "t00299"} {
			_, err := r.PutTopic(t.Context(),
				store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: policy.Topic{Paused: true}})
			require.NoError(t, err)
		}
		clear(calls.calls)
		found, err := r.TroubledLanes(t.Context(),
			store.TroubledFilter{Namespace: job.DefaultNamespace, Topic: "t00299", Limit: 1})
		require.NoError(t, err)
		require.Equal(t, []any{2, 2, true}, []any{found.Total, found.LookedAt, found.Exact})
		require.Equal(t, "t00299", found.Lanes[0].Queue.Topic)
		require.Equal(t, map[string]int{
			"ListDocuments": 1, "TopicStats": 1, "ListHealth": 1, "LaneStats": 1, "List": 1,
		}, calls.calls)
	})
}

// A lane whose jobs are all dead holds nothing back.
func TestTroubledLanes_HaveFailingOnesWithoutJobs(t *testing.T) {
	onStores(t, func(t *testing.T, empty store.Store) {
		s := &scene{start(t, dispatcher.Options{Store: empty, Deliverer: &receiver{answer: answerByPath}}), t}
		var last job.Job
		for range 3 {
			last = s.add("orders", "a", "/500", func(n *job.New) { n.Retries = new(0) })
			s.inState(last, job.Dead)
		}
		s.inState(s.add("mails", "b", "/ok"), job.Delivered)
		for _, filter := range []store.TroubledFilter{
			{}, {Topic: "orders"}, {Topic: "orders", Lane: "a"}, {Code: job.ObstacleFailing},
		} {
			filter.Namespace, filter.Limit = job.DefaultNamespace, 5
			found, err := s.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			require.Len(t, found.Lanes, 1)
			l := found.Lanes[0]
			require.Equal(t, job.ObstacleFailing, l.Reasons[0].Code)
			require.Equal(t, []any{"a", last.ID, policy.HealthFailing, int64(3), int64(100)}, []any{
				l.Queue.Lane, l.LastFailure.JobID, l.Health.State, l.Health.Failed, l.Health.FailedPercent,
			})
			filter.Shown = func(topic string) bool { return topic != "orders" }
			found, err = s.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			require.Empty(t, found.Lanes)
			filter.Shown, filter.Code = nil, job.ObstacleLaneFull
			found, err = s.TroubledLanes(t.Context(), filter)
			require.NoError(t, err)
			require.Empty(t, found.Lanes)
		}
		stats, err := s.TopicStats(t.Context(), store.StatsFilter{Namespace: job.DefaultNamespace, Limit: 5})
		require.NoError(t, err)
		require.Equal(t, []int64{0, 1}, []int64{stats[0].LanesFailing, stats[1].LanesFailing})
		total, err := s.Totals(t.Context(), job.DefaultNamespace)
		require.NoError(t, err)
		require.EqualValues(t, 1, total.LanesFailing)
	})
}

func TestTroubledLanes_FailWithTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, calls := startCounting(t)
		registerLanes(t, r, 1, 1)
		calls.err = store.ErrUnavailable
		_, err := r.TroubledLanes(t.Context(), store.TroubledFilter{Namespace: job.DefaultNamespace, Limit: 3})
		require.ErrorIs(t, err, store.ErrUnavailable)
	})
}
