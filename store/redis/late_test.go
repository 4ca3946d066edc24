package redis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// silent answers nothing to scripts, from the n-th on, until their context ends.
type silent struct {
	after int
}

func (h *silent) DialHook(next redis.DialHook) redis.DialHook { return next }

func (h *silent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (h *silent) ProcessHook(redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if h.after--; h.after >= 0 {
			if reply, ok := cmd.(*redis.Cmd); ok {
				reply.SetVal("1")
			}
			return nil
		}
		<-ctx.Done()
		cmd.SetErr(ctx.Err())
		return ctx.Err()
	}
}

// openSilent opens a store and claims a job. Then its server stops answering.
func openSilent(t *testing.T) (*Store, *silent, store.ClaimedJob) {
	s := open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr()})
	insert(t, s, entry("a"))
	held := claimAll(t, s, 1).Jobs[0]
	h := &silent{}
	s.Client.AddHook(h)
	return s, h, held
}

func TestDeadline_OfTheEngineIsUnavailable(t *testing.T) {
	s, h, held := openSilent(t)
	synctest.Test(t, func(t *testing.T) {
		item := settlement(held, policy.Verdict{Kind: policy.Delivered}, 200)
		_, _, err := s.Shards()[0].Settle(t.Context(), store.NewToken(), []store.Settlement{item}, nil)
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "redis did not answer in time")
		require.NotErrorIs(t, err, context.DeadlineExceeded)

		h.after = 1 // the policy is written, its copy hangs
		_, err = store.PutTopic(t.Context(), s, store.Topic{Namespace: "default", Name: "t"})
		require.ErrorIs(t, err, store.ErrUnavailable)
		require.ErrorContains(t, err, "redis did not answer in time")

		_, err = s.Shards()[0].Lead(t.Context())
		require.ErrorIs(t, err, store.ErrUnavailable)
	})
}

func TestDeadline_OfTheCallerIsReturned(t *testing.T) {
	s, _, _ := openSilent(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := s.Shards()[0].Claim(ctx, store.NewToken(), wants(1))
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, store.ErrUnavailable)
		_, err = s.Shards()[0].Lead(ctx)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.NotErrorIs(t, err, store.ErrUnavailable)
	})
}
