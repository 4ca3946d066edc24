package redis

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// without fails every command on one key, as when its server is away.
type without struct {
	redis.Hook
	key  string
	gone bool
}

func (w *without) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *without) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); w.gone && len(args) > 1 && args[1] == w.key {
			err := errors.New("its server is away")
			cmd.SetErr(err)
			return err
		}
		return next(ctx, cmd)
	}
}

func (w *without) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAShardIsCarriedWhileTheServerWithThePoliciesIsAway(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	_, err := s.PutTopic(t.Context(), store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	require.NoError(t, s.client.Del(t.Context(), s.shards[0].terms).Err()) // as if it had not been copied
	away := &without{key: s.topicsKey(), gone: true}
	s.client.AddHook(away)
	l, err := s.Lead(t.Context(), 0)
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context()))
	require.Zero(t, s.client.Exists(t.Context(), s.shards[0].terms).Val())

	away.gone = false
	l.(*lead).again = l.(*lead).again.Add(-policiesAgain)
	require.NoError(t, l.Extend(t.Context()))
	require.EqualValues(t, 1, s.client.Exists(t.Context(), s.shards[0].terms).Val(), "they are copied when they can be had")
	require.NoError(t, l.Release(t.Context()))
}
