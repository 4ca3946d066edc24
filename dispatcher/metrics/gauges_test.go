package metrics_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// source is a metrics.Source with given results.
type source struct {
	answer func(ctx context.Context) ([]store.TopicStats, error)
	state  pool.State
	asked  atomic.Int64
	// namespaces besides the default one, for TestGauges_ShowEachNamespace.
	namespaces []job.Namespace
	others     []store.Readiness
}

func (s *source) OtherStores(context.Context) []store.Readiness { return s.others }

func (s *source) Totals(ctx context.Context, namespace string) (total store.TopicStats, err error) {
	s.asked.Add(1)
	all, err := s.in(ctx, namespace)
	for _, t := range all {
		if t.Topic != job.WorkTopic {
			total = total.Add(t)
		}
	}
	return total, err
}

// in returns the topics in a namespace, by default default.
func (s *source) in(ctx context.Context, namespace string) ([]store.TopicStats, error) {
	if namespace == "away" {
		return nil, store.ErrUnavailable
	}
	all, err := s.answer(ctx)
	return slices.DeleteFunc(slices.Clone(all),
		func(t store.TopicStats) bool { return cmp.Or(t.Namespace, "default") != namespace }), err
}

func (s *source) TopicStats(ctx context.Context, f store.StatsFilter) ([]store.TopicStats, error) {
	all, err := s.in(ctx, f.Namespace)
	if len(f.Topics) == 0 && f.Limit < 1 {
		return nil, errors.New("asked for everything")
	}
	var page []store.TopicStats
	for _, t := range all {
		if len(f.Topics) > 0 && slices.Contains(f.Topics, t.Topic) || len(f.Topics) == 0 && t.Topic != job.WorkTopic &&
			t.Topic > f.After && len(page) < f.Limit {
			page = append(page, t)
		}
	}
	return page, err
}

func (s *source) CachedNamespaces(context.Context, int) ([]job.Namespace, error) {
	return s.namespaces, nil
}

func (s *source) State() pool.State { return s.state }

func (s *source) LeaseClients() int { return 5 }

func (s *source) LiveTail() (listeners int, skipped uint64) { return 3, 70 }

func (s *source) Waiting() int { return 5 }

func rows(all ...store.TopicStats) func(context.Context) ([]store.TopicStats, error) {
	return func(context.Context) ([]store.TopicStats, error) { return all, nil }
}

func TestGauges_ShowTheStoreAndThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{})
		require.Empty(t, scrape(t, m).all("ringback_store_up"), "no store is observed")
		m.Watch(&source{
			state: pool.State{Workers: 2048, InFlight: 17},
			answer: rows(store.TopicStats{
				Namespace: "default", Topic: "orders", Registered: 21, Scheduled: 1, Ready: 2, Running: 3, Delivered: 4,
				Dead: 5, Cancelled: 6, OldestDue: time.Now().Add(-90 * time.Second), OpenBreakers: 7,
				LanesFailing: 2,
			}, store.TopicStats{Topic: "later", Scheduled: 1, OldestDue: time.Now().Add(time.Hour)},
				store.TopicStats{Topic: job.WorkTopic, Scheduled: 1, Ready: 2, Running: 4, Delivered: 9}),
		})
		got := scrape(t, m)
		for state, n := range map[string]float64{"scheduled": 1, "ready": 2, "running": 3} {
			require.InDelta(t, n, got.value(t, "ringback_jobs", "topic", "orders", "state", state), 0, state)
		}
		for state, n := range map[string]float64{"delivered": 4, "dead": 5, "cancelled": 6} {
			require.InDelta(t, n, got.value(t, "ringback_jobs_finished", "topic", "orders", "state", state), 0, state)
		}
		require.InDelta(t, 90, got.value(t, "ringback_oldest_due_seconds", "topic", "orders"), 0)
		require.InDelta(t, 0, got.value(t, "ringback_oldest_due_seconds", "topic", "later"), 0, "nothing of it is due")
		require.InDelta(t, 7, got.value(t, "ringback_breakers_open", "topic", "orders"), 0)
		require.InDelta(t, 2, got.value(t, "ringback_lanes_failing", "topic", "orders"), 0)
		require.InDelta(t, 0, got.value(t, "ringback_lanes_failing", "topic", "later"), 0)
		require.InDelta(t, 7, got.value(t, "ringback_work_unfinished", "namespace", "default"), 0)
		require.Len(t, got.all("ringback_breakers_open"), 2, "the topic of bulk work has no other series")
		require.InDelta(t, 2048, got.value(t, "ringback_workers"), 0)
		require.InDelta(t, 17, got.value(t, "ringback_in_flight"), 0)
		require.InDelta(t, 5, got.value(t, "ringback_waiting_requests"), 0)
		require.InDelta(t, 3, got.value(t, "ringback_stream_clients"), 0)
		require.InDelta(t, 5, got.value(t, "ringback_lease_clients"), 0)
		require.InDelta(t, 70, got.value(t, "ringback_stream_skipped_total"), 0)
		require.InDelta(t, 1, got.value(t, "ringback_store_up"), 0)
	})
}

