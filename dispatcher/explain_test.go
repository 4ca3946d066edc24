package dispatcher_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/seal"
	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
	"github.com/ringback/ringback/store/storetest"
)

// scene is a dispatcher on an empty store, whose receiver answers as the job's path says: /ok, /500, /refused, /later
// (429 with Retry-After: 30), /hang (until the dispatcher stops), /refused-then-hang.
type scene struct {
	*fixture
	t *testing.T
}

// answerByPath is the answer of the receiver of a scene.
func answerByPath(ctx context.Context, r job.Request) policy.Result {
	path := r.URL
	if u, err := url.Parse(r.URL); err == nil {
		path = u.Path
	}
	if path == "/refused-then-hang" {
		path = "/hang"
		if r.Attempt == 1 {
			path = "/refused"
		}
	}
	switch path {
	case "/500":
		return policy.Result{Status: 500}
	case "/refused":
		return policy.Result{Class: policy.ClassRefused, Error: "connection refused"}
	case "/later":
		return policy.Result{Status: 429, RetryAfter: 30 * time.Second}
	case "/hang":
		<-ctx.Done()
		return policy.Result{Class: policy.ClassShutdown}
	default:
		return policy.Result{Status: 200}
	}
}

// put writes the policy of the scene's topic, or of a lane.
func (s *scene) put(topic string, p policy.Topic) {
	s.t.Helper()
	_, err := s.PutTopic(s.t.Context(), store.Topic{Namespace: job.DefaultNamespace, Name: topic, Policy: p})
	require.NoError(s.t, err)
}

func (s *scene) putLane(lane string, settings policy.Lane) {
	s.t.Helper()
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: lane}
	_, err := s.ChangeLane(s.t.Context(), q, store.ChangeOptions{},
		func(l *policy.Lane) error { *l = settings; return nil })
	require.NoError(s.t, err)
}

// add registers a job of a lane, whose timeout outlives the test.
func (s *scene) add(topic, lane, path string, change ...func(*job.New)) job.Job {
	s.t.Helper()
	n := job.New{Spec: job.Spec{
		Queue: job.Queue{Topic: topic, Lane: lane}, URL: "https://shop.example" + path,
		Terms: policy.Terms{Timeout: 10 * time.Minute},
	}}
	for _, c := range change {
		c(&n)
	}
	return s.register(s.t, n)
}

// until calls cond until it is true.
func (s *scene) until(what string, cond func() bool) {
	s.t.Helper()
	for end := time.Now().Add(5 * time.Minute); !cond(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			require.FailNow(s.t, "timed out waiting for "+what)
		}
	}
}

// inState waits until a job is in a state.
func (s *scene) inState(j job.Job, state job.State) {
	s.t.Helper()
	s.until(j.ID+" to be "+string(state), func() bool { return s.get(s.t, j.Ref()).State == state })
}

// attempted waits until a job has ended attempts.
func (s *scene) attempted(j job.Job, attempts int) {
	s.t.Helper()
	s.until(j.ID+" to be attempted", func() bool { return s.get(s.t, j.Ref()).Attempts == attempts })
}

// wait returns what a job waits for; nil: nothing.
func (s *scene) wait(j job.Job) *job.Obstacle {
	s.t.Helper()
	found := s.get(s.t, j.Ref())
	explanation := s.Explain(s.t.Context(), &found)
	require.NotNil(s.t, explanation)
	return explanation.WaitingFor
}

// hourDelay delays a job beyond the end of the test.
func hourDelay(n *job.New) { n.Delay = time.Hour }

func retries(ladder ...time.Duration) func(*job.New) {
	return func(n *job.New) { n.Ladder = ladder }
}

