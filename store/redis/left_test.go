package redis

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// One settlement ends jobs in all ways: only of those that are kept or go on is anything left.
func TestNothingIsLeftOfAttemptsOfJobsThatAreNotKept(t *testing.T) {
	url := redistest.Start(t).URL()
	for most, want := range [][]string{{"again", "dead"}, {"again", "dead", "done-3"}} {
		s := open(t, Options{URL: url, Defaults: policy.Topic{KeepDelivered: policy.Keep{Max: new(int64(most))}}})
		require.NoError(t, s.client.FlushAll(t.Context()).Err())
		insert(t, s, entry("done-1"), entry("again"), entry("done-2"), entry("dead"), entry("released"), entry("done-3"))
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
		left, err := s.client.HKeys(t.Context(), s.shards[0].tag+"tries").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, want, left)
		left, err = s.client.HKeys(t.Context(), s.shards[0].tag+"runs").Result()
		require.NoError(t, err)
		require.ElementsMatch(t, append(want, "released"), left)
	}
}

// A settlement leaves the look at its queues to the claim of the same trip. Should that not come, somebody looks in time.
func TestAQueueIsLookedAtThoughTheClaimAfterItsSettlementDoesNotCome(t *testing.T) {
	for _, limit := range []int{1, 2} {
		t.Run(fmt.Sprint("limit=", limit), func(t *testing.T) {
			s := open(t, Options{URL: redistest.Start(t).URL(), Defaults: policy.Topic{LaneConcurrency: limit}})
			insert(t, s, entry("a"), entry("b"), entry("c"))
			held := claimAll(t, s, 1).Jobs
			sh := s.shards[0]
			found, err := sh.find(t.Context(), s.runner, []job.Queue{lane})
			require.NoError(t, err)
			c := s.newCall(sh, scriptSettle, sh.token("token", "s"), found, nil, 0)
			c.add(",1,")
			item := settlement(held[0], policy.Verdict{Kind: policy.Delivered}, 200)
			require.NoError(t, c.settlements([]store.Settlement{item}, func(int) int { return 1 }))
			reply, err := s.do(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, "1", reply)
			moment, err := s.client.ZScore(t.Context(), sh.tag+"agenda", found[0].number).Result()
			require.NoError(t, err)
			require.LessOrEqual(t, int64(moment), time.Now().Add(2*time.Second).UnixMilli())
		})
	}
}
