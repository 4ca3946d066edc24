package redis

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// One settlement has all verdicts. Afterwards only jobs that are kept or unfinished have entries.
func TestKeys_OfUnkeptJobsAreRemoved(t *testing.T) {
	url := redistest.Start(t).URL()
	for most, want := range [][]string{{"again", "dead"}, {"again", "dead", "done-3"}} {
		s := open(t, Options{URL: url, Limits: policy.Limits{KeepDelivered: policy.Retention{Max: new(int64(most))}}})
		require.NoError(t, s.Client.FlushAll(t.Context()).Err())
		insert(t, s, entry("done-1"), entry("again"), entry("done-2"), entry("dead"),
			entry("released"), entry("done-3"))
		verdicts := map[string]policy.Verdict{
			"again": {Kind: policy.Again, Wait: time.Hour}, "dead": {Kind: policy.Dead, Reason: policy.ReasonGaveUp},
			"released": {Kind: policy.Released},
		}
		var items []store.Settlement
		for _, h := range claimAll(t, s, 6).Jobs {
			verdict, found := verdicts[h.ID]
			if !found {
				verdict.Kind = policy.Delivered
			}
			item := settlement(h, verdict, 200)
			if verdict.Kind == policy.Released {
				item.Attempt.Kind = ""
			}
			items = append(items, item)
		}
		settle(t, s, items...)
		left, err := s.Client.HKeys(t.Context(), s.shards[0].Keys.Attempts).Result()
		require.NoError(t, err)
		require.ElementsMatch(t, want, left)
		left, err = s.Client.HKeys(t.Context(), s.shards[0].Keys.Runs).Result()
		require.NoError(t, err)
		require.ElementsMatch(t, append(want, "released"), left)
	}
}

// An item whose job is deleted at once leaves no attempt. The attempt of the item before stays.
func TestKeys_OfOtherJobsStayWhenOneIsRemoved(t *testing.T) {
	none := policy.Limits{KeepDelivered: policy.Retention{Max: new(int64(0))}}
	s := open(t, Options{URL: redistest.Start(t).URL(), Limits: none})
	insert(t, s, entry("a"), entry("b"))
	h := claimAll(t, s, 2).Jobs
	_, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("b"), store.Cancellation{})
	require.NoError(t, err)
	released := settlement(h[1], policy.Verdict{Kind: policy.Released}, 0)
	released.Attempt.Kind = ""
	settle(t, s, settlement(h[0], policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}, 500), released)
	dead, err := s.Shards()[0].Get(t.Context(), ref("a"))
	require.NoError(t, err)
	require.Len(t, dead.History, 1)
}

// A claim of a queue with held jobs keeps the earliest deadline on the agenda.
func TestClaim_KeepsTheFirstLeaseExpiryOfItsQueue(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL(), Limits: policy.Limits{Concurrency: 5}})
	short, long := entry("a"), entry("b")
	short.Timeout, long.Timeout = time.Second, time.Hour
	insert(t, s, short, long)
	claimAll(t, s, 1)
	claimAll(t, s, 1)
	moment, err := s.Client.ZScore(t.Context(), s.shards[0].Keys.Agenda, "1").Result()
	require.NoError(t, err)
	require.Less(t, int64(moment), time.Now().Add(time.Minute).UnixMilli())
}

// cutting sends the first command of pipelines only.
type cutting struct{ redis.Hook }

func (cutting) DialHook(next redis.DialHook) redis.DialHook { return next }

func (cutting) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (cutting) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		_ = next(ctx, cmds[:1]) // its command has the error
		for _, cmd := range cmds[1:] {
			cmd.SetErr(errLost)
		}
		return errLost
	}
}

// A settlement leaves the agenda of its queues to the claim of the same round trip. Without that claim the queues must
// be processed in time all the same.
func TestSettle_SchedulesItsQueueWithoutALaterClaim(t *testing.T) {
	delivered := policy.Verdict{Kind: policy.Delivered}
	for name, test := range map[string]struct {
		limit   int
		verdict policy.Verdict
		jobs    []string
		within  time.Duration
	}{
		"full":     {limit: 1, verdict: delivered, jobs: []string{"a", "b", "c"}, within: 2 * time.Second},
		"not full": {limit: 2, verdict: delivered, jobs: []string{"a", "b", "c"}, within: 2 * time.Second},
		"a due job": {
			limit: 5, verdict: policy.Verdict{Kind: policy.Again, Wait: 100 * time.Millisecond},
			jobs: []string{"a"}, within: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{URL: redistest.Start(t).URL(), Limits: policy.Limits{Concurrency: test.limit}})
			for _, id := range test.jobs {
				insert(t, s, entry(id))
			}
			held := claimAll(t, s, 1).Jobs
			s.Client.AddHook(cutting{})
			next := wants(1)
			_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(),
				[]store.Settlement{settlement(held[0], test.verdict, 500)}, &next)
			require.ErrorIs(t, err, store.ErrUnavailable)
			moment, err := s.Client.ZScore(t.Context(), s.shards[0].Keys.Agenda, "1").Result()
			require.NoError(t, err)
			require.LessOrEqual(t, int64(moment), time.Now().Add(test.within).UnixMilli())
		})
	}
}