// waits are situations in which a job waits. in is the time until the end of the wait, roughly; zero: unknown. detail
// is a part of the sentence.
var waits = []struct {
	name    string
	options dispatcher.Options
	stage   func(s *scene) job.Job
	code    job.ObstacleCode
	in      time.Duration
	detail  string
}{
	{
		"due time",
		dispatcher.Options{},
		func(s *scene) job.Job { return s.add("orders", "a", "/ok", hourDelay) },
		job.ObstacleDue, time.Hour, "/run to run it now",
	},
	{
		"retry", dispatcher.Options{}, func(s *scene) job.Job {
			j := s.add("orders", "a", "/500", retries(time.Millisecond, time.Hour, 2*time.Hour))
			s.attempted(j, 2)
			return j
		}, job.ObstacleRetry, time.Hour, "failed attempt 2 of 4 for rung 2 of 3 (1h)",
	},
	{
		"retry of a failing receiver", dispatcher.Options{}, func(s *scene) job.Job {
			j := s.add("orders", "a", "/500", retries(time.Millisecond, time.Millisecond, time.Hour))
			s.attempted(j, 3)
			return j
		}, job.ObstacleRetry, time.Hour, "Retry-After asked for it; the receiver has failed 3 of 3 attempts since ",
	},
	{
		"retry after its topic has fewer retries than failed attempts", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Ladder: policy.Ladder{time.Millisecond, time.Millisecond, time.Hour}})
			j := s.add("orders", "a", "/500")
			s.attempted(j, 3)
			s.put("orders", policy.Topic{Ladder: policy.Ladder{time.Second}})
			return j
		}, job.ObstacleRetry, time.Hour, "failed attempt 3 for its last one, since it has fewer retries by now (1)",
	},
	{
		"dead by a shorter max_age before its retry",
		dispatcher.Options{},
		func(s *scene) job.Job {
			j := s.add("orders", "a", "/500", retries(time.Hour))
			s.attempted(j, 1)
			s.put("orders", policy.Topic{MaxAge: time.Minute})
			return j
		}, job.ObstacleEnd, time.Hour,
		"Will be dead (max_age) without another attempt: its max_age is 1m. PATCH /v1/topics/orders to set",
	},
	{
		"expired before the breaker's cooldown ends", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: 20 * time.Minute}})
			s.attempted(s.add("orders", "a", "/refused", retries(time.Millisecond)), 1)
			return s.add("orders", "a", "/ok", func(n *job.New) { n.ID, n.ExpiresIn = "soon", 10*time.Minute })
		}, job.ObstacleEnd, 10 * time.Minute, "PATCH /v1/jobs/soon to set a later expires_at",
	},
	{
		"retry beyond the ladder's end", dispatcher.Options{}, func(s *scene) job.Job {
			j := s.add("orders", "a", "/500", retries(time.Hour), func(n *job.New) { n.Retries = new(5) })
			s.attempted(j, 1)
			return j
		}, job.ObstacleRetry, time.Hour, "failed attempt 1 of 6 for rung 1 of 1 (1h)",
	},
	{
		"retry after the receiver's longer Retry-After", dispatcher.Options{}, func(s *scene) job.Job {
			j := s.add("orders", "a", "/later", retries(10*time.Minute))
			s.attempted(j, 1)
			return j
		}, job.ObstacleRetry, 10 * time.Minute, "failed attempt 1 of 2",
	},
	{
		"retry without a URL",
		dispatcher.Options{},
		func(s *scene) job.Job {
			s.put("orders", policy.Topic{Deliver: policy.DeliverPull})
			j := s.order(s.t, retries(time.Hour), func(n *job.New) { n.Lane = "a" })
			s.put("orders", policy.Topic{})
			s.attempted(j, 1)
			return j
		}, job.ObstacleRetry, time.Hour,
		"so the next attempt fails, too: PATCH /v1/topics/orders or /v1/topics/orders/lanes/a to set a url",
	},
	{
		"retry of a pulled job", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{})
			j := s.add("orders", "a", "/500", retries(time.Hour))
			s.attempted(j, 1)
			s.put("orders", policy.Topic{Deliver: policy.DeliverPull})
			return j
		}, job.ObstacleRetry, time.Hour, "or for as long as its consumer asked for",
	},
	{
		"topic paused",
		dispatcher.Options{},
		func(s *scene) job.Job {
			s.put("orders", policy.Topic{Paused: true, Pause: policy.Pause{
				At: time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC), By: "ops-anna", Note: "receiver moves",
			}})
			return s.add("orders", "a", "/ok")
		}, job.ObstacleTopicPaused, 0,
		"Topic orders is paused since 2030-01-31T08:00:00.000Z by ops-anna (receiver moves): " +
			"POST /v1/topics/orders/resume",
	},
	{
		"topic paused, of a job due later", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Paused: true})
			return s.add("orders", "a", "/ok", hourDelay)
		}, job.ObstacleTopicPaused, 0, "POST /v1/topics/orders/resume",
	},
	{
		"lane paused", dispatcher.Options{}, func(s *scene) job.Job {
			s.putLane("a", policy.Lane{Paused: true, Pause: policy.Pause{Note: "moves"}})
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLanePaused, 0, "Lane a of topic orders is paused (moves): POST /v1/topics/orders/lanes/a/resume",
	},
	{
		"lane at the lane_concurrency of its topic",
		dispatcher.Options{},
		func(s *scene) job.Job {
			s.put("orders", policy.Topic{LaneConcurrency: 1})
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLaneFull, 0,
		"lane_concurrency of 1: the job follows when an attempt ends, and PATCH /v1/topics/orders raises",
	},
	{
		"lane at its own lower limit",
		dispatcher.Options{},
		func(s *scene) job.Job {
			s.put("orders", policy.Topic{LaneConcurrency: 3})
			s.putLane("a", policy.Lane{LaneConcurrency: 2})
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLaneFull, 0,
		"lane_concurrency of 2: the job follows when an attempt ends, and PATCH /v1/topics/orders/lanes/a raises",
	},
	{
		"behind a running job of an ordered lane", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Ordered: true})
			first := s.add("orders", "a", "/hang", func(n *job.New) { n.ID = "first" })
			s.inState(first, job.Running)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleOrder, 0, "Lane a is ordered, and job first has to end first: it is running.",
	},
	{
		"behind a failed job of an ordered lane", dispatcher.Options{}, func(s *scene) job.Job {
			s.putLane("a", policy.Lane{Ordered: true})
			s.attempted(s.add("orders", "a", "/refused", retries(time.Hour), func(n *job.New) { n.ID = "first" }), 1)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleOrder, time.Hour, "job first has to end first: it waits for its next attempt. POST " +
			"/v1/jobs/first/run attempts it now, and DELETE /v1/jobs/first cancels",
	},
	{
		"topic at its workers", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Workers: 1})
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			return s.add("orders", "b", "/ok")
		}, job.ObstacleTopicFull, 0, "as a process makes of it (workers: 1)",
	},
	{
		"topic of pulled jobs", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Deliver: policy.DeliverPull})
			return s.add("orders", "a", "/ok")
		}, job.ObstacleWorker, 0, "waits for a client to lease it: POST /v1/topics/orders/lease",
	},
	{
		"topic that another program handles", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Deliver: policy.DeliverHandler})
			return s.add("orders", "a", "/ok")
		}, job.ObstacleWorker, 0, "waits for a Go program with a handler of topic orders",
	},
	{
		"lane's rate used up", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.inState(s.add("orders", "a", "/ok"), job.Delivered)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLaneRate, time.Hour, "Lane a has used up its lane_rate of 1/h",
	},
	{
		"lane's own rate used up", dispatcher.Options{}, func(s *scene) job.Job {
			s.putLane("a", policy.Lane{LaneRate: policy.Rate{Starts: 1, Per: 30 * time.Minute}})
			s.inState(s.add("orders", "a", "/ok"), job.Delivered)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLaneRate, 30 * time.Minute, "PATCH /v1/topics/orders/lanes/a raises the rate",
	},
	{
		"topic's rate used up", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.inState(s.add("orders", "a", "/ok"), job.Delivered)
			return s.add("orders", "b", "/ok")
		}, job.ObstacleTopicRate, time.Hour, "Topic orders has used up its rate of 1/h",
	},
	{
		"breaker open", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: 20 * time.Minute}})
			j := s.add("orders", "a", "/refused", retries(time.Millisecond))
			s.attempted(j, 1)
			return j
		}, job.ObstacleBreakerOpen, 20 * time.Minute, "The breaker of lane a is open",
	},
	{
		"breaker open, of a job due later", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: 20 * time.Minute}})
			s.attempted(s.add("orders", "a", "/refused", retries(time.Millisecond)), 1)
			return s.add("orders", "a", "/ok", hourDelay)
		}, job.ObstacleDue, time.Hour, "",
	},
	{
		"breaker half open, its probe in flight", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: time.Second}})
			probe := s.add("orders", "a", "/refused-then-hang", retries(time.Millisecond))
			s.attempted(probe, 1)
			j := s.add("orders", "a", "/ok", func(n *job.New) { n.Delay = 100 * time.Millisecond }) // after the probe
			s.inState(probe, job.Running)
			return j
		}, job.ObstacleBreakerHalfOpen, 0, "half open, and its probe is in flight",
	},
	{
		"breaker half open, without a probe", dispatcher.Options{Workers: 1}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Breaker: policy.Breaker{Failures: new(1), Open: time.Second}})
			j := s.add("orders", "a", "/refused", retries(time.Millisecond))
			s.attempted(j, 1)
			s.inState(s.add("orders", "b", "/hang"), job.Running)
			s.until("the end of the cooldown", func() bool { return s.wait(j).Until.IsZero() })
			return j
		}, job.ObstacleBreakerHalfOpen, 0, "the next attempt of the lane is its probe",
	},
	{
		"cooldown by Retry-After", dispatcher.Options{}, func(s *scene) job.Job {
			s.attempted(s.add("orders", "a", "/later"), 1)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleRetryAfter, 30 * time.Second, "The receiver of lane a asked for a pause (Retry-After)",
	},
	{
		"rate that ends after the cooldown", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.attempted(s.add("orders", "a", "/later"), 1)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleLaneRate, time.Hour, "",
	},
	{
		"topic's rate that ends after the cooldown", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			s.attempted(s.add("orders", "a", "/later"), 1)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleTopicRate, time.Hour, "Topic orders has used up its rate of 1/h",
	},
	{
		"topic's rate, in a lane at its limit", dispatcher.Options{}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}, LaneConcurrency: 1})
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			return s.add("orders", "a", "/ok")
		}, job.ObstacleTopicRate, time.Hour, "Topic orders has used up its rate of 1/h",
	},
	{
		"no process that delivers", dispatcher.Options{RegisterOnly: true}, func(s *scene) job.Job {
			return s.add("orders", "a", "/ok")
		}, job.ObstacleWorker, 0, "No process delivers now",
	},
	{
		"all workers of the process busy", dispatcher.Options{Workers: 1}, func(s *scene) job.Job {
			s.inState(s.add("orders", "a", "/hang"), job.Running)
			return s.add("bills", "b", "/ok")
		}, job.ObstacleWorker, 0, "All workers of this process are in use (1)",
	},
	{
		"behind others of its lane", dispatcher.Options{Workers: 64}, func(s *scene) job.Job {
			s.put("orders", policy.Topic{LaneConcurrency: 1000})
			var last job.Job
			for range 60 { // of which a lane that never answered gets a part of the workers
				last = s.add("orders", "a", "/hang")
			}
			return last
		}, job.ObstacleWorker, 0, "due jobs of lane a, which follow one another",
	},
}

