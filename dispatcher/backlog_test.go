package dispatcher_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// putBacklog sets on_backlog of the topic orders; nil: none. Its jobs wait while it is paused.
func putBacklog(t *testing.T, r *fixture, alarm *policy.Backlog, paused bool) {
	t.Helper()
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
		func(p *policy.Topic) error {
			p.OnBacklog, p.Paused = alarm, paused
			return nil
		})
	require.NoError(t, err)
}

func moreThan(n int64) *policy.Backlog {
	return &policy.Backlog{Callback: policy.Callback{URL: "https://callback.example/backlog"}, MoreThan: n}
}

// registerOrders registers jobs of orders.
func (r *fixture) registerOrders(t *testing.T, n int, delay time.Duration) {
	t.Helper()
	for range n {
		r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}}, Delay: delay})
	}
}

// callbackTypes returns the types of the received callbacks, in order.
func callbackTypes(t *testing.T, rec *receiver) []any {
	t.Helper()
	types := []any{}
	for _, c := range rec.callbacks() {
		types = append(types, decoded(t, c)["type"])
	}
	return types
}

const (
	raised = "topic.backlog"
	over   = "topic.backlog_over"
)

func TestBacklog_TooManyJobsSendOneCallbackAndOneWhenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		putBacklog(t, r, moreThan(4), true)
		time.Sleep(11 * time.Second)
		r.registerOrders(t, 4, 0)
		time.Sleep(500 * time.Millisecond)
		r.registerOrders(t, 1, 20*time.Minute)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		c := rec.callbacks()[0]
		golden(t, "topic_backlog.json", c)
		require.Equal(t, "https://callback.example/backlog", c.URL)
		require.Equal(t, "POST", c.Method)
		require.Equal(t, job.KindBacklog, r.get(t, c.Ref).Kind)

		r.registerOrders(t, 300, 20*time.Minute)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec), "more of it is nothing new")
		putBacklog(t, r, moreThan(4), false)
		time.Sleep(5 * time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec), "hundreds wait for their time")
		time.Sleep(20 * time.Minute)
		require.Equal(t, []any{raised, over}, callbackTypes(t, rec))
		body := decoded(t, rec.callbacks()[1])
		require.Nil(t, body["oldest_due_at"])
		require.EqualValues(t, 0, body["unfinished"])

		putBacklog(t, r, moreThan(4), true)
		r.registerOrders(t, 5, 0)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, over, raised}, callbackTypes(t, rec), "it can come again")
	})
}

func TestBacklog_OldJobsSendACallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		alarm := &policy.Backlog{
			Callback:  policy.Callback{URL: "https://callback.example/"},
			OlderThan: 2 * time.Minute,
		}
		putBacklog(t, r, alarm, true)
		r.registerOrders(t, 1, time.Hour)
		time.Sleep(time.Hour + time.Minute)
		require.Empty(t, callbackTypes(t, rec), "a job that waits for its time is not old")
		time.Sleep(time.Minute + 10*time.Second)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		require.Equal(t, "2m", decoded(t, rec.callbacks()[0])["older_than"])
		putBacklog(t, r, alarm, false)
		time.Sleep(15 * time.Second)
		require.Equal(t, []any{raised, over}, callbackTypes(t, rec))
	})
}

// The alarm's state is in the store: neither another process nor a lost reply sends it again.
func TestBacklog_SendsOneCallbackOverAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		var mu sync.Mutex
		alarms := 0
		flaky := storetest.Faulty(s, func(method string) storetest.Fault {
			mu.Lock()
			defer mu.Unlock()
			if method == "Alarm" {
				if alarms++; alarms%2 == 0 {
					return storetest.LostReply
				}
			}
			return storetest.None
		})
		first := start(t, dispatcher.Options{Store: flaky, Deliverer: rec})
		second := start(t, dispatcher.Options{Store: flaky, Deliverer: rec})
		putBacklog(t, first, moreThan(2), true)
		first.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		require.NoError(t, first.stop())
		time.Sleep(time.Minute)
		third := start(t, dispatcher.Options{Store: flaky, Deliverer: rec})
		time.Sleep(time.Minute)
		require.NoError(t, second.stop())
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		putBacklog(t, third, moreThan(2), false)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, over}, callbackTypes(t, rec))
		require.NoError(t, third.stop())
		start(t, dispatcher.Options{Store: flaky, Deliverer: rec})
		time.Sleep(10 * time.Minute)
		require.Equal(t, []any{raised, over}, callbackTypes(t, rec))
	})
}

