package redis

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// A repeated change returns the first result, whatever happened to the job since.
func TestRepeat_ReturnsTheResultAfterTheJobIsGone(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("edited"), entry("revived"), entry("marked"))
		claimed := claimAll(t, s, 3).Jobs
		require.Len(t, claimed, 3)
		settle(t, s, settlement(claimed[0], policy.Verdict{Kind: policy.Again, Wait: time.Hour}, 500),
			settlement(claimed[1], policy.Verdict{Kind: policy.Delivered}, 200))

		changes := []func() (job.Job, error){}
		add := func(change func(store.Token) (job.Job, error)) {
			token := store.NewToken()
			changes = append(changes, func() (job.Job, error) { return change(token) })
		}
		add(func(token store.Token) (job.Job, error) {
			return s.Shards()[0].Replace(t.Context(), token, ref("edited"),
				store.Replacement{Kind: job.EventEdited, Due: &job.TimeOrDelay{}})
		})
		add(func(token store.Token) (job.Job, error) { return reviveOne(t, s, token, "revived", 0) })
		for range 2 { // the second finds the mark
			add(func(token store.Token) (job.Job, error) {
				return s.Shards()[0].Cancel(t.Context(), token, ref("marked"), store.Cancellation{})
			})
		}
		first := make([]job.Job, len(changes))
		var err error
		for i, change := range changes {
			first[i], err = change()
			require.NoError(t, err)
		}
		_, err = store.PutTopic(
			t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{
				KeepDelivered: policy.Retention{For: new(time.Duration(0))},
			}},
		)
		require.NoError(t, err)
		settle(t, s, settlement(claimed[2], policy.Verdict{Kind: policy.Dead}, 500))
		rest := claimAll(t, s, 3).Jobs
		require.Len(t, rest, 2)
		for _, h := range rest {
			settle(t, s, settlement(h, policy.Verdict{Kind: policy.Delivered}, 200))
		}
		for _, id := range []string{"edited", "revived", "marked"} {
			_, err := s.Shards()[0].Get(t.Context(), ref(id))
			require.ErrorIs(t, err, store.ErrNotFound)
		}
		for i, change := range changes {
			again, err := change()
			require.NoError(t, err)
			require.Equal(t, first[i], again)
		}
	})
}

func TestRepeat_ReadsAMovedJobAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		sh := s.shards[0]
		ended := entry("ended")
		insert(t, s, entry("a"), ended)
		other := entry("b")
		other.Lane = "other"
		insert(t, s, other)
		found, _, err := sh.Find(t.Context(), []job.Queue{other.Queue})
		require.NoError(t, err)
		for name, changes := range map[string]*layout.Script{"cancel": scriptCancel, "replace": scriptReplace} {
			c := sh.NewCall(changes, sh.Keys.Reply(string(store.NewToken()), name), found, nil, 1)
			c.Add("a")
			reply, err := s.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, "again", layout.Str(layout.List(reply)[0]), name)
		}
		_, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
		require.NoError(t, err)
	})
}
