package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// permitRecorder records the number of requests of each Permit call.
type permitRecorder struct {
	store.Store
	mu   sync.Mutex
	asks []int // of each call
	away bool  // they fail
}

func (d *permitRecorder) Shards() []store.Shard {
	return storetest.WrapShards(d.Store,
		func(_ int, next store.Shard) store.Shard { return permitRecorderShard{next, d} })
}

type permitRecorderShard struct {
	store.Shard
	*permitRecorder
}

func (s permitRecorderShard) Permit(
	ctx context.Context, token store.Token, asks []store.PermitRequest,
) ([]store.Permit, error) {
	s.mu.Lock()
	s.asks = append(s.asks, len(asks))
	away := s.away
	s.mu.Unlock()
	if away {
		return nil, &store.UnavailableError{Reason: "away"}
	}
	return s.Shard.Permit(ctx, token, asks)
}

// calls returns the number of requests of each call so far.
func (d *permitRecorder) calls() []int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]int(nil), d.asks...)
}

func (d *permitRecorder) setUnavailable(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

// startRatedTopics runs a process on topics with a rate of one start per hour and a number of due jobs each.
func startRatedTopics(t *testing.T, topics, jobs int) (*permitRecorder, *gaugeDeliverer) {
	t.Helper()
	topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}}
	s, g := &permitRecorder{Store: model()}, newGauge(0)
	var queues []string
	for i := range topics {
		queues = append(queues, fmt.Sprintf("topic-%d/a", i))
	}
	fill(t, s, jobs, queues...)
	run(t, s, g, withPolicy(topicPolicy))
	return s, g
}

func TestPermit_OneCallForSeveralTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := startRatedTopics(t, 40, 3)
		time.Sleep(500 * time.Millisecond)
		require.Equal(t, 40, g.count(""))
		calls := s.calls()
		require.Equal(t, 40, calls[0], "all at once")
		require.LessOrEqual(t, len(calls), 4)
		time.Sleep(20 * time.Second)
		require.LessOrEqual(t, len(s.calls()), len(calls)+45, "about one a second for all of them")
		require.Equal(t, 40, g.count(""))
	})
}

func TestPermit_CallIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, g := startRatedTopics(t, 700, 1)
		time.Sleep(5 * time.Second)
		require.Equal(t, 700, g.count(""))
		s.mu.Lock()
		defer s.mu.Unlock()
		require.LessOrEqual(t, slices.Max(s.asks), store.MaxBatch)
		require.Less(t, len(s.asks), 70)
	})
}

// logRecorder records log records from level warning.
type logRecorder struct {
	slog.Handler
	mu   sync.Mutex
	warn []string
}

func (*logRecorder) Enabled(context.Context, slog.Level) bool { return true }

func (l *logRecorder) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Level >= slog.LevelWarn {
		l.warn = append(l.warn, r.Message)
	}
	return nil
}

func (l *logRecorder) count(message string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, line := range l.warn {
		if strings.Contains(line, message) {
			n++
		}
	}
	return n
}

// unreadableTopicShard fails permit calls for one topic.
type unreadableTopicShard struct {
	store.Shard
	topic string
}

func (s unreadableTopicShard) Permit(
	ctx context.Context, token store.Token, asks []store.PermitRequest,
) ([]store.Permit, error) {
	for _, ask := range asks {
		if ask.Topic == s.topic {
			return nil, errors.New("its permits cannot be decoded")
		}
	}
	return s.Shard.Permit(ctx, token, asks)
}

func TestPermit_TopicThatCannotBeReadStopsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 10, Per: time.Second}}
		s, g := wrap(model(), func(next store.Shard) store.Shard { return unreadableTopicShard{next, "topic-3"} }),
			newGauge(0)
		carry(t, s)
		var queues []string
		for i := range 10 {
			queues = append(queues, fmt.Sprintf("topic-%d/a", i))
		}
		fill(t, s, 30, queues...)
		run(t, s, g, withPolicy(topicPolicy))
		time.Sleep(10 * time.Second)
		require.Equal(t, 9*30, g.count(""))
		require.Zero(t, g.count("topic-3"))
	})
}

func TestPermit_FailuresAreLoggedWithBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 100, Per: time.Second}}
		s, g, log := &permitRecorder{Store: model(), away: true}, newGauge(0),
			&logRecorder{Handler: slog.DiscardHandler}
		carry(t, s)
		var queues []string
		for i := range 20 {
			queues = append(queues, fmt.Sprintf("topic-%d/a", i))
		}
		fill(t, s, 1, queues...)
		run(t, s, g, func(o *pool.Options) {
			o.Policies, o.Logger = fixedPolicy(topicPolicy.WithDefaults(policy.Builtin())), slog.New(log)
		})
		const message = "rate permit request failed, retrying"
		time.Sleep(time.Second / 2)
		require.Equal(t, 1, log.count(message), "the first failure is logged at once")
		time.Sleep(10 * time.Minute)
		require.LessOrEqual(t, log.count(message), 12)
		require.GreaterOrEqual(t, len(s.calls()), 200, "it is asked all the while")
		require.Zero(t, g.count(""))
		s.setUnavailable(false)
		time.Sleep(3 * time.Second)
		require.Equal(t, 20, g.count(""))
		before := log.count(message)
		s.setUnavailable(true)
		fill(t, s, 1, "next/a")
		time.Sleep(time.Second / 2)
		require.Equal(t, before+1, log.count(message), "a new failure is logged at once")
	})
}