// requireSentence requires that an obstacle is put into words, and that its remedy is the first request in these.
func requireSentence(t *testing.T, o *job.Obstacle) {
	t.Helper()
	require.NotContains(t, o.Detail(), "%!")
	require.Regexp(t, `^[A-Z].*[^.]\.$`, o.Detail())
	require.NotContains(t, o.Facts, "/v1/", "requests are hints")
	if o.Hint == "" {
		require.Zero(t, o.Remedy)
		return
	}
	require.Equal(t, o.Remedy.Request(), regexp.MustCompile(`[A-Z]+ /v1/[^ .]+`).FindString(o.Hint))
}

func testWait(t *testing.T, n int, empty store.Store) {
	c := waits[n]
	c.options.Store, c.options.Grace = empty, 100*time.Millisecond
	if !c.options.RegisterOnly {
		c.options.Deliverer = &receiver{answer: answerByPath}
	}
	s := &scene{start(t, c.options), t}
	began := time.Now()
	j := c.stage(s)
	var got *job.Obstacle
	s.until(string(c.code)+": "+c.detail, func() bool {
		if got = s.wait(j); got == nil {
			return false
		}
		t.Log(got.Code, got.Until, got.Detail())
		return got.Code == c.code && strings.Contains(got.Detail(), c.detail)
	})
	requireSentence(t, got)
	if c.in == 0 {
		require.Zero(t, got.Until)
		return
	}
	require.WithinRange(t, got.Until, began.Add(c.in*3/4), time.Now().Add(c.in*5/4))
	if c.code == job.ObstacleDue || c.code == job.ObstacleRetry {
		require.Equal(t, s.get(t, j.Ref()).DueAt, got.Until)
	}
	_ = s.stop()
}

