package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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

var customer = ofLane

// changeLane sets a lane.
func changeLane(t *testing.T, r *fixture, q job.Queue, change func(l *policy.Lane)) store.Lane {
	t.Helper()
	put, err := r.ChangeLane(t.Context(), q, store.ChangeOptions{}, func(l *policy.Lane) error {
		change(l)
		return nil
	})
	require.NoError(t, err)
	return put
}

func TestLanes_OverrideTheirTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		none, err := r.Lane(t.Context(), customer)
		require.NoError(t, err)
		require.Equal(t, store.Lane{Queue: customer}, none)
		changeLane(t, r, customer, func(*policy.Lane) {})
		_, err = r.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.ErrorIs(t, err, store.ErrNotFound, "an empty change stores nothing")

		put := changeLane(t, r, customer, func(l *policy.Lane) {
			l.URL, l.Paused, l.Headers = "https://customer.example/", true, map[string][]string{"X-Customer": {"42"}}
		})
		require.NotZero(t, put.Revision)
		_, err = r.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.NoError(t, err, "a lane's topic is listed")
		made := r.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: customer}}})[0]
		require.NoError(t, made.Err)
		time.Sleep(time.Minute)
		require.Empty(t, rec.calls(), "it is paused")

		changed := changeLane(t, r, customer, func(l *policy.Lane) { l.Paused = false })
		require.Greater(t, changed.Revision, put.Revision)
		require.Equal(t, "https://customer.example/", changed.Settings.URL, "the rest stays")
		time.Sleep(2 * time.Second)
		require.Len(t, rec.calls(), 1)
		require.Equal(t, "https://customer.example/", rec.calls()[0].URL)
		require.Equal(t, []string{"42"}, rec.calls()[0].Header["X-Customer"])

		changeLane(t, r, customer, func(l *policy.Lane) { *l = policy.Lane{} })
		gone, err := r.Lane(t.Context(), customer)
		require.NoError(t, err)
		require.Zero(t, gone.Revision)
		listed, err := r.ListLanes(t.Context(), job.DefaultNamespace, "orders", "", "", 10)
		require.NoError(t, err)
		require.Empty(t, listed)
	})
}

func TestLanes_InvalidChangeIsRejectedWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: status(200)}, CheckURL: func(string) error {
			return errors.New("its address may not be called")
		}})
		_, err := r.ChangeLane(t.Context(), customer, store.ChangeOptions{}, func(l *policy.Lane) error {
			l.URL = "http://10.0.0.1/"
			return nil
		})
		require.Equal(t, []job.FieldError{{Field: "/url", Detail: "its address may not be called"}},
			requireInvalid(t, err).Errors)
		mine := errors.New("mine")
		_, err = r.ChangeLane(t.Context(), customer, store.ChangeOptions{}, func(l *policy.Lane) error {
			l.Paused = true
			return mine
		})
		require.ErrorIs(t, err, mine)
		lane, err := r.Lane(t.Context(), customer)
		require.NoError(t, err)
		require.Zero(t, lane.Revision)
	})
}

func TestLanes_ConcurrentChangesAreAllApplied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slowSettingsStore{model()}
		rigs := []*fixture{
			start(t, dispatcher.Options{Store: s, RegisterOnly: true}),
			start(t, dispatcher.Options{Store: s, RegisterOnly: true}),
		}
		changeLane(t, rigs[0], customer, func(l *policy.Lane) { l.LaneConcurrency = 1 })
		var changing sync.WaitGroup
		for i := range 8 {
			changing.Go(func() {
				if _, err := rigs[i%2].ChangeLane(t.Context(), customer, store.ChangeOptions{},
					func(l *policy.Lane) error {
						l.LaneConcurrency++
						return nil
					}); err != nil {
					t.Error(err)
				}
			})
		}
		changing.Wait()
		lane, err := rigs[0].Lane(t.Context(), customer)
		require.NoError(t, err)
		require.Equal(t, 9, lane.Settings.LaneConcurrency)
	})
}

