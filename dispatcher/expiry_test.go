package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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

// startExpiring starts a dispatcher on a store, with a topic whose jobs have callbacks and a MaxAge of 20 s.
func startExpiring(t *testing.T, st store.Store, rec *receiver, p policy.Topic) *fixture {
	t.Helper()
	r := start(t, dispatcher.Options{Store: st, Deliverer: rec})
	p.OnDead = callbackTo("https://callback.example/")
	for _, name := range []string{"default", "old"} {
		_, err := r.PutTopic(t.Context(), store.Topic{Namespace: "default", Name: name, Policy: p})
		require.NoError(t, err)
		p.MaxAge = 20 * time.Second
	}
	return r
}

func TestExpiry_EndsABlockedJobWithinSeconds(t *testing.T) {
	hour := policy.Breaker{Failures: new(1), Open: time.Hour}
	for name, keep := range map[string]struct {
		policy policy.Topic
		answer policy.Result // to a job that comes first, if not zero
		pause  bool
	}{
		"a pause":        {policy: policy.Topic{Paused: true}},
		"a lane's pause": {pause: true},
		"a hold":         {answer: policy.Result{Status: 429, RetryAfter: time.Minute}},
		"an open breaker": {
			policy: policy.Topic{Breaker: hour}, answer: policy.Result{Class: policy.ClassRefused},
		},
		"a rate": {
			policy: policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}}, answer: policy.Result{Status: 204},
		},
		"a rate of a lane": {
			policy: policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: time.Hour}}, answer: policy.Result{Status: 204},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
					if r.Queue.Topic == job.CallbackTopic {
						return policy.Result{Status: 200}
					}
					return keep.answer
				}}
				r := startExpiring(t, nil, rec, keep.policy)
				for _, topic := range []string{"default", "old"} {
					if keep.pause {
						q := job.Queue{Namespace: "default", Topic: topic, Lane: "shop.example:443"}
						_, err := r.ChangeLane(t.Context(), q, store.ChangeOptions{},
							func(l *policy.Lane) error { l.Paused = true; return nil })
						require.NoError(t, err)
					}
					if keep.answer.Status+len(keep.answer.Class) > 0 {
						r.register(t, job.New{Spec: job.Spec{
							Queue: job.Queue{Topic: topic},
							Terms: policy.Terms{Ladder: policy.Ladder{time.Hour}},
						}})
					}
				}
				time.Sleep(2 * time.Second)
				before := len(rec.calls())
				expires := r.register(t, job.New{Spec: job.Spec{ID: "expires"}, ExpiresIn: 20 * time.Second})
				ages := r.register(t, job.New{Spec: job.Spec{ID: "ages", Queue: job.Queue{Topic: "old"}}})
				waits := r.register(t, job.New{Spec: job.Spec{ID: "waits"}})
				time.Sleep(19 * time.Second)
				for _, made := range []job.Job{expires, ages, waits} {
					require.False(t, r.get(t, made.Ref()).State.Ended(), made.ID)
				}
				time.Sleep(11 * time.Second)
				reasons := map[string]any{}
				for _, c := range rec.calls()[before:] {
					require.Equal(t, job.CallbackTopic, c.Queue.Topic, "no job is attempted")
					body := decoded(t, c)
					require.Nil(t, body["attempt"])
					require.EqualValues(t, 0, body["job"].(map[string]any)["attempts_made"])
					subject := body["job"].(map[string]any)
					reasons[subject["id"].(string)] = subject["reason"]
				}
				for ref, reason := range map[job.Ref]policy.Reason{
					expires.Ref(): policy.ReasonExpired, ages.Ref(): policy.ReasonMaxAge,
				} {
					got := r.get(t, ref)
					require.Equal(t, job.Dead, got.State)
					require.Equal(t, reason, got.Reason)
					require.Empty(t, got.History)
					require.Less(t, got.FinishedAt.Sub(got.CreatedAt), 30*time.Second)
					require.EqualValues(t, reason, reasons[ref.ID], "its callback is sent")
				}
				require.False(t, r.get(t, waits.Ref()).State.Ended())
			})
		})
	}
}