func TestExplain_NamesWhatAJobWaitsFor(t *testing.T) {
	for n, c := range waits {
		t.Run(c.name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s store.Store) { testWait(t, n, s) })
		})
	}
}

// redisEngine is a Redis server, or one in this process.
type redisEngine struct {
	name, url string
	shards    int
}

// redisEngines starts a Redis server, and one in this process for make test-all.
func redisEngines(t *testing.T) []redisEngine {
	t.Helper()
	server := redisEngine{"server", redistest.Start(t).URL(), testkit.Of(4, 16)}
	all := []redisEngine{server, {"miniredis", "redis://" + miniredis.RunT(t).Addr(), 1}}
	return all[:testkit.Of(1, len(all))]
}

func TestExplain_NamesWhatAJobWaitsForOnRedis(t *testing.T) {
	for _, engine := range redisEngines(t) {
		for n, c := range waits {
			t.Run(engine.name+"/"+c.name, func(t *testing.T) {
				s, err := redis.Open(t.Context(), redis.Options{
					URL: engine.url, Shards: engine.shards, Prefix: fmt.Sprint("scene", n),
					Limits: policy.Builtin().Limits(), Logger: quiet,
				})
				require.NoError(t, err)
				testWait(t, n, s)
			})
		}
	}
}

func TestExplain_ComparesATopicsWorkersWithTheAttemptsOfTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		work := dispatcher.Options{
			Store: all, Deliverer: &receiver{answer: answerByPath},
			Workers: 1, Grace: time.Second,
		}
		s := &scene{start(t, work), t}
		other := start(t, work)
		front := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		s.put("orders", policy.Topic{Workers: 2})
		for _, lane := range []string{"a", "b"} { // one in each process
			s.inState(s.add("orders", lane, "/hang"), job.Running)
		}
		j := s.add("orders", "c", "/ok")
		for _, r := range []*fixture{s.fixture, other} {
			got := r.explain(t, j).WaitingFor
			require.Equal(t, job.ObstacleWorker, got.Code, got.Detail())
			require.Contains(t, got.Detail(), "All workers of this process are in use (1)")
		}
		got := front.explain(t, j).WaitingFor
		require.Equal(t, job.ObstacleWorker, got.Code)
		require.Contains(t, got.Detail(),
			"all processes together have 2 attempts of topic orders in flight, and each makes at most 2 (workers)")
	})
}

