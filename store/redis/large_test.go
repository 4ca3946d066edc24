package redis

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// A page of large jobs is read by several scripts. Each reads a few of the jobs.
func TestList_ReadsAPageOfLargeJobsInParts(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		const jobs = 14
		ids := make([]string, jobs)
		for i := range jobs {
			e := entry(fmt.Sprintf("job-%02d", i))
			e.Body = make([]byte, 1<<20)
			ids[i] = e.ID
			insert(t, s, e)
		}
		list := func(state job.State) (found []string) {
			page, err := s.Shards()[0].List(t.Context(),
				store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, States: []job.State{state}, Limit: 500})
			require.NoError(t, err)
			require.False(t, page.More, "one page holds them all")
			for _, j := range page.Jobs {
				require.Empty(t, j.Body)
				found = append(found, j.ID)
			}
			return found
		}
		require.ElementsMatch(t, ids, list(job.Ready))

		request := wants(jobs)
		request.MaxBytes = 64 << 20
		for held := 0; held < jobs; { // a claim is bounded by bytes too
			claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), request)
			require.NoError(t, err)
			require.NotEmpty(t, claimed.Jobs)
			for _, h := range claimed.Jobs {
				settle(t, s, settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonExhausted}, 500))
			}
			held += len(claimed.Jobs)
		}
		require.ElementsMatch(t, ids, list(job.Dead))

		refs := make([]store.Revival, jobs)
		for i, id := range ids {
			refs[i] = store.Revival{Ref: ref(id), From: job.Dead}
		}
		revived, err := s.Shards()[0].Revive(t.Context(), store.NewToken(), refs)
		require.NoError(t, err)
		for _, r := range revived {
			require.NoError(t, r.Err)
		}
		require.ElementsMatch(t, ids, list(job.Ready))
	})
}

func TestList_SkipsAMissingRecord(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		for i := range 9 {
			insert(t, s, entry(fmt.Sprintf("job-%02d", i)))
		}
		require.NoError(t, s.Client.HDel(t.Context(), s.shards[0].Keys.Jobs, layout.JobKey(ref("job-01"))).Err())
		var found []string
		filter := store.Filter{Namespace: lane.Namespace, Topic: lane.Topic, States: []job.State{job.Ready}, Limit: 3}
		for {
			page, err := s.Shards()[0].List(t.Context(), filter)
			require.NoError(t, err)
			for _, j := range page.Jobs {
				found = append(found, j.ID)
			}
			if filter.After = page.Reached; !page.More {
				break
			}
		}
		require.Len(t, found, 8)
	})
}
