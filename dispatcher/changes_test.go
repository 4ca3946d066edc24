package dispatcher_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis"
)

// changeTopic and changeLane change settings in one process.
func (r *fixture) changeTopic(t *testing.T, topic string, change func(*policy.Topic)) {
	t.Helper()
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, topic, store.ChangeOptions{},
		func(p *policy.Topic) error { change(p); return nil })
	require.NoError(t, err)
}

func (r *fixture) changeLane(t *testing.T, topic, lane string, change func(*policy.Lane)) {
	t.Helper()
	_, err := r.ChangeLane(t.Context(), job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane},
		store.ChangeOptions{},
		func(l *policy.Lane) error { change(l); return nil })
	require.NoError(t, err)
}

// withoutURL is a job that takes its URL from its lane or topic.
func withoutURL(topic, lane string) []job.New {
	return []job.New{{Spec: job.Spec{Queue: job.Queue{Topic: topic, Lane: lane}}}}
}

// testChangesAtOnce changes settings in one process. Another one, which knows the former ones, acts on the answer.
func testChangesAtOnce(t *testing.T, s store.Store) {
	sent := make(chan job.Request, 10)
	one := start(t, dispatcher.Options{Store: shared{s}, RegisterOnly: true})
	other := start(t, dispatcher.Options{
		Store: shared{s}, Declared: true, Deliverer: deliverFunc(func(_ context.Context, r job.Request) policy.Result {
			sent <- r
			return policy.Result{Status: 200, StartedAt: time.Now()}
		}),
	})
	register := func(topic, lane string) job.Job {
		t.Helper()
		got := other.Register(t.Context(), withoutURL(topic, lane))[0]
		require.NoError(t, got.Err)
		return got.Job
	}

	_, undeclared := errors.AsType[*job.UndeclaredTopicError](other.Register(t.Context(), withoutURL("a", ""))[0].Err)
	require.True(t, undeclared)
	one.changeTopic(t, "a", func(p *policy.Topic) { p.Headers = map[string][]string{"X-A": {"1"}} })
	_, invalid := errors.AsType[*job.InvalidError](other.Register(t.Context(), withoutURL("a", ""))[0].Err)
	require.True(t, invalid, "the topic is known, and has no URL")
	one.changeTopic(t, "a", func(p *policy.Topic) { p.URL = "https://one.example/" })
	register("a", "")
	require.Equal(t, "https://one.example/", (<-sent).URL)

	owner := job.Queue{Namespace: job.DefaultNamespace, Topic: "a"}
	_, err := one.AddSecret(t.Context(), owner, sign.NewSecret(), store.ChangeOptions{})
	require.NoError(t, err)
	one.changeTopic(t, "a", func(p *policy.Topic) {
		p.URL, p.Timeout, p.Headers = "https://two.example/", 7*time.Second, map[string][]string{"X-A": {"2"}}
	})
	require.NoError(t, one.Register(t.Context(), withoutURL("a", "b"))[0].Err)
	attempt := <-sent
	require.Equal(t, "https://two.example/", attempt.URL)
	require.Equal(t, []string{"2"}, attempt.Header["X-A"])
	require.Equal(t, 7*time.Second, attempt.Timeout)
	require.NotNil(t, attempt.Signer)
	one.changeLane(t, "a", "b", func(l *policy.Lane) { l.URL = "https://lane.example/" })
	register("a", "b")
	require.Equal(t, "https://lane.example/", (<-sent).URL)

	pulled := store.LeaseRequest{Namespace: job.DefaultNamespace, Topic: "a", Max: 1}
	lease := func(wait time.Duration) []store.LeasedJob {
		t.Helper()
		pulled.Wait = wait
		leased, err := other.Lease(t.Context(), pulled)
		require.NoError(t, err)
		return leased
	}
	_, err = other.Lease(t.Context(), pulled)
	_, pushed := errors.AsType[*store.NotPulledError](err)
	require.True(t, pushed, "%v", err)
	one.changeTopic(t, "a", func(p *policy.Topic) { p.Deliver = policy.DeliverPull })
	require.Empty(t, lease(0), "it is pulled, and has no jobs")
	for _, pause := range []func(paused bool){
		func(paused bool) { one.changeTopic(t, "a", func(p *policy.Topic) { p.Paused = paused }) },
		func(paused bool) { one.changeLane(t, "a", "b", func(l *policy.Lane) { l.Paused = paused }) },
	} {
		pause(true)
		registered := register("a", "b")
		require.Empty(t, lease(0))
		pause(false)
		leased := lease(time.Minute)
		require.Len(t, leased, 1)
		require.Equal(t, registered.ID, leased[0].ID)
	}

	for name, limit := range map[string]func(*policy.Topic){
		"rate":        func(p *policy.Topic) { p.LaneRate = policy.Rate{Starts: 1, Per: time.Hour} },
		"concurrency": func(p *policy.Topic) { p.LaneConcurrency = 1 },
		"ordered":     func(p *policy.Topic) { p.Ordered = true },
	} {
		one.changeTopic(t, name, func(p *policy.Topic) { p.Deliver = policy.DeliverPull })
		register(name, "x")
		register(name, "x")
		one.changeTopic(t, name, limit)
		pulled.Topic, pulled.Max = name, 2
		require.Len(t, lease(time.Minute), 1, name)
	}

	exists, err := other.HasNamespace(t.Context(), "shop")
	require.NoError(t, err)
	require.False(t, exists)
	_, err = one.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, 0)
	require.NoError(t, err)
	exists, err = other.HasNamespace(t.Context(), "shop")
	require.NoError(t, err)
	require.True(t, exists)
	_, text, err := one.CreateToken(t.Context(),
		access.Token{Name: "tester", Role: access.Read, Namespace: "shop"}, false)
	require.NoError(t, err)
	_, err = other.Authenticate(t.Context(), text)
	require.NoError(t, err)
	require.Empty(t, sent)
	require.NoError(t, other.stop())
	require.NoError(t, one.stop())
}

func TestChange_HoldsInAnotherProcessAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		testChangesAtOnce(t, s)
		require.NoError(t, s.Close())
	})
	for _, engine := range redisEngines(t) {
		t.Run(engine.name, func(t *testing.T) {
			s, err := redis.Open(t.Context(), redis.Options{
				URL: engine.url, Shards: engine.shards, Limits: policy.Builtin().Limits(), Logger: quiet,
			})
			require.NoError(t, err)
			testChangesAtOnce(t, s)
			require.NoError(t, s.Close())
		})
	}
}

// What other processes act on as they have read it, with the bounds that docs/operations.md gives.
func TestChange_HoldsInAnotherProcessWithinItsBound(t *testing.T) {
	for name, c := range map[string]struct {
		bound   time.Duration
		prepare func(t *testing.T, one *fixture) (change func())
		holds   func(t *testing.T, other *fixture) bool
	}{
		"the URL of a topic, for lanes": {3 * time.Second, func(t *testing.T, one *fixture) func() {
			one.changeTopic(t, "a", func(p *policy.Topic) { p.URL = "https://one.example/" })
			return func() { one.changeTopic(t, "a", func(p *policy.Topic) { p.URL = "https://two.example/" }) }
		}, func(t *testing.T, other *fixture) bool {
			got := other.Register(t.Context(), withoutURL("a", ""))[0]
			require.NoError(t, got.Err)
			return got.Job.Lane == "two.example:443"
		}},
		"a topic that is removed": {3 * time.Second, func(t *testing.T, one *fixture) func() {
			one.changeTopic(t, "a", func(p *policy.Topic) { p.URL = "https://one.example/" })
			return func() {
				_, err := one.DeleteTopic(t.Context(), store.TopicDeletion{
					Namespace: job.DefaultNamespace, Name: "a", Purge: true,
				})
				require.NoError(t, err)
			}
		}, func(t *testing.T, other *fixture) bool {
			return other.Register(t.Context(), withoutURL("a", ""))[0].Err != nil
		}},
		"a topic that is pulled no more": {3 * time.Second, func(t *testing.T, one *fixture) func() {
			one.changeTopic(t, "a", func(p *policy.Topic) { p.Deliver = policy.DeliverPull })
			return func() { one.changeTopic(t, "a", func(p *policy.Topic) { p.Deliver = policy.DeliverPush }) }
		}, func(t *testing.T, other *fixture) bool {
			_, err := other.Lease(t.Context(), store.LeaseRequest{
				Namespace: job.DefaultNamespace, Topic: "a", Max: 1,
			})
			return err != nil
		}},
		"the length of leases": {3 * time.Second, func(t *testing.T, one *fixture) func() {
			one.changeTopic(t, "a", func(p *policy.Topic) { p.Deliver = policy.DeliverPull })
			return func() { one.changeTopic(t, "a", func(p *policy.Topic) { p.Timeout = 70 * time.Second }) }
		}, func(t *testing.T, other *fixture) bool {
			require.NoError(t, other.Register(t.Context(), withoutURL("a", ""))[0].Err)
			leased, err := other.Lease(t.Context(), store.LeaseRequest{
				Namespace: job.DefaultNamespace, Topic: "a", Max: 1, Wait: time.Second,
			})
			require.NoError(t, err)
			require.Len(t, leased, 1)
			return leased[0].Until.Sub(leased[0].ClientLease.LeasedAt).Round(time.Second) == 70*time.Second
		}},
		"a quota": {5 * time.Second, func(t *testing.T, one *fixture) func() {
			put := func(pending int64) {
				_, err := one.PutNamespace(t.Context(),
					job.Namespace{Name: "shop", Quota: job.Quota{Pending: pending}}, 0)
				require.NoError(t, err)
			}
			put(10_000)
			_, err := one.ChangeTopic(t.Context(), "shop", job.DefaultTopic, store.ChangeOptions{},
				func(*policy.Topic) error { return nil })
			require.NoError(t, err)
			return func() { put(1) }
		}, func(t *testing.T, other *fixture) bool {
			n, _ := refused(t, other.Register(t.Context(), jobsIn("shop", job.NewID(time.Now(), 0), 1)))
			return n > 0
		}},
		"a namespace that is removed": {5 * time.Second, func(t *testing.T, one *fixture) func() {
			_, err := one.PutNamespace(t.Context(), job.Namespace{Name: "shop"}, 0)
			require.NoError(t, err)
			return func() {
				_, err := one.DeleteNamespace(t.Context(), store.NamespaceDeletion{Name: "shop"})
				require.NoError(t, err)
			}
		}, func(t *testing.T, other *fixture) bool {
			exists, err := other.HasNamespace(t.Context(), "shop")
			require.NoError(t, err)
			return !exists
		}},
	} {
		for use, every := range map[string]time.Duration{"in use": 10 * time.Millisecond, "idle": c.bound} {
			t.Run(name+", "+use, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					all := model()
					s := &slowTopicsStore{Store: all}
					one := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
					other := start(t, dispatcher.Options{
						Store: s, Declared: true, Deliverer: &receiver{answer: status(200)},
					})
					change := c.prepare(t, one)
					require.False(t, c.holds(t, other))
					time.Sleep(time.Second) // what it has registered is delivered: a topic with a running job stays
					s.takes.Store(int64(900 * time.Millisecond))
					change()
					for changed := time.Now(); ; {
						time.Sleep(every)
						called := time.Since(changed)
						if c.holds(t, other) {
							break
						}
						require.Less(t, called, c.bound)
					}
				})
			})
		}
	}
}