// explain returns the explanation of a job as it is now.
func (r *fixture) explain(t *testing.T, j job.Job) *job.Explanation {
	t.Helper()
	found := r.get(t, j.Ref())
	return r.Explain(t.Context(), &found)
}

func TestExplain_NamesTheSecretThatCannotBeOpened(t *testing.T) {
	secret := map[string][]string{"Authorization": {"Bearer 42"}}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, r *fixture)
		change  func(*job.New)
		detail  string
	}{
		"signing secret of the topic": {
			prepare: func(t *testing.T, r *fixture) {
				_, err := r.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
				require.NoError(t, err)
			},
			detail: "A signing secret of topic orders is not readable",
		},
		"signing secret of the lane": {
			prepare: func(t *testing.T, r *fixture) {
				_, err := r.AddSecret(t.Context(), ofLane, sign.NewSecret(), store.ChangeOptions{})
				require.NoError(t, err)
			},
			detail: "A signing secret of lane customer-42 of topic orders is not readable",
		},
		"secret header of the job": {
			change: func(n *job.New) { n.Header = secret },
			detail: "The secret header Authorization of the job is not readable",
		},
		"secret header of the lane": {
			prepare: func(t *testing.T, r *fixture) {
				_, err := r.ChangeLane(t.Context(), ofLane, store.ChangeOptions{},
					func(l *policy.Lane) error { l.Headers = secret; return nil })
				require.NoError(t, err)
			},
			detail: "The secret header Authorization of lane customer-42 of topic orders is not readable",
		},
		"secret header of the topic": {
			prepare: func(t *testing.T, r *fixture) {
				_, err := r.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
					func(p *policy.Topic) error { p.Headers = secret; return nil })
				require.NoError(t, err)
			},
			detail: "The secret header Authorization of topic orders is not readable",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				all := model()
				first := start(t, dispatcher.Options{Store: all, RegisterOnly: true, Seal: box(t, 1)})
				if c.prepare != nil {
					c.prepare(t, first)
				}
				n := job.New{Spec: job.Spec{Queue: ofLane, URL: "https://shop.example/hook"}}
				if c.change != nil {
					c.change(&n)
				}
				j := first.register(t, n)
				later := first.register(t, job.New{Spec: n.Spec, Delay: time.Hour})
				require.Equal(t, job.ObstacleWorker, first.explain(t, j).WaitingFor.Code)

				second := start(t,
					dispatcher.Options{Store: all, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 2)})
				// the lane is in the cooldown after a second attempt that could not be made
				time.Sleep(15 * time.Second)
				synctest.Wait()
				for _, j := range []job.Job{j, later} {
					got := second.explain(t, j).WaitingFor
					require.Equal(t, job.ObstacleSecret, got.Code)
					require.Contains(t, got.Detail(), c.detail)
					require.Contains(t, got.Detail(), seal.Setting)
					require.Zero(t, got.Until)
				}
				keyless := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
				require.NotEqual(t, job.ObstacleSecret, keyless.explain(t, later).WaitingFor.Code,
					"a process that only registers needs no key")
				due := keyless.register(t, job.New{Spec: job.Spec{Queue: ofLane, URL: "https://shop.example/hook"}})
				for _, j := range []job.Job{j, due} {
					got := keyless.explain(t, j).WaitingFor
					require.Equal(t, job.ObstacleCooldown, got.Code,
						"the receiver, which was never called, is not blamed")
					require.Contains(t, got.Detail(), "settings or secrets of an attempt were not readable")
				}
				held, err := keyless.TroubledLanes(t.Context(),
					store.TroubledFilter{Namespace: job.DefaultNamespace, Limit: 1})
				require.NoError(t, err)
				require.Len(t, held.Lanes, 1)
				require.Equal(t, job.ObstacleCooldown, held.Lanes[0].Reasons[0].Code)
			})
		})
	}
}

