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
	"github.com/ringback/ringback/store/redis/layout"
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

func TestPoliciesThatAFailoverTookBackAreTakenBackOnTheShardsToo(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	insert(t, s, entry("a"))
	put := func(name string, paused bool) {
		_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: name, Policy: policy.Topic{Paused: paused}})
		require.NoError(t, err)
	}
	put(lane.Topic, false)
	l, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	before, err := s.client.HGetAll(t.Context(), s.documentsKey(store.KindTopic)).Result()
	require.NoError(t, err)
	put(lane.Topic, true)
	put("other", true)
	require.NoError(t, l.Extend(t.Context()))
	require.Empty(t, claimAll(t, s, 1).Jobs)
	// On a cluster the policies and a shard are on different servers, of which one may fall back.
	require.NoError(t, s.client.Del(t.Context(), s.documentsKey(store.KindTopic)).Err())
	require.NoError(t, s.client.HSet(t.Context(), s.documentsKey(store.KindTopic), before).Err())
	require.NoError(t, l.Extend(t.Context()))
	_, revision, err := store.ListTopics(t.Context(), s)
	require.NoError(t, err)
	claimed := claimAll(t, s, 1)
	require.Len(t, claimed.Jobs, 1)
	require.Equal(t, revision, claimed.Revision)
	other, err := s.client.HGet(t.Context(), s.shards[0].keys.Limits, layout.TopicName(lane.Namespace, "other")).Result()
	require.NoError(t, err)
	require.Equal(t, s.defaults, other)

	put(lane.Topic, true)
	require.True(t, claimAll(t, s, 1).Queues[0].Blocked, "what is put after it holds at once")
	require.NoError(t, l.Release(t.Context()))
}

func TestAShardIsCarriedWhileTheServerWithThePoliciesIsAway(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	_, err := store.PutTopic(t.Context(), s, store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	require.NoError(t, s.client.Del(t.Context(), s.shards[0].keys.Limits).Err()) // as if it had not been copied
	away := &without{key: s.documentsKey(store.KindTopic), gone: true}
	s.client.AddHook(away)
	l, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context()))
	require.Zero(t, s.client.Exists(t.Context(), s.shards[0].keys.Limits).Val())

	away.gone = false
	l.(*lead).again = l.(*lead).again.Add(-policiesAgain)
	require.NoError(t, l.Extend(t.Context()))
	require.EqualValues(t, 1, s.client.Exists(t.Context(), s.shards[0].keys.Limits).Val(), "they are copied when they can be had")
	require.NoError(t, l.Release(t.Context()))
}
