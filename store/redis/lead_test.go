package redis

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/storetest"
)

// without fails every command on one key, or one command, as when its server is away.
type without struct {
	redis.Hook
	command string // empty: any
	key     string
	gone    bool
}

func (w *without) DialHook(next redis.DialHook) redis.DialHook { return next }

func (w *without) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); w.gone && len(args) > 1 && args[1] == w.key &&
			(w.command == "" || args[0] == w.command) {
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

// leader takes the lead of a store's first shard. wait waits until the policies are due to be read again.
func leader(t *testing.T) (s *Store, l store.Leadership, wait func()) {
	var passed time.Duration
	s = open(t, Options{URL: redistest.Start(t).URL(), elapsed: func() time.Duration { return passed }})
	l, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	return s, l, func() { passed += 10 * time.Second }
}

func TestLead_RollsBackPoliciesOnShards(t *testing.T) {
	s, l, wait := leader(t)
	extend := func() {
		wait()
		require.NoError(t, l.Extend(t.Context()))
	}
	insert(t, s, entry("a"))
	put := func(name string, paused bool) {
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: name, Policy: policy.Topic{Paused: paused}})
		require.NoError(t, err)
	}
	put(lane.Topic, false)
	extend()
	before, err := s.Client.HGetAll(t.Context(), layout.DocumentsKey("rb", store.KindTopic)).Result()
	require.NoError(t, err)
	put(lane.Topic, true)
	put("other", true)
	extend()
	require.Empty(t, claimAll(t, s, 1).Jobs)
	// On a cluster the policies and a shard are on different servers. A failover may roll one of them back.
	require.NoError(t, s.Client.Del(t.Context(), layout.DocumentsKey("rb", store.KindTopic)).Err())
	require.NoError(t, s.Client.HSet(t.Context(), layout.DocumentsKey("rb", store.KindTopic), before).Err())
	require.NoError(t, s.Client.ZRemRangeByScore(t.Context(), layout.ChangesKey("rb", store.KindTopic), "("+before[""],
		"+inf").Err())
	extend()
	_, revision, err := storetest.ListTopics(t.Context(), s)
	require.NoError(t, err)
	claimed := claimAll(t, s, 1)
	require.Len(t, claimed.Jobs, 1)
	require.Equal(t, revision, claimed.Revision)
	other, err := s.Client.HGet(t.Context(), s.shards[0].Keys.Limits,
		layout.TopicName(lane.Namespace, "other")).Result()
	require.NoError(t, err)
	require.Equal(t, s.Defaults, other)

	put(lane.Topic, true)
	require.True(t, claimAll(t, s, 1).Queues[0].Blocked, "what is put after it holds at once")
	require.NoError(t, l.Release(t.Context()))
}

func TestLead_CopiesChangedPoliciesOnly(t *testing.T) {
	s, l, wait := leader(t)
	extend := func() {
		wait()
		require.NoError(t, l.Extend(t.Context()))
	}
	topic := func(name string, paused bool) store.Topic {
		return store.Topic{Namespace: lane.Namespace, Name: name, Policy: policy.Topic{Paused: paused}}
	}
	put := func(name string, paused bool) {
		_, err := store.PutTopic(t.Context(), s, topic(name, paused))
		require.NoError(t, err)
	}
	limitsKey := s.shards[0].Keys.Limits
	limits := func() map[string]string { return s.Client.HGetAll(t.Context(), limitsKey).Val() }
	put("unchanged", true)
	put("changed", true)
	put("removed", true)
	extend()
	before := limits()
	s.Client.AddHook(&without{command: "hgetall", key: layout.DocumentsKey("rb", store.KindTopic), gone: true})
	for what, change := range []func(){
		func() { // and the writer died before it had copied the limits
			put("changed", false)
			require.NoError(t, store.DeleteTopic(t.Context(), s, topic("removed", true)))
		},
		func() { put("changed", true) }, // and a failover of the shard lost the changes before it, too
	} {
		change()
		after := limits()
		require.NoError(t, s.Client.Del(t.Context(), limitsKey).Err())
		require.NoError(t, s.Client.HSet(t.Context(), limitsKey, before).Err())
		extend()
		require.Equal(t, after[""], limits()[""], what)
		for name, stored := range after {
			_, stored, _ = strings.Cut(stored, " ")
			_, copied, _ := strings.Cut(limits()[name], " ")
			require.Equal(t, stored, copied, "%s %d", name, what)
		}
	}
	require.NoError(t, l.Release(t.Context()))
}

func TestLead_CarriesWithoutTheServerOfPolicies(t *testing.T) {
	var passed time.Duration
	s := open(t, Options{URL: redistest.Start(t).URL(), elapsed: func() time.Duration { return passed }})
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	require.NoError(t, s.Client.Del(t.Context(), s.shards[0].Keys.Limits).Err()) // as if it had not been copied
	away := &without{key: layout.DocumentsKey("rb", store.KindTopic), gone: true}
	s.Client.AddHook(away)
	l, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	require.NoError(t, l.Extend(t.Context()))
	require.Zero(t, s.Client.Exists(t.Context(), s.shards[0].Keys.Limits).Val())

	away.gone = false
	passed += 10 * time.Second
	require.NoError(t, l.Extend(t.Context()))
	require.EqualValues(t, 1, s.Client.Exists(t.Context(), s.shards[0].Keys.Limits).Val(),
		"they are copied when they can be had")
	require.NoError(t, l.Release(t.Context()))
}
