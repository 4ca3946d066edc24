package pool_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A start that no attempt used is lost for a window. These tests show that few are.

// all returns when attempts began.
func (s *startRecorder) all() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.by[""])
}

// startProcesses runs processes on a store of a topic with a policy.
func startProcesses(t *testing.T, n int, topicPolicy policy.Topic) (store.Store, *startRecorder) {
	t.Helper()
	s, d := newCalls(t, topicPolicy)
	carry(t, s)
	for range n {
		run(t, newLaggingStore(s, time.Millisecond), d, withPolicy(topicPolicy))
	}
	return s, d
}

func TestRate_SmallRateStarvesNoLaneAndNoProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		topicPolicy := policy.Topic{Rate: policy.Rate{Starts: 1, Per: 10 * time.Second}}
		s, d := startProcesses(t, 3, topicPolicy)
		lanes := []string{"calls/a", "calls/b", "calls/c", "calls/d"}
		fill(t, s, 5, lanes...)
		time.Sleep(21 * 10500 * time.Millisecond)
		requireRate(t, topicPolicy.Rate, d.all(), "the topic")
		require.Len(t, d.all(), 20, "no window passes without a start")
	})
}

func TestRate_BelowTheRateNoJobWaits(t *testing.T) {
	for _, rate := range []policy.Rate{{Starts: 5, Per: 10 * time.Second}, {Starts: 100, Per: 10 * time.Second}} {
		t.Run(fmt.Sprint(rate.Starts), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := startProcesses(t, 3, policy.Topic{Rate: rate})
				for i := range 5 * rate.Starts {
					began := time.Now()
					insertOn(t, s, 0, fmt.Sprint(i), "calls", fmt.Sprint("lane-", i%3))
					time.Sleep(rate.Per * 10 / 9 / time.Duration(rate.Starts))
					require.Less(t, d.all()[i].Sub(began), 50*time.Millisecond, "job %d", i)
				}
			})
		})
	}
}

func TestRate_BurstsTakeFewMoreStartsThanTheyHaveJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := startProcesses(t, 3, policy.Topic{Rate: policy.Rate{Starts: 100, Per: time.Minute}})
		for i := range 8 {
			for k := range 10 {
				insertOn(t, s, 0, fmt.Sprint(i, "-", k), "calls", fmt.Sprint("lane-", i%3))
			}
			time.Sleep(3 * time.Second)
			require.Len(t, d.all(), 10*(i+1))
		}
	})
}

// In a lane with more jobs than its rate allows most expire. Those must not take the starts of the others.
func TestRate_ExpiringJobsLeaveStartsForOthers(t *testing.T) {
	rate := policy.Rate{Starts: 1, Per: 10 * time.Second}
	for name, topicPolicy := range map[string]policy.Topic{
		"lane": {LaneRate: rate}, "topic": {Rate: rate}, "both": {LaneRate: rate, Rate: rate},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := startProcesses(t, 2, topicPolicy)
				for i := range 150 {
					var e store.NewJob
					e.ID, e.Queue, e.URL, e.Method, e.ExpiresIn = fmt.Sprint(i), queueOf("calls", "a"),
						"https://x.example/", "POST", 5*time.Second
					_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{e})
					require.NoError(t, err)
					time.Sleep(time.Second)
				}
				requireRate(t, rate, d.all(), name)
				// Under two rates a permit can end unused while the lane's window is closed.
				require.GreaterOrEqual(t, len(d.all()), 7, "of at most 15")
			})
		})
	}
}