// Lanes that are created concurrently do not overwrite a policy that is put for their topic meanwhile.
func TestLanes_DoNotChangeTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Store: slowSettingsStore{model()}, RegisterOnly: true})
		var changing sync.WaitGroup
		for i := range 8 {
			changing.Go(func() {
				if i == 4 {
					_, err := r.ChangeTopic(
						t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
						func(p *policy.Topic) error {
							p.Workers = 7
							return nil
						},
					)
					if err != nil {
						t.Error(err)
					}
					return
				}
				_, err := r.ChangeLane(t.Context(), job.Queue{
					Namespace: job.DefaultNamespace, Topic: "orders",
					Lane: fmt.Sprint("l", i),
				}, store.ChangeOptions{},
					func(l *policy.Lane) error {
						l.Paused = true
						return nil
					})
				if err != nil {
					t.Error(err)
				}
			})
		}
		changing.Wait()
		topic, err := r.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.NoError(t, err)
		require.Equal(t, 7, topic.Policy.Workers)
	})
}

func TestLanes_AreListedInPagesOverAllShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := sharded(4)
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		var want, got []string
		for i := range 25 {
			q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: fmt.Sprintf("lane-%02d", i)}
			changeLane(t, r, q, func(l *policy.Lane) { l.Paused = true })
			want = append(want, q.Lane)
		}
		for after := ""; ; {
			page, err := r.ListLanes(t.Context(), job.DefaultNamespace, "orders", "", after, 7)
			require.NoError(t, err)
			for _, l := range page {
				require.True(t, l.Settings.Paused)
				got, after = append(got, l.Queue.Lane), l.Queue.Lane
			}
			if len(page) < 7 {
				break
			}
		}
		require.Equal(t, want, got)
	})
}

// unreadableLanes fails to read lanes' settings, and counts the reads.
type unreadableLanes struct {
	store.Store
	err error

	asked atomic.Int32
}

func (u *unreadableLanes) Shards() []store.Shard {
	return storetest.WrapShards(u.Store,
		func(_ int, next store.Shard) store.Shard { return unreadableLanesShard{next, u} })
}

type unreadableLanesShard struct {
	store.Shard
	*unreadableLanes
}

func (s unreadableLanesShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	s.asked.Add(int32(len(keys)))
	if s.err != nil {
		return nil, s.err
	}
	return s.Shard.GetDocuments(ctx, keys)
}

func TestLanes_ProvideTheURLOfJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreadableLanes{Store: model()}
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		changeLane(t, r, customer, func(l *policy.Lane) { l.URL = "https://customer.example/" })
		changeLane(t, r, job.Queue{Namespace: "default", Topic: "orders", Lane: "silent"},
			func(l *policy.Lane) { l.Paused = true })
		_, err := r.PutTopic(t.Context(),
			store.Topic{Namespace: "default", Name: "served", Policy: policy.Topic{URL: "https://topic.example/"}})
		require.NoError(t, err)
		of := func(topic, lane string) job.New {
			return job.New{Spec: job.Spec{Queue: job.Queue{Topic: topic, Lane: lane}}}
		}
		s.asked.Store(0)
		got := r.Register(t.Context(), []job.New{
			of("orders", "customer-42"), of("orders", "silent"), of("orders", "unknown"),
			of("orders", ""), of("served", "any"), of("orders", "customer-42"),
		})
		for i, ok := range []bool{true, false, false, false, true, true} {
			if ok {
				require.NoError(t, got[i].Err, i)
				continue
			}
			invalid := requireInvalid(t, got[i].Err)
			require.Equal(t, "/url", invalid.Errors[0].Field)
			require.Contains(t, invalid.Errors[0].Detail, "the lane")
		}
		require.Equal(t, "customer-42", got[0].Job.Lane)
		require.Empty(t, got[0].Job.URL)
		require.EqualValues(t, 3, s.asked.Load(), "each lane once, and none of a topic that has a URL")

		s.asked.Store(0)
		r.register(t, job.New{Spec: job.Spec{Queue: customer}})
		require.Zero(t, s.asked.Load(), "a job with a URL asks for nothing")
	})
}

func TestLanes_UnreadableSettingsCostNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreadableLanes{Store: model(), err: &store.UnavailableError{Reason: "away"}}
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		got := r.Register(t.Context(), []job.New{
			{Spec: job.Spec{Queue: customer}},
			{Spec: job.Spec{Queue: customer, URL: "https://x.example/"}},
			{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}}},
		})
		require.ErrorIs(t, got[0].Err, store.ErrUnavailable)
		require.NoError(t, got[1].Err, "another one is not concerned")
		require.Equal(t, "/url", requireInvalid(t, got[2].Err).Errors[0].Field)
	})
}
