package pool_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// changingPolicy is a policy that changes while the pool runs, as when another process puts one.
type changingPolicy struct {
	fixedPolicy
	mu  sync.Mutex
	now policy.Topic
}

func (s *changingPolicy) Topic(string, string) policy.Topic {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *changingPolicy) put(t policy.Topic) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = t.WithDefaults(policy.Builtin())
}

// newRateTest runs one process with a rate on its topic.
func newRateTest(
	t *testing.T, topicPolicy policy.Topic, wrap func(store.Store) store.Store,
) (store.Store, *startRecorder) {
	t.Helper()
	s, d := newCalls(t, topicPolicy)
	carry(t, s)
	on := s
	if wrap != nil {
		on = wrap(s)
	}
	run(t, on, d, withPolicy(topicPolicy))
	return s, d
}

// began are the begins on a lane so far, counted from a moment.
func (s *startRecorder) began(lane string, from time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []time.Duration
	for _, at := range s.by[lane] {
		all = append(all, at.Sub(from))
	}
	return all
}

func TestRate_RequestsNoMoreStartsThanThereAreJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s, d := newRateTest(t, policy.Topic{Rate: policy.Rate{Starts: 5, Per: 90 * time.Second}}, nil)
		fill(t, s, 3, "calls/a")
		time.Sleep(time.Second)
		insertOn(t, s, 0, "fourth", "calls", "a")
		time.Sleep(10 * time.Second)
		insertOn(t, s, 0, "fifth", "calls", "b")
		time.Sleep(3 * time.Second)
		require.Len(t, d.began("", began), 5, "five may begin in the window")
		insertOn(t, s, 0, "sixth", "calls", "b")
		time.Sleep(time.Minute)
		require.Len(t, d.began("", began), 5)
		time.Sleep(time.Minute)
		require.Len(t, d.began("", began), 6)
	})
}

func TestRate_ChangeAppliesToClaimedJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := model(), &startRecorder{}
		carry(t, s)
		topicPolicy := &changingPolicy{}
		topicPolicy.put(policy.Topic{})
		lag := newLaggingStore(s, 20*time.Millisecond)
		run(t, lag, d, func(o *pool.Options) { o.Policies = topicPolicy })
		began := time.Now()
		for i := range 100 {
			insertOn(t, s, 0, fmt.Sprint(i), "calls", fmt.Sprint("lane-", i))
			if i == 50 {
				topicPolicy.put(policy.Topic{Rate: policy.Rate{Starts: 1, Per: time.Hour}})
			}
		}
		time.Sleep(10 * time.Second)
		before := len(d.began("", began))
		require.LessOrEqual(t, before, 53)
		topicPolicy.put(policy.Topic{})
		time.Sleep(20 * time.Second)
		require.Len(t, d.began("", began), 100, "and goes on when it is taken away")
	})
}

func TestRate_LateStartOfATopicIsMadeInTheNextWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 1, Per: 10 * time.Minute}}
		s, d := newRateTest(t, topicPolicy, func(s store.Store) store.Store {
			return &lateOnceStore{Store: s, by: 40 * time.Second}
		})
		fill(t, s, 1, "calls/a")
		time.Sleep(9 * time.Minute)
		require.Empty(t, d.began("a", began), "the late start counts")
		time.Sleep(2 * time.Minute)
		require.Len(t, d.began("a", began), 1)
	})
}

func TestRate_JobsWithoutARequestTakeNoStartOfTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 2, Per: time.Minute}, MaxAge: time.Hour}
		s, d := newCalls(t, topicPolicy)
		fill(t, s, 50, "calls/a")
		time.Sleep(2 * time.Hour)
		carry(t, s)
		began := time.Now()
		insertOn(t, s, 0, "fresh", "calls", "a")
		run(t, s, d, withPolicy(topicPolicy))
		time.Sleep(time.Minute)
		require.Len(t, d.began("a", began), 1)
	})
}

func TestRate_OfOneTopicDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newRateTest(t, policy.Topic{Rate: policy.Rate{Starts: 10, Per: time.Second}}, nil)
		fill(t, s, 500, "calls/busy")
		began := time.Now()
		for i := range 60 {
			time.Sleep(500 * time.Millisecond)
			insertOn(t, s, 0, fmt.Sprint("t", i), "trickle", "a")
		}
		n := len(d.began("busy", began))
		require.GreaterOrEqual(t, n, 270, "ten a second for half a minute")
	})
}

func TestRate_ServesWithASlowStore(t *testing.T) {
	for name, topicPolicy := range map[string]policy.Topic{
		"topic": {Rate: policy.Rate{Starts: 100, Per: time.Second}},
		"lane":  {LaneRate: policy.Rate{Starts: 100, Per: time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				s, d := newRateTest(t, topicPolicy,
					func(s store.Store) store.Store { return newSlowStore(s, 2500*time.Millisecond, 0) })
				fill(t, s, 10, "calls/a")
				time.Sleep(5 * time.Minute)
				require.Len(t, d.began("a", began), 10)
			})
		})
	}
}