func TestWorkTreated_CountsByActionAndOutcome(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.WorkTreated(store.WorkCancel, 3, 2, 1)
	m.WorkTreated(store.WorkCancel, 1, 0, 0)
	got := scrape(t, m)
	for outcome, n := range map[string]float64{"done": 4, "failed": 2, "skipped": 1} {
		require.InDelta(t, n,
			got.value(t, "ringback_work_jobs_total", "action", "cancel", "outcome", outcome), 0, outcome)
	}
}

func TestGauges_ShowEachNamespace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{})
		s := &source{
			answer: rows(
				store.TopicStats{Topic: "orders", Registered: 1, Ready: 1},
				store.TopicStats{Namespace: "shop", Topic: "orders", Registered: 2, Ready: 2},
				store.TopicStats{Namespace: "n-99", Topic: "orders", Registered: 3, Ready: 3},
			),
			namespaces: []job.Namespace{{Name: "default"}, {Name: "shop"}},
		}
		m.Watch(s)
		got := scrape(t, m)
		require.InDelta(t, 1,
			got.value(t, "ringback_jobs", "namespace", "default", "topic", "orders", "state", "ready"), 0)
		require.InDelta(t, 2,
			got.value(t, "ringback_jobs", "namespace", "shop", "topic", "orders", "state", "ready"), 0)
		require.InDelta(t, 1, got.value(t, "ringback_store_up"), 0)

		s.namespaces = append(s.namespaces, job.Namespace{Name: "away"})
		time.Sleep(time.Minute)
		got = scrape(t, m)
		require.InDelta(t, 0, got.value(t, "ringback_store_up"), 0)
		require.InDelta(t, 2, got.value(t, "ringback_jobs", "namespace", "shop", "topic", "orders", "state", "ready"),
			0, "its store is not away")

		s.namespaces = nil
		for i := range 100 {
			s.namespaces = append(s.namespaces, job.Namespace{Name: fmt.Sprintf("n-%02d", i)})
		}
		time.Sleep(time.Minute)
		s.asked.Store(0)
		got = scrape(t, m)
		require.Equal(t, int64(10), s.asked.Load(), "the number of namespaces is bounded")
		require.InDelta(t, 1,
			got.value(t, "ringback_jobs", "namespace", "default", "topic", "orders", "state", "ready"), 0)
		require.Empty(t, got.all("ringback_jobs", "namespace", "n-99"))
	})
}

func TestGauges_ShowWhichStoresAreUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{Logger: slog.New(slog.DiscardHandler)})
		var hanging atomic.Bool
		s := &source{
			namespaces: []job.Namespace{
				{Name: "away", Store: "eu"},
				{Name: "default", Store: "main"},
				{Name: "shop", Store: "us"},
			},
			others: []store.Readiness{{Store: "eu"}, {Store: "asia", Err: store.ErrUnavailable}, {Store: "us"}},
			answer: func(ctx context.Context) ([]store.TopicStats, error) {
				if hanging.Load() {
					<-ctx.Done()
				}
				return []store.TopicStats{{Topic: "orders", Ready: 1}, {Namespace: "shop", Topic: "orders", Ready: 1}},
					ctx.Err()
			},
		}
		m.Watch(s)
		up := func() map[string]float64 {
			got, all := scrape(t, m), make(map[string]float64)
			for _, name := range []string{"main", "eu", "asia", "us"} {
				all[name] = got.value(t, "ringback_store_up", "store", name)
			}
			require.Len(t, got.all("ringback_store_up"), len(all))
			return all
		}
		require.Equal(t, map[string]float64{"main": 1, "eu": 0, "asia": 0, "us": 1}, up(),
			"the counts of a namespace on eu cannot be read")
		s.namespaces = s.namespaces[1:]
		time.Sleep(time.Minute)
		require.Equal(t, map[string]float64{"main": 1, "eu": 1, "asia": 0, "us": 1}, up())
		hanging.Store(true)
		time.Sleep(time.Minute)
		require.Equal(t, map[string]float64{"main": 0, "eu": 1, "asia": 0, "us": 0}, up(),
			"others are shown while main hangs")
	})
}