func TestExplain_ConsumersNeedNoSecretsOfReceivers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		first := start(t, dispatcher.Options{Store: all, RegisterOnly: true, Seal: box(t, 1)})
		secret := map[string][]string{"Authorization": {"Bearer 1"}}
		_, err := first.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		_, err = first.ChangeLane(t.Context(), ofLane, store.ChangeOptions{},
			func(l *policy.Lane) error { l.Headers = secret; return nil })
		require.NoError(t, err)
		plain := first.register(t, job.New{Spec: job.Spec{Queue: ofLane}})
		own := first.register(t,
			job.New{Spec: job.Spec{Queue: ofLane, Header: map[string][]string{"X-Api-Key": {"k"}}}})
		second := start(t, dispatcher.Options{Store: all, Deliverer: &receiver{answer: status(200)}, Seal: box(t, 2)})
		for deliver, detail := range map[policy.Deliver][2]string{
			policy.DeliverPull:    {"waits for a client", "waits for a client"},
			policy.DeliverHandler: {"if none runs, start one", "The secret header X-Api-Key of the job"},
		} {
			_, err := first.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
				func(p *policy.Topic) error { p.Deliver = deliver; return nil })
			require.NoError(t, err)
			time.Sleep(15 * time.Second) // the cooldown after an attempt that could not be made is over
			require.Contains(t, second.explain(t, plain).WaitingFor.Detail(), detail[0])
			require.Contains(t, second.explain(t, own).WaitingFor.Detail(), detail[1])
		}
	})
}

func TestExplain_AnotherSecretIsNotNeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		first := start(t, dispatcher.Options{Store: all, RegisterOnly: true, Seal: box(t, 1)})
		_, err := first.AddSecret(t.Context(), ofTopic, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		_, err = first.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.Headers = map[string][]string{"Authorization": {"Bearer 1"}}
				return nil
			})
		require.NoError(t, err)
		second := start(t, dispatcher.Options{Store: all, RegisterOnly: true, Seal: box(t, 2)})
		_, err = second.AddSecret(t.Context(), ofLane, sign.NewSecret(), store.ChangeOptions{})
		require.NoError(t, err)
		j := second.register(t, job.New{Spec: job.Spec{
			Queue: ofLane, URL: "https://shop.example/hook", Header: map[string][]string{"Authorization": {"Bearer 2"}},
		}})
		require.Equal(t, job.ObstacleWorker, second.explain(t, j).WaitingFor.Code,
			"the lane's secret and the job's header replace the topic's")
	})
}