func TestBacklog_RemovedAlarmSendsNothingAndResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		putBacklog(t, r, moreThan(2), true)
		r.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		putBacklog(t, r, nil, true)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		other := moreThan(2)
		other.URL = "https://other.example/"
		putBacklog(t, r, other, true)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, raised}, callbackTypes(t, rec),
			"the backlog lasts, and the new receiver had no callback")
		require.Equal(t, "https://other.example/", rec.callbacks()[1].URL)

		putBacklog(t, r, nil, false)
		time.Sleep(time.Minute)
		putBacklog(t, r, other, false)
		time.Sleep(time.Minute)
		require.Len(t, rec.callbacks(), 2, "no callback for the end of an unreported backlog")
	})
}

// statsCounter counts reads of topic stats.
type statsCounter struct {
	store.Store
	stats, alarms atomic.Int32
}

func (a *statsCounter) Shards() []store.Shard {
	return storetest.WrapShards(a.Store,
		func(_ int, next store.Shard) store.Shard { return statsCounterShard{next, a} })
}

type statsCounterShard struct {
	store.Shard
	*statsCounter
}

func (s statsCounterShard) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	s.stats.Add(1)
	return s.Shard.TopicStats(ctx, f)
}

func (s statsCounterShard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	s.alarms.Add(1)
	return s.Shard.Alarm(ctx, token, alarm)
}

func TestBacklog_CostsNothingWithoutOnBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statsCounter{Store: model()}
		first := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		putBacklog(t, first, nil, true)
		first.registerOrders(t, 10, 0)
		time.Sleep(2 * time.Minute) // the leading process may not see the topic before it reloads the policies
		require.EqualValues(t, 1, s.alarms.Load(), "the leading process clears the alarm once")
		reset := func() { s.stats.Store(0); s.alarms.Store(0) }
		reset()
		time.Sleep(10 * time.Minute)
		require.Zero(t, s.stats.Load())
		require.Zero(t, s.alarms.Load())
		putBacklog(t, first, moreThan(100), true)
		reset()
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 120, s.stats.Load(), 10, "the leading process checks every five seconds")
		require.EqualValues(t, 1, s.alarms.Load(), "what did not change is confirmed once")
	})
}

// A former carrier's call may come after that of the present one, which knows its own.
func TestBacklog_IsRaisedAgainAfterALateCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		first := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		putBacklog(t, first, moreThan(5), true)
		first.registerOrders(t, 10, time.Hour)
		clearAlarm := func() (wasRaised bool) {
			for _, shard := range s.Shards() {
				changed, err := shard.Alarm(t.Context(), store.NewToken(),
					store.Alarm{Namespace: "default", Topic: "orders"})
				require.NoError(t, err)
				wasRaised = wasRaised || changed
			}
			return wasRaised
		}
		for !clearAlarm() {
			time.Sleep(time.Second)
		}
		time.Sleep(time.Minute)
		require.True(t, clearAlarm(), "no callback would come")
	})
}

func TestBacklog_ChecksTopicsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &statsCounter{Store: model()}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		for i := range 50 {
			_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, fmt.Sprint("topic-",
				i), store.ChangeOptions{}, func(p *policy.Topic) error {
				p.OnBacklog = moreThan(2)
				return nil
			})
			require.NoError(t, err)
		}
		time.Sleep(11 * time.Second)
		s.stats.Store(0)
		time.Sleep(10 * time.Minute)
		require.InDelta(t, 120, s.stats.Load(), 10)
	})
}

