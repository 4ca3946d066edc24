package pool_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// limitedSockets is a deliverer with few descriptors: further attempts fail at once.
type limitedSockets struct {
	takes func(job.Request) time.Duration

	mu     sync.Mutex
	left   int
	failed int
	began  map[string]time.Time // of those that had a descriptor
}

func (s *limitedSockets) Deliver(ctx context.Context, r job.Request) policy.Result {
	s.mu.Lock()
	if s.left == 0 {
		s.failed++
		s.mu.Unlock()
		return policy.Result{Class: policy.ClassLocalResources, Error: "too many open files"}
	}
	s.left--
	s.began[r.Ref.ID] = time.Now()
	s.mu.Unlock()
	select {
	case <-time.After(s.takes(r)):
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left++
	return policy.Result{Status: 200}
}

func (s *limitedSockets) counts() (began, failed int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.began), s.failed
}

func TestShortage_CostsNeitherRetriesNorBreakers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := model(), &testkit.Log{}
		d := &limitedSockets{
			left: 20, began: map[string]time.Time{},
			takes: func(job.Request) time.Duration { return 100 * time.Millisecond },
		}
		topicPolicy := policy.Topic{Retries: new(0), Ladder: policy.Ladder{}, Breaker: policy.Breaker{Failures: new(1)}}
		_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "orders", Policy: topicPolicy})
		require.NoError(t, err)
		carry(t, s)
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("orders/lane-%d", i))
		}
		fill(t, s, 20, queues...)
		run(t, s, d, func(o *pool.Options) {
			o.Policies, o.Logger = fixedPolicy(topicPolicy.WithDefaults(policy.Builtin())),
				slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelWarn}))
		})
		time.Sleep(time.Minute)
		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Topics: []string{"orders"}})
		require.NoError(t, err)
		require.EqualValues(t, 400, stats[0].Delivered)
		require.Zero(t, stats[0].Dead)
		_, failed := d.counts()
		require.Positive(t, failed)
		require.Less(t, failed, 200, "as many attempts are made as there are descriptors, about")
		require.Contains(t, log.String(), "out of local resources")
		require.Less(t, strings.Count(log.String(), "\n"), 7, "one line in ten seconds")
		v, err := s.Shards()[0].Get(t.Context(), job.Ref{Namespace: "default", ID: "orders-lane-0-0"})
		require.NoError(t, err)
		require.Equal(t, 1, v.Attempts, "released attempts do not count")
	})
}

// While nothing can be sent at all, jobs are not claimed and put back again and again.
func TestShortage_DoesNotSpinWithoutAnySocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		d := &limitedSockets{began: map[string]time.Time{}, takes: func(job.Request) time.Duration { return 0 }}
		carry(t, s)
		fill(t, s, 500, "orders/a", "orders/b", "bills/a", "bills/b")
		run(t, s, d, nil)
		time.Sleep(time.Minute)
		_, failed := d.counts()
		require.Less(t, failed, 200)
		d.mu.Lock()
		d.left = 100
		d.mu.Unlock()
		time.Sleep(time.Minute)
		began, _ := d.counts()
		require.Equal(t, 2000, began, "and then it goes on")
	})
}