// A process that only registers caches the topics' max_age, and does not read it for each registration.
func TestExpiry_ComesFromTheTopicInEveryRole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readCounter{Store: storetest.NewModel(storetest.ModelOptions{})}
		r := startExpiring(t, s, &receiver{answer: statusByTopic(200)}, policy.Topic{Paused: true})
		front := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		s.topics.Store(0)
		var made []job.Job
		for range 100 {
			made = append(made, front.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "old"}}}))
			time.Sleep(100 * time.Millisecond)
		}
		require.LessOrEqual(t, s.topics.Load(), int32(11), "once a second")
		time.Sleep(30 * time.Second)
		for _, j := range made {
			require.Equal(t, policy.ReasonMaxAge, r.get(t, j.Ref()).Reason)
		}
	})
}

func TestExpiry_EndsARetryOfAPausedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(500)}
		r := startExpiring(t, nil, rec, policy.Topic{})
		terms := policy.Terms{Ladder: policy.Ladder{15 * time.Second}}
		expires := r.register(t, job.New{Spec: job.Spec{Terms: terms}, ExpiresIn: 20 * time.Second})
		ages := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "old"}, Terms: terms}})
		time.Sleep(10 * time.Second)
		for name, maxAge := range map[string]time.Duration{"default": 0, "old": 20 * time.Second} {
			_, err := r.PutTopic(t.Context(),
				store.Topic{Namespace: "default", Name: name, Policy: policy.Topic{Paused: true, MaxAge: maxAge}})
			require.NoError(t, err)
		}
		time.Sleep(20 * time.Second)
		require.Equal(t, policy.ReasonExpired, r.get(t, expires.Ref()).Reason)
		require.Equal(t, policy.ReasonMaxAge, r.get(t, ages.Ref()).Reason)
	})
}

// A longer max_age lets a job wait on. Lost replies end no job twice, and leave no job without an end.
func TestExpiry_UsesTheCurrentPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(200)}
		r := startExpiring(t, nil, rec, policy.Topic{Paused: true})
		made := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "old"}}})
		_, err := r.PutTopic(t.Context(),
			store.Topic{Namespace: "default", Name: "old", Policy: policy.Topic{Paused: true, MaxAge: time.Hour}})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.Equal(t, job.Ready, r.get(t, made.Ref()).State)
		require.Empty(t, r.get(t, made.Ref()).History)
	})
}

func TestExpiry_EndsEveryJobOnceDespiteLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: statusByTopic(200)}
		_, err := store.PutTopic(
			t.Context(), st, store.Topic{Namespace: "default", Name: "default", Policy: policy.Topic{
				Paused: true, OnDead: callbackTo("https://callback.example/"),
			}},
		)
		require.NoError(t, err)
		start(t, dispatcher.Options{Store: storetest.Faulty(st, storetest.Share(7, 0.2)), Deliverer: rec})
		const jobs = 300
		for range jobs {
			var e store.NewJob
			e.ID, e.URL, e.Method, e.ExpiresIn = string(store.NewToken()), "https://shop.example/", "POST",
				10*time.Second
			e.Queue = job.Queue{Namespace: "default", Topic: "default", Lane: "a"}
			_, err := st.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
			require.NoError(t, err)
		}
		time.Sleep(2 * time.Minute)
		stats, err := st.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"default"}})
		require.NoError(t, err)
		require.EqualValues(t, jobs, stats[0].Dead)
		sent := map[string]int{}
		for _, c := range rec.callbacks() {
			sent[decoded(t, c)["job"].(map[string]any)["id"].(string)]++
		}
		require.Len(t, sent, jobs)
	})
}

func TestExpiry_RevivalNeedsANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByTopic(200)}
		r := startExpiring(t, nil, rec, policy.Topic{Paused: true})
		made := r.register(t, job.New{ExpiresIn: 10 * time.Second})
		time.Sleep(30 * time.Second)
		_, err := r.Revive(t.Context(), store.Revival{Ref: made.Ref()})
		require.ErrorIs(t, err, store.ErrExpired)
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive})
		require.Equal(t, store.WorkCounts{Matched: 1, Failed: 1, Failures: []store.WorkFailure{
			{ID: made.ID, Reason: "the job would expire before it is due: set expires_in"},
		}}, w.WorkCounts)
		pace := policy.Rate{Starts: 1, Per: time.Minute}
		require.EqualValues(t, 1,
			r.work(t, store.WorkOrder{Action: store.WorkRevive, ExpiresIn: time.Minute, Rate: pace}).Done)
		require.Equal(t, time.Minute, r.get(t, made.Ref()).ExpiresAt.Sub(r.get(t, made.Ref()).DueAt))
	})
}