func TestBacklog_FluctuationSendsOneCallback(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		putBacklog(t, r, moreThan(2), true)
		r.registerOrders(t, 2, time.Hour)
		time.Sleep(2 * time.Second) // between two checks
		for range 50 {
			r.registerOrders(t, 1, time.Hour)
			time.Sleep(5 * time.Second)
			page, err := r.List(t.Context(), store.Filter{
				Namespace: job.DefaultNamespace, Topic: "orders", Limit: 1,
			})
			require.NoError(t, err)
			_, err = r.Cancel(t.Context(), page.Jobs[0].Ref(), store.Cancellation{})
			require.NoError(t, err)
			time.Sleep(5 * time.Second)
		}
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		time.Sleep(15 * time.Second)
		require.Equal(t, []any{raised, over}, callbackTypes(t, rec))
	})
}

// A callback about a backlog of callbacks would add to that backlog.
func TestBacklog_OfCallbacksSendsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, job.CallbackTopic, store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.OnBacklog = &policy.Backlog{
					Callback:  policy.Callback{URL: "https://callback.example/"},
					OlderThan: time.Second, MoreThan: 1,
				}
				return nil
			})
		require.NoError(t, err)
		putBacklog(t, r, moreThan(2), true)
		r.registerOrders(t, 3, 0)
		r.register(t, job.New{Spec: job.Spec{
			Queue: job.Queue{Topic: "others"},
			Terms: policy.Terms{Retries: new(0), OnDead: &policy.Callback{URL: "https://dead.example/"}},
		}})
		time.Sleep(time.Minute)
		stats, err := r.Stats(t.Context(), job.DefaultNamespace, job.CallbackTopic)
		require.NoError(t, err)
		require.EqualValues(t, 2, stats[0].Registered, "of the job that died, and of the backlog of orders")
	})
}

// The leader that clears an alarm may be another process than the one that raised it.
func TestBacklog_AlarmRemovedWithoutALeaderResets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		first := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		putBacklog(t, first, moreThan(2), true)
		first.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		require.NoError(t, first.stop())
		front := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		putBacklog(t, front, nil, true)
		start(t, dispatcher.Options{Store: s, Deliverer: rec})
		time.Sleep(time.Minute)
		putBacklog(t, front, moreThan(2), true)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, raised}, callbackTypes(t, rec))
	})
}

func TestBacklog_NewReceiverGetsALastingBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		putBacklog(t, r, moreThan(2), true)
		r.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		other := moreThan(2)
		other.URL = "https://other.example/"
		putBacklog(t, r, other, true)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, raised}, callbackTypes(t, rec))
		require.Equal(t, "https://other.example/", rec.callbacks()[1].URL)
		putBacklog(t, r, other, false)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, raised, over}, callbackTypes(t, rec))
	})
}

func TestBacklog_NewReceiverGetsALastingBacklogAfterAFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int32 // unchanged, raised, confirmed, cleared for the new receiver
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{
			Deliverer: rec,
			Store: storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}), func(method string) storetest.Fault {
				if method != "Alarm" {
					return storetest.None
				}
				if calls.Add(1) != 4 {
					return storetest.None
				}
				return storetest.Before
			}),
		})
		putBacklog(t, r, moreThan(2), true)
		time.Sleep(11 * time.Second)
		r.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		other := moreThan(2)
		other.URL = "https://other.example/"
		putBacklog(t, r, other, true)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised, raised}, callbackTypes(t, rec))
		require.Equal(t, "https://other.example/", rec.callbacks()[1].URL)
		require.Greater(t, calls.Load(), int32(4))
	})
}

// unreadableStats is a store whose counts cannot be read.
type unreadableStats struct{ store.Store }

