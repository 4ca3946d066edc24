package redis

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// rates are tested with three processes that claim as many jobs as they can.
var rates = []struct {
	rate  policy.Rate
	slack time.Duration
}{
	{policy.Rate{Starts: 20, Per: 100 * time.Millisecond}, 20 * time.Millisecond},
	{policy.Rate{Starts: 5, Per: time.Second}, 0},
	{policy.Rate{Starts: 200, Per: 500 * time.Millisecond}, 10 * time.Millisecond}, // merged into groups
}

// rateSpan is longer than each window.
const rateSpan = 1200 * time.Millisecond

// starts records when attempts began, by the server's clock: at a random time within the slack after their claim or
// grant.
type starts struct {
	mu sync.Mutex
	at []time.Time
}

func (s *starts) add(granted time.Time, n int, slack time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.at = append(s.at, granted.Add(rand.N(slack+time.Nanosecond)))
	}
}

// count returns how many there were.
func (s *starts) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.at)
}

// requireRate fails the test if a window has more starts than the rate allows. It returns how many there were in all.
func (s *starts) requireRate(t *testing.T, rate policy.Rate) int {
	t.Helper()
	slices.SortFunc(s.at, time.Time.Compare)
	for i := rate.Starts; i < len(s.at); i++ {
		require.GreaterOrEqual(t, s.at[i].Sub(s.at[i-rate.Starts]), rate.Per, "start %d", i)
	}
	return len(s.at)
}

// runTogether calls do concurrently, twice per store, until rateSpan has passed and there were more starts than in a
// window.
func runTogether(t *testing.T, stores []*Store, begun *starts, rate policy.Rate, do func(s *Store) error) {
	t.Helper()
	end := time.Now().Add(rateSpan)
	errs := make(chan error, 2*len(stores))
	for i := range 2 * len(stores) {
		go func() {
			var err error
			for err == nil && (time.Now().Before(end) || begun.count() <= rate.Starts) {
				err = do(stores[i%len(stores)])
			}
			errs <- err
		}()
	}
	for range 2 * len(stores) {
		require.NoError(t, <-errs)
	}
}

// openThree opens three stores of one server, like three processes.
func openThree(t *testing.T) []*Store {
	o := Options{URL: redistest.Start(t).URL(), Limits: policy.Limits{Concurrency: 1000}}
	return []*Store{open(t, o), open(t, o), open(t, o)}
}

func TestRate_LaneHoldsInEveryWindowOverProcesses(t *testing.T) {
	for _, c := range rates {
		t.Run(fmt.Sprintf("%d in %s", c.rate.Starts, c.rate.Per), func(t *testing.T) {
			t.Parallel()
			var begun starts
			stores := openThree(t)
			putLane(t, stores[0], policy.Lane{LaneRate: c.rate})
			for range 6 {
				entries := make([]store.NewJob, 400)
				for i := range entries {
					entries[i] = entry(job.NewID(time.Now(), 0))
				}
				insert(t, stores[0], entries...)
			}
			runTogether(t, stores, &begun, c.rate, func(s *Store) error {
				request := wants(1 + rand.N(7))
				request.Slack = c.slack
				claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
				if err != nil {
					return err
				}
				items := make([]store.Settlement, len(claimed.Jobs))
				for i, h := range claimed.Jobs {
					if !h.Rated {
						return fmt.Errorf("job %s is not said to be under a rate", h.ID)
					}
					begun.add(h.DueAt.Add(h.Late), 1, c.slack)
					items[i] = settlement(h, policy.Verdict{Kind: policy.Delivered}, 200)
				}
				_, _, err = s.Shards()[0].Settle(t.Context(), store.NewToken(), items, nil)
				return err
			})
			t.Logf("%d starts in %s", begun.requireRate(t, c.rate), rateSpan)
		})
	}
}

func TestRate_TopicHoldsInEveryWindowOverProcesses(t *testing.T) {
	for _, c := range rates {
		t.Run(fmt.Sprintf("%d in %s", c.rate.Starts, c.rate.Per), func(t *testing.T) {
			t.Parallel()
			var begun starts
			runTogether(t, openThree(t), &begun, c.rate, func(s *Store) error {
				ask := store.PermitRequest{
					Namespace: lane.Namespace, Topic: lane.Topic, Rate: c.rate,
					Starts: 4, Slack: c.slack,
				}
				permits, err := s.Shards()[0].Permit(t.Context(), store.NewToken(), []store.PermitRequest{ask})
				if err != nil {
					return err
				}
				begun.add(permits[0].At, permits[0].Starts, c.slack)
				return nil
			})
			t.Logf("%d starts in %s", begun.requireRate(t, c.rate), rateSpan)
		})
	}
}

// requireFewGroups fails the test if stored starts are more than 80 groups, or not n starts.
func requireFewGroups(t *testing.T, text string, n int) {
	t.Helper()
	groups := strings.Split(text, ",")
	require.LessOrEqual(t, len(groups), 80)
	for _, group := range groups {
		parts := strings.Split(group, ":")
		require.Len(t, parts, 3)
		n -= int(layout.Num(parts[2]))
	}
	require.Zero(t, n)
}

func TestRate_StateOfALargeRateIsSmall(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		for _, per := range []time.Duration{100 * time.Millisecond, 10 * time.Second} {
			name := fmt.Sprint("every ", per)
			rate := policy.Rate{Starts: policy.MaxStarts, Per: per}
			ask := store.PermitRequest{Namespace: lane.Namespace, Topic: name, Rate: rate, Starts: 1}
			n := testkit.Of(200, 1000)
			for i := range n {
				ask.Slack = alternate(i)
				permits, err := s.Shards()[0].Permit(t.Context(), store.NewToken(), []store.PermitRequest{ask})
				require.NoError(t, err)
				require.Equal(t, 1, permits[0].Starts)
			}
			key := sh.Keys.Rate(layout.TopicName(lane.Namespace, name))
			text, err := s.Client.Get(t.Context(), key).Result()
			require.NoError(t, err)
			requireFewGroups(t, text, n)
			left, err := s.Client.PTTL(t.Context(), key).Result()
			require.NoError(t, err)
			require.Positive(t, left, "it goes by itself")
			require.LessOrEqual(t, left, 91*time.Second+per+2*time.Hour, "also when the clock is set ahead meanwhile")
		}

		jobs := testkit.Of(160, 500)
		putLane(t, s,
			policy.Lane{LaneConcurrency: jobs, LaneRate: policy.Rate{Starts: policy.MaxStarts, Per: time.Minute}})
		entries := make([]store.NewJob, jobs)
		for i := range entries {
			entries[i] = entry(fmt.Sprint("job-", i))
		}
		insert(t, s, entries...)
		for i := range jobs {
			request := wants(1)
			request.Slack = alternate(i)
			claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
			require.NoError(t, err)
			require.Len(t, claimed.Jobs, 1)
		}
		line, err := s.Client.HGet(t.Context(), sh.Keys.Throttles, "1").Result()
		require.NoError(t, err)
		requireFewGroups(t, strings.Fields(line)[3], jobs)
	})
}

// alternate returns a slack that differs from call to call.
func alternate(i int) time.Duration {
	return []time.Duration{90 * time.Second, 31 * time.Second, 30 * time.Second, 60 * time.Second}[i%4]
}