func TestGauges_SumTopicsBeyondTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const most, all = metrics.MaxTopics, 10_000
		m := metrics.New(metrics.Options{})
		m.AttemptEnded(delivered("zzz")) // came first
		var stats []store.TopicStats
		for i := range all {
			stats = append(stats, store.TopicStats{
				Topic: fmt.Sprintf("topic-%05d", i), Registered: 3, Scheduled: 2, Dead: 1, OpenBreakers: 1,
				LanesFailing: 1, OldestDue: time.Now().Add(-time.Duration(i) * time.Second),
			})
		}
		m.Watch(&source{answer: rows(stats...)})
		got := scrape(t, m)
		require.Len(t, got.all("ringback_jobs"), most*3)
		require.Len(t, got.all("ringback_oldest_due_seconds"), most)
		require.InDelta(t, 2*all, got.sum("ringback_jobs"), 0, "none is lost")
		require.InDelta(t, 2*(all-most+1), got.value(t, "ringback_jobs", "topic", "_other", "state", "scheduled"), 0)
		require.InDelta(t, all-1, got.value(t, "ringback_oldest_due_seconds", "topic", "_other"), 0)
		require.InDelta(t, all-most+1, got.value(t, "ringback_breakers_open", "topic", "_other"), 0)
		require.InDelta(t, all-most+1, got.value(t, "ringback_lanes_failing", "topic", "_other"), 0)
		require.InDelta(t, most-2,
			got.value(t, "ringback_oldest_due_seconds", "topic", fmt.Sprintf("topic-%05d", most-2)), 0)
		require.Empty(t, got.all("ringback_jobs", "topic", fmt.Sprintf("topic-%05d", most-1)))
	})
}

func TestGauges_ConcurrentScrapesReadOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{})
		gate := make(chan struct{})
		s := &source{answer: func(context.Context) ([]store.TopicStats, error) {
			<-gate
			return []store.TopicStats{{Topic: "orders", Ready: 1}}, nil
		}}
		m.Watch(s)
		var storm sync.WaitGroup
		for range 50 {
			storm.Go(func() {
				if got := scrape(t, m); got.sum("ringback_jobs") != 1 {
					t.Error("a scrape was answered without the counts")
				}
			})
		}
		synctest.Wait()
		close(gate)
		storm.Wait()
		require.EqualValues(t, 1, s.asked.Load())
		time.Sleep(5*time.Second - 1)
		scrape(t, m)
		require.EqualValues(t, 1, s.asked.Load(), "fresh values are reused")
		time.Sleep(time.Nanosecond)
		scrape(t, m)
		require.EqualValues(t, 2, s.asked.Load())
	})
}

func TestGauges_AreServedWhileTheStoreHangs(t *testing.T) {
	for name, heeds := range map[string]bool{"and heeds its context": true, "and heeds nothing": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var logged testkit.Log
				m := metrics.New(metrics.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				gate := make(chan struct{})
				s := &source{state: pool.State{Workers: 8}}
				s.answer = func(ctx context.Context) ([]store.TopicStats, error) {
					if heeds {
						select {
						case <-gate:
						case <-ctx.Done():
							return nil, ctx.Err()
						}
					}
					<-gate
					return []store.TopicStats{{Topic: "orders", Ready: 1}}, nil
				}
				m.Watch(s)
				m.AttemptEnded(delivered("orders"))

				away := func() {
					t.Helper()
					got := scrape(t, m)
					require.InDelta(t, 0, got.value(t, "ringback_store_up"), 0)
					require.Empty(t, got.all("ringback_jobs"))
					require.InDelta(t, 8, got.value(t, "ringback_workers"), 0)
					require.InDelta(t, 1, got.sum("ringback_attempts_total"), 0)
				}
				began, wait := time.Now(), 2*time.Second
				if heeds {
					wait -= 250 * time.Millisecond // so that what other stores answered is there in time
				}
				away()
				require.Equal(t, wait, time.Since(began))
				away()
				require.Equal(t, wait, time.Since(began), "the second does not wait")
				require.EqualValues(t, 1, s.asked.Load())
				time.Sleep(10 * time.Second)
				away()
				if heeds {
					require.EqualValues(t, 2, s.asked.Load())
				} else {
					require.EqualValues(t, 1, s.asked.Load(), "never two at a time")
				}

				close(gate)
				time.Sleep(5 * time.Second)
				got := scrape(t, m)
				require.InDelta(t, 1, got.value(t, "ringback_store_up"), 0)
				require.InDelta(t, 1, got.sum("ringback_jobs"), 0)
				synctest.Wait()
				if heeds {
					require.Equal(t, 1, strings.Count(logged.String(), "level=WARN"),
						"an error is logged once:\n%s", logged.String())
					require.Contains(t, logged.String(), "reading the store's counts works again")
				}
			})
		})
	}
}

func TestGauges_RetrySoonAfterAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{})
		s := &source{answer: func(context.Context) ([]store.TopicStats, error) { return nil, errors.New("it is away") }}
		m.Watch(s)
		for range 3 {
			require.InDelta(t, 0, scrape(t, m).value(t, "ringback_store_up"), 0)
		}
		require.EqualValues(t, 1, s.asked.Load())
		time.Sleep(5 * time.Second)
		scrape(t, m)
		require.EqualValues(t, 2, s.asked.Load())

		m.Watch(&source{answer: rows()})
		require.InDelta(t, 1, scrape(t, m).value(t, "ringback_store_up"), 0, "another source is asked at once")
	})
}