func (b unreadableStats) Shards() []store.Shard {
	return storetest.WrapShards(b.Store,
		func(_ int, next store.Shard) store.Shard { return unreadableStatsShard{next, b} })
}

type unreadableStatsShard struct {
	store.Shard
	unreadableStats
}

func (unreadableStatsShard) TopicStats(context.Context, store.StatsFilter) ([]store.TopicStats, error) {
	return nil, &store.UnavailableError{Reason: "it is away"}
}

func TestBacklog_FailedChecksDoNotFloodTheLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		r, written := startLogged(t,
			dispatcher.Options{Store: unreadableStats{s}, Deliverer: &receiver{answer: status(200)}})
		for i := range 10 {
			_, err := store.PutTopic(t.Context(), s, store.Topic{
				Namespace: job.DefaultNamespace, Name: fmt.Sprint("topic-", i),
				Policy: policy.Topic{OnBacklog: moreThan(2)},
			})
			require.NoError(t, err)
		}
		time.Sleep(time.Hour)
		logged := strings.Count(written.String(), "backlog check failed")
		require.NotZero(t, logged)
		require.Less(t, logged, 15)
		require.NoError(t, r.stop())
	})
}

// A leading process without claims sees no new revision, and must find a new on_backlog all the same.
func TestBacklog_IsCheckedByAProcessThatClaimsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, rec := model(), &receiver{answer: status(200)}
		start(t, dispatcher.Options{Store: s, Deliverer: rec})
		time.Sleep(10 * time.Second)
		front := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		putBacklog(t, front, moreThan(2), true)
		front.registerOrders(t, 3, time.Hour)
		time.Sleep(45 * time.Second)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
	})
}

func TestBacklog_ComesAgainAfterAnUnknownOutcome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var over atomic.Bool // the alarm is cleared, and the process does not know
		calls := 0           // unchanged, raised, cleared
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{
			Deliverer: rec,
			Store: storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}), func(method string) storetest.Fault {
				if method != "Alarm" {
					return storetest.None
				}
				if calls++; calls != 3 {
					return storetest.None
				}
				over.Store(true)
				return storetest.LostReply
			}),
		})
		putBacklog(t, r, moreThan(4), true)
		time.Sleep(11 * time.Second)
		r.registerOrders(t, 5, 0)
		time.Sleep(30 * time.Second)
		require.Len(t, callbackTypes(t, rec), 1)
		putBacklog(t, r, moreThan(4), false)
		for range 60 {
			if time.Sleep(time.Second); over.Load() {
				break
			}
		}
		require.True(t, over.Load())
		putBacklog(t, r, moreThan(4), true)
		r.registerOrders(t, 5, 0)
		time.Sleep(time.Minute)
		require.Len(t, callbackTypes(t, rec), 3)
	})
}

func TestBacklog_ComesAgainAfterAnotherCarrierClearedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fails atomic.Bool // the next round, and with it the term as the carrier
		s, rec := model(), &receiver{answer: status(200)}
		faulty := storetest.Faulty(s, func(method string) storetest.Fault {
			if method == "Carry" && fails.CompareAndSwap(true, false) {
				_, err := s.Shards()[0].Alarm(t.Context(), store.NewToken(),
					store.Alarm{Namespace: job.DefaultNamespace, Topic: "orders"})
				require.NoError(t, err)
				return storetest.Before
			}
			return storetest.None
		})
		r := start(t, dispatcher.Options{Deliverer: rec, Store: faulty})
		putBacklog(t, r, moreThan(2), true)
		r.registerOrders(t, 3, 0)
		time.Sleep(time.Minute)
		require.Equal(t, []any{raised}, callbackTypes(t, rec))
		fails.Store(true)
		time.Sleep(time.Minute)
		require.False(t, fails.Load())
		require.Equal(t, []any{raised, raised}, callbackTypes(t, rec))
	})
}
