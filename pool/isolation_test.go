package pool_test

import (
	"context"
	"fmt"
	"slices"
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
	"github.com/ringback/ringback/store/storetest"
)

// isolationTest is a process with some receivers that hang until their timeout; the others respond within 5 ms.
type isolationTest struct {
	store.Store
	hangs func(job.Request) bool
	reads bool // those that hang have read the body

	mu    sync.Mutex
	began map[string]time.Time
	stuck int
}

func (s *isolationTest) Deliver(ctx context.Context, r job.Request) policy.Result {
	s.mu.Lock()
	s.began[r.Ref.ID] = time.Now()
	hangs := s.hangs(r)
	if hangs {
		s.stuck++
	}
	s.mu.Unlock()
	if r.Sent != nil && (!hangs || s.reads) {
		r.Sent()
	}
	begun := time.Now()
	result, takes := policy.Result{Status: 200}, 5*time.Millisecond
	if hangs {
		result, takes = policy.Result{Class: policy.ClassTimeoutHeaders}, r.Timeout
	}
	select {
	case <-time.After(takes):
	case <-ctx.Done():
		result = policy.Result{Class: policy.ClassShutdown}
	}
	result.Duration = time.Since(begun)
	return result
}

// processWorkers is the number of workers of the process that the tests fill with attempts that hang.
var processWorkers = testkit.Of(512, 2048)

// startIsolation runs a process with a number of workers per topic and the built-in policy, but a timeout of ten
// minutes.
func startIsolation(
	t *testing.T, workers int, hangs func(job.Request) bool, adapt ...func(*pool.Options),
) *isolationTest {
	t.Helper()
	topicPolicy := policy.Topic{Timeout: 10 * time.Minute, Workers: workers}.WithDefaults(policy.Builtin())
	s := &isolationTest{
		Store: newSlowStore(storetest.NewModel(storetest.ModelOptions{Defaults: topicPolicy}),
			time.Millisecond, time.Millisecond),
		hangs: hangs, began: map[string]time.Time{},
	}
	carry(t, s)
	run(t, s, s, func(o *pool.Options) {
		o.Policies = fixedPolicy(topicPolicy)
		for _, f := range adapt {
			f(o)
		}
	})
	return s
}

// smallProcess is a process with few workers.
func smallProcess(o *pool.Options) { o.Workers = 256 }

// fullProcess is a process with processWorkers.
func fullProcess(o *pool.Options) { o.Workers = processWorkers }

// isBadTopic makes topics hang whose names begin with bad.
func isBadTopic(r job.Request) bool { return strings.HasPrefix(r.Queue.Topic, "bad") }

// lanesOf names lanes of topics.
func lanesOf(topics, lanes int) (queues []string) {
	for i := range topics {
		for j := range lanes {
			queues = append(queues, fmt.Sprintf("bad-%d/lane-%d", i, j))
		}
	}
	return queues
}

// insertForOthers registers a job in each of ten new topics every 20 ms for up to a second, in 10 lanes each, and
// returns the 99th percentile of how late they began, and the latest.
func (s *isolationTest) insertForOthers(t *testing.T, name string) (p99, most time.Duration) {
	t.Helper()
	registered := map[string]time.Time{}
	for i := range testkit.Of(20, 50) {
		for topic := range 10 {
			id := fmt.Sprintf("%s-%d-%d", name, topic, i)
			registered[id] = time.Now()
			insertOn(t, s, 0, id, fmt.Sprintf("%s-%d", name, topic), fmt.Sprintf("lane-%d", i%10))
		}
		time.Sleep(20 * time.Millisecond)
	}
	time.Sleep(20 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	var late []time.Duration
	for id, at := range registered {
		began, ok := s.began[id]
		require.True(t, ok, "%s was not attempted within 20 s", id)
		late = append(late, began.Sub(at))
	}
	slices.Sort(late)
	return late[len(late)*99/100], late[len(late)-1]
}

// requireIsolated requires that other topics are served in time, at once and later.
func (s *isolationTest) requireIsolated(t *testing.T) {
	t.Helper()
	for _, name := range []string{"soon", "later"} {
		p99, most := s.insertForOthers(t, name)
		t.Logf("%s: %d attempts hang, others began at most %s late, p99 %s", name, s.hangingCount(), most, p99)
		require.Less(t, p99, 100*time.Millisecond)
	}
}

// requests are the ids of attempted jobs that begin with a prefix.
func (s *isolationTest) requests(prefix string) (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.began {
		if strings.HasPrefix(id, prefix) {
			ids = append(ids, id)
		}
	}
	return ids
}

// hangingCount returns the number of hanging attempts.
func (s *isolationTest) hangingCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stuck
}

func TestIsolation_OneTopicWithVeryManyWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 10_000, isBadTopic, fullProcess)
		fill(t, s, 2, lanesOf(1, processWorkers*11/20)...)
		s.requireIsolated(t)
		require.GreaterOrEqual(t, s.hangingCount(), processWorkers/3, "it has what others do not need")
	})
}

func TestIsolation_NineTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, processWorkers/8, isBadTopic, fullProcess)
		fill(t, s, 2, lanesOf(9, processWorkers/16+2)...)
		s.requireIsolated(t)
	})
}

// One after the other, each topic has all that it may have before the next one comes.
func TestIsolation_ManyTopicsOneByOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 10_000, isBadTopic, fullProcess)
		for i := range testkit.Of(20, 50) {
			var queues []string
			for j := range processWorkers/5/(i+1) + processWorkers/500 {
				queues = append(queues, fmt.Sprintf("bad-%d/lane-%d", i, j))
			}
			fill(t, s, 2, queues...)
			time.Sleep(1100 * time.Millisecond)
		}
		s.requireIsolated(t)
		require.GreaterOrEqual(t, s.hangingCount(), processWorkers*9/10)
	})
}

// Receivers that have answered quickly, and have many attempts in flight each, hang all at once.
func TestIsolation_TopicsWhoseReceiversBeginToHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		s := startIsolation(t, 64,
			func(r job.Request) bool { return isBadTopic(r) && time.Since(began) > 35*time.Millisecond },
			func(o *pool.Options) { o.Workers = 512 })
		fill(t, s, 60, lanesOf(9, 10)...)
		time.Sleep(100 * time.Millisecond)
		s.requireIsolated(t)
		require.GreaterOrEqual(t, s.hangingCount(), 450)
	})
}

// So many lanes that never answered hang that they use all workers for such lanes. Lanes that answer have other
// workers, in the process as in the topic.
func TestIsolation_RespondingLanesAmongHangingOnes(t *testing.T) {
	for _, topics := range []int{1, testkit.Of(500, 1200)} {
		t.Run(fmt.Sprint(topics), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := startIsolation(t, 64, isBadTopic, smallProcess)
				if topics == 1 {
					s.hangs = func(r job.Request) bool { return strings.HasPrefix(r.Ref.ID, "bad") }
				}
				for i := range 20 { // are known
					insertOn(t, s, 0, fmt.Sprintf("first-%d", i), "topic", fmt.Sprintf("lane-%d", i))
				}
				time.Sleep(time.Second)
				for i := range testkit.Of(500, 1200) {
					insertOn(t, s, 0, fmt.Sprintf("bad-%d", i), map[bool]string{
						true:  "topic",
						false: fmt.Sprintf("bad-%d", i),
					}[topics == 1], fmt.Sprintf("bad-%d", i))
				}
				time.Sleep(5 * time.Second)
				for i := range testkit.Of(25, 50) {
					id, at := fmt.Sprintf("good-%d", i), time.Now()
					insertOn(t, s, 0, id, "topic", fmt.Sprintf("lane-%d", i%20))
					time.Sleep(100 * time.Millisecond)
					s.mu.Lock()
					began := s.began[id]
					s.mu.Unlock()
					require.False(t, began.IsZero(), "%s waits for a worker", id)
					require.Less(t, began.Sub(at), 100*time.Millisecond)
				}
			})
		})
	}
}

// A lane that hangs counts as slow after a second, and not from its timeout on: what comes due in it meanwhile takes no
// worker from those that answer.
func TestIsolation_HangingLaneIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startIsolation(t, 8, func(r job.Request) bool { return strings.HasPrefix(r.Ref.ID, "bad") })
		all := func(name string) {
			for lane := range 6 {
				insertOn(t, s, 0, fmt.Sprintf("%s-%d", name, lane), "orders", fmt.Sprintf("lane-%d", lane))
			}
		}
		insertOn(t, s, 0, "first", "orders", "good")
		all("good")
		time.Sleep(time.Second)
		all("bad")
		time.Sleep(1100 * time.Millisecond)
		require.Equal(t, 6, s.hangingCount())
		all("bad-too")
		time.Sleep(2 * time.Second)
		require.Equal(t, 6, s.hangingCount(), "slow lanes have three quarters at most")
		insertOn(t, s, 0, "second", "orders", "good")
		time.Sleep(10 * time.Millisecond)
		s.mu.Lock()
		defer s.mu.Unlock()
		require.Contains(t, s.began, "second")
	})
}