// All batches of a revival count an expiry from the due times, however long the batches before them took.
func TestRevive_ExpiryCountsFromTheDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowListStore{Store: model(), page: 2 * time.Second}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 25, "orders/a", 500)
		w := r.work(t, store.WorkOrder{
			Action: store.WorkRevive, Rate: policy.Rate{Starts: 1, Per: 10 * time.Second},
			Delay: 10 * time.Minute, ExpiresIn: time.Minute,
		})
		require.EqualValues(t, 25, w.Done)
		for i := range 25 {
			revived := r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: fmt.Sprintf("orders-a-500-%04d", i)})
			require.Equal(t, time.Minute, revived.ExpiresAt.Sub(revived.FirstDueAt), i)
		}
	})
}

// lookupCounter counts how often ids are looked up.
type lookupCounter struct {
	store.Store
	n atomic.Int32
}

func (l *lookupCounter) Shards() []store.Shard {
	return storetest.WrapShards(l.Store,
		func(_ int, next store.Shard) store.Shard { return lookupCounterShard{next, l} })
}

type lookupCounterShard struct {
	store.Shard
	*lookupCounter
}

func (l lookupCounterShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	l.n.Add(1)
	return l.Shard.Known(ctx, refs)
}

func TestExpiry_PastOneRefusesNewJobsOnly(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			model := storetest.NewModel(storetest.ModelOptions{Shards: shards})
			counted := &lookupCounter{Store: model}
			r := start(t, dispatcher.Options{Store: counted, Deliverer: &receiver{answer: status(204)}})
			spec := func(id string) job.Spec { return job.Spec{ID: id, URL: "https://shop.example/"} }
			now := time.Now()
			requests := []job.New{
				{Spec: spec("soon"), ExpiresAt: now.Add(time.Minute)},
				{Spec: spec("later"), Delay: time.Minute, ExpiresAt: now.Add(time.Minute)},
				{Spec: spec("past"), RunAt: now.Add(-time.Hour), ExpiresAt: now.Add(time.Second)},
			}
			for _, got := range r.Register(t.Context(), requests) {
				require.NoError(t, got.Err)
				require.Equal(t, store.Created, got.Outcome)
			}
			if shards == 1 {
				require.Zero(t, counted.n.Load(), "ids are looked up only where it matters")
			}
			time.Sleep(time.Hour)
			ended := now.Add(time.Minute)
			requests = append(requests,
				job.New{Spec: spec("soon"), ExpiresAt: ended.Add(-time.Second)},
				job.New{
					Spec:      job.Spec{ID: "soon", URL: "https://other.example/", Queue: job.Queue{Lane: "b"}},
					ExpiresAt: ended,
				},
				job.New{Spec: spec("new"), ExpiresAt: ended},
				job.New{Spec: spec(""), ExpiresAt: ended},
				job.New{Spec: spec("new"), Delay: time.Minute, ExpiresAt: time.Now().Add(time.Second)},
				job.New{Spec: spec("new"), RunAt: time.Now().Add(time.Minute), ExpiresIn: time.Second},
				job.New{Spec: spec("good"), ExpiresAt: time.Now().Add(time.Second)},
			)
			results := r.Register(t.Context(), requests)
			for i, want := range []store.Outcome{
				store.Existing, store.Existing, store.Existing, store.Conflict, store.Conflict, 0, 0, 0, 0,
				store.Created,
			} {
				require.Equal(t, want, results[i].Outcome, i)
				if want == 0 {
					invalid, ok := errors.AsType[*job.InvalidError](results[i].Err)
					require.True(t, ok, "%d: %v", i, results[i].Err)
					require.Contains(t, invalid.Errors[0].Field, "/expires_", i)
					continue
				}
				_, taken := errors.AsType[*job.TakenError](results[i].Err)
				require.Equal(t, want == store.Conflict, taken, i)
				require.Equal(t, taken, results[i].Err != nil, i)
			}
			require.Equal(t, job.Delivered, results[0].Job.State)
			require.Equal(t, job.Delivered, results[2].Job.State)

			require.NoError(t, model.Close())
			unread := r.Register(t.Context(), requests[:1])[0]
			require.Error(t, unread.Err)
			require.NotContains(t, unread.Err.Error(), "expires_at", "whether the id is known is not known")
		})
	}
}