func TestExplain_UnreadableSettingsAreAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		first := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		_, err := first.PutTopic(t.Context(), store.Topic{
			Namespace: job.DefaultNamespace, Name: "bad", Policy: policy.Topic{URL: "https://topic.example/"},
		})
		require.NoError(t, err)
		_, err = first.ChangeLane(t.Context(), ofLane, store.ChangeOptions{},
			func(l *policy.Lane) error { l.LaneConcurrency = 2; return nil })
		require.NoError(t, err)
		ofBad := job.Queue{Namespace: job.DefaultNamespace, Topic: "bad", Lane: "any"}
		damaged := &damagedSettings{Store: all, damaged: map[store.DocumentKey]bool{}}
		damaged.damage(store.DocumentKey{Kind: store.KindTopic, Namespace: job.DefaultNamespace, Name: "bad"},
			store.LaneKey(ofLane))
		r := start(t, dispatcher.Options{Store: damaged, Deliverer: &receiver{answer: status(200)}})
		for q, detail := range map[job.Queue]string{
			ofBad:  "The policy of topic bad is not readable",
			ofLane: "The settings of lane customer-42 of topic orders are not readable",
		} {
			j := first.register(t, job.New{Spec: job.Spec{Queue: q, URL: "https://shop.example/"}})
			time.Sleep(15 * time.Second)
			got := r.explain(t, j)
			require.Equal(t, "paused", got.WaitingFor.Code.Kind(), detail)
			require.Contains(t, got.WaitingFor.Detail(), detail)
			require.Nil(t, got.Effective)
		}
	})
}

func TestExplain_EffectiveIsTheJobsOverTheLanesOverTheTopics(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		bare := job.New{Spec: job.Spec{Queue: ofLane}, Delay: time.Hour}
		_, err := r.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.URL, p.Timeout = "https://topic.example/", 7*time.Second
				p.Ladder = policy.Ladder{time.Minute, time.Hour}
				return nil
			})
		require.NoError(t, err)
		got := r.Register(t.Context(), []job.New{bare})[0]
		require.NoError(t, got.Err)
		x := r.explain(t, got.Job).Effective
		require.Equal(t, "https://topic.example/", x.URL)
		require.Equal(t, policy.Ladder{time.Minute, time.Hour}, x.Terms.Ladder)
		require.Equal(t, 7*time.Second, x.Terms.Timeout)
		require.Equal(t, 2, *x.Terms.Retries)
		require.Equal(t, 2, x.RetriesLeft)
		require.Equal(t, 25*time.Hour+time.Minute, x.Terms.MaxAge)
		require.Equal(t, policy.Builtin().GiveUpOn, x.Terms.GiveUpOn)

		_, err = r.ChangeLane(t.Context(), ofLane, store.ChangeOptions{},
			func(l *policy.Lane) error { l.URL = "https://lane.example/"; return nil })
		require.NoError(t, err)
		require.Equal(t, "https://lane.example/", r.explain(t, got.Job).Effective.URL)

		own := r.register(t, job.New{Spec: job.Spec{
			Queue: ofLane, URL: "https://job.example/",
			Terms: policy.Terms{Ladder: policy.Ladder{time.Second}, Timeout: time.Second},
		}, Delay: time.Hour})
		x = r.explain(t, own).Effective
		require.Equal(t, "https://job.example/", x.URL)
		require.Equal(t, policy.Ladder{time.Second}, x.Terms.Ladder)
		require.Equal(t, time.Second, x.Terms.Timeout)
		require.Equal(t, 1, x.RetriesLeft)
		require.NoError(t, r.stop())
	})
}

func TestExplain_SeesSettingsThatAnotherProcessHasJustPut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		front := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		other := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		j := front.register(t, job.New{Spec: job.Spec{Queue: ofLane}, Delay: time.Hour})
		require.Equal(t, job.ObstacleDue, front.explain(t, j).WaitingFor.Code)
		_, err := other.ChangeTopic(t.Context(), ofTopic.Namespace, ofTopic.Topic, store.ChangeOptions{},
			func(p *policy.Topic) error { p.Paused = true; return nil })
		require.NoError(t, err)
		require.Equal(t, job.ObstacleTopicPaused, front.explain(t, j).WaitingFor.Code)
	})
}