// insertExpired inserts n jobs that expire before they can be claimed, and an ordinary job after them.
func insertExpired(t *testing.T, s store.Store, n int) {
	t.Helper()
	var entries []store.NewJob
	for i := range n {
		var e store.NewJob
		e.ID, e.Queue = fmt.Sprint("old-", i), queueOf("calls", "a")
		e.URL, e.Method, e.ExpiresIn = "https://x.example/", "POST", time.Minute
		entries = append(entries, e)
	}
	for len(entries) > 0 {
		n := min(len(entries), store.MaxBatch)
		_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), entries[:n])
		require.NoError(t, err)
		entries = entries[n:]
	}
	time.Sleep(time.Hour)
	insertOn(t, s, 0, "good", "calls", "a")
}

func TestRate_ExpiredJobsDoNotDelayOthers(t *testing.T) {
	for name, topicPolicy := range map[string]policy.Topic{
		"lane": {LaneRate: policy.Rate{Starts: 1, Per: time.Minute}},
		"both": {LaneRate: policy.Rate{Starts: 1, Per: time.Minute}, Rate: policy.Rate{Starts: 2, Per: time.Minute}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newCalls(t, topicPolicy)
				insertExpired(t, s, 1000)
				carry(t, s)
				began := time.Now()
				for range 2 {
					run(t, newLaggingStore(s, time.Millisecond), d, withPolicy(topicPolicy))
				}
				time.Sleep(20 * time.Second)
				if topicPolicy.Rate.Limited() {
					// permits of claims that ended expired jobs only are not given back
					time.Sleep(topicPolicy.Rate.Per)
				}
				require.Len(t, d.began("a", began), 1, "the good one")
				stats, err := s.Shards()[0].TopicStats(t.Context(),
					store.StatsFilter{Namespace: "default", Topics: []string{"calls"}})
				require.NoError(t, err)
				require.EqualValues(t, 1000, stats[0].Dead)
				require.EqualValues(t, 1, stats[0].Delivered)
				insertOn(t, s, 0, "next", "calls", "a")
				insertOn(t, s, 0, "last", "calls", "a")
				time.Sleep(5 * time.Minute)
				require.Len(t, d.began("a", began), 3)
				requireRate(t, topicPolicy.LaneRate, d.by["a"], "the lane")
			})
		})
	}
}

func TestRate_ReleasedJobIsDeliveredInTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{LaneRate: policy.Rate{Starts: 1, Per: 10 * time.Minute}}
		s, d := newCalls(t, topicPolicy)
		carry(t, s)
		fill(t, s, 1, "calls/a")
		slow := &lateOnceStore{Store: s, by: 2 * time.Second}
		adapt := withPolicy(topicPolicy)
		stop := run(t, slow, d, adapt)
		time.Sleep(time.Second) // the claim is under way
		require.NoError(t, stop())
		began := time.Now()
		require.Empty(t, d.began("a", began))
		run(t, s, d, adapt)
		time.Sleep(9 * time.Minute)
		require.Empty(t, d.began("a", began), "its first claim counts")
		time.Sleep(2 * time.Minute)
		require.Len(t, d.began("a", began), 1)
	})
}

func TestRate_HoldsBesideExpiredJobsWhenRepliesAreLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{LaneRate: policy.Rate{Starts: 3, Per: time.Minute}, Retries: new(0)}
		inner, d := newCalls(t, topicPolicy)
		insertExpired(t, inner, 50)
		fill(t, inner, 30, "calls/a")
		carry(t, inner)
		for seed := range uint64(2) {
			s := storetest.Faulty(inner, storetest.Share(seed, 0.2))
			run(t, s, d, withPolicy(topicPolicy))
		}
		time.Sleep(15 * time.Minute)
		d.mu.Lock()
		defer d.mu.Unlock()
		requireRate(t, topicPolicy.LaneRate, d.by["a"], "the lane")
		require.GreaterOrEqual(t, len(d.by["a"]), 20)
	})
}

func TestStop_DoesNotWaitForPermits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{}
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}}
		fill(t, s, 1, "calls/a")
		silent := wrap(s, func(next store.Shard) store.Shard { return silentPermitShard{next} })
		stop := run(t, silent, d, withPolicy(topicPolicy))
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, stop())
		require.Less(t, time.Since(began), time.Second)
	})
}

// silentPermitShard is a shard whose Permit never returns.
type silentPermitShard struct{ store.Shard }

func (silentPermitShard) Permit(ctx context.Context, _ store.Token, _ []store.PermitRequest) ([]store.Permit, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