func TestExplain_CountsTheRetriesLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		terms := policy.Terms{Ladder: policy.Ladder{10 * time.Minute}, Retries: new(2)}
		j := r.register(t, job.New{Spec: job.Spec{Terms: terms}})
		for _, left := range []int{1, 0} {
			time.Sleep(2 * time.Minute)
			require.Equal(t, left, r.explain(t, j).Effective.RetriesLeft)
			require.Equal(t, left+1, rec.calls()[len(rec.calls())-1].RetriesLeft,
				"as the attempt's header counted before it")
			time.Sleep(11 * time.Minute)
		}
		time.Sleep(11 * time.Minute)
		require.Equal(t, job.Dead, r.get(t, j.Ref()).State)
		require.Nil(t, r.explain(t, j), "an ended job needs no explanation")
	})
}

func TestExplain_ARunningJobWaitsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: answerByPath}})
		j := r.register(t,
			job.New{Spec: job.Spec{URL: "https://shop.example/hang", Terms: policy.Terms{Timeout: time.Hour}}})
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, job.Running, r.get(t, j.Ref()).State)
		got := r.explain(t, j)
		require.Nil(t, got.WaitingFor)
		require.Equal(t, "https://shop.example/hang", got.Effective.URL)
	})
}

// failingReads is a store whose reads for an explanation fail or hang.
type failingReads struct {
	store.Store
	settings, states atomic.Bool
	hang             bool
}

func (f *failingReads) fail(ctx context.Context, when *atomic.Bool) error {
	switch {
	case !when.Load():
		return nil
	case f.hang:
		<-ctx.Done()
		return context.Cause(ctx)
	}
	return store.ErrUnavailable
}

func (f *failingReads) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if err := f.fail(ctx, &f.settings); err != nil {
		return store.Changes{}, err
	}
	return f.Store.ListChanges(ctx, kind, since)
}

func (f *failingReads) Shards() []store.Shard {
	return storetest.WrapShards(f.Store, func(_ int, next store.Shard) store.Shard { return failingStates{next, f} })
}

type failingStates struct {
	store.Shard
	of *failingReads
}

func (s failingStates) QueueState(ctx context.Context, q job.Queue) (store.QueueState, error) {
	if err := s.of.fail(ctx, &s.of.states); err != nil {
		return store.QueueState{}, err
	}
	return s.Shard.QueueState(ctx, q)
}

func TestExplain_LogsFailuresNowAndThenAndNotThoseOfCallersWhoLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := new(testkit.Log)
		reads := &failingReads{Store: model()}
		reads.settings.Store(true)
		d, err := dispatcher.New(dispatcher.Options{
			Store: reads, RegisterOnly: true,
			Logger: slog.New(slog.NewTextHandler(log, nil)),
		})
		require.NoError(t, err)
		left, leave := context.WithCancel(t.Context())
		leave()
		require.Nil(t, d.Explain(left, &job.Job{}))
		require.Empty(t, log.String())
		for range 3 {
			require.Nil(t, d.Explain(t.Context(), &job.Job{}))
		}
		require.Equal(t, 1, strings.Count(log.String(), "explaining a job failed"))
		time.Sleep(10 * time.Second)
		require.Nil(t, d.Explain(t.Context(), &job.Job{}))
		require.Contains(t, log.String(), "suppressed=2")
	})
}

func TestExplain_NeverFailsAndNeverHangs(t *testing.T) {
	for _, hang := range []bool{false, true} {
		t.Run(fmt.Sprint("hang ", hang), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reads := &failingReads{Store: model(), hang: hang}
				r := start(t, dispatcher.Options{Store: reads, RegisterOnly: true})
				j := r.register(t, job.New{Delay: time.Hour})
				began := time.Now()
				reads.states.Store(true)
				got := r.explain(t, j)
				require.NotNil(t, got.Effective, "the settings are readable")
				require.Nil(t, got.WaitingFor)
				reads.settings.Store(true)
				require.Nil(t, r.explain(t, j))
				require.LessOrEqual(t, time.Since(began), 4*time.Second)
			})
		})
	}
}
