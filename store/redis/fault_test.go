package redis

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

func TestFault_ReplicaIsUnavailable(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	insert(t, s, entry("a"))
	require.NoError(t, c.Do(t.Context(), "replicaof", "127.0.0.1", "1").Err())
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b")})
	require.ErrorIs(t, err, store.ErrUnavailable)
	require.ErrorContains(t, err, "READONLY")
	_, err = s.Shards()[0].Lead(t.Context())
	require.ErrorIs(t, err, store.ErrUnavailable)
}

func TestFault_LostServerIsUnavailableUntilItReturns(t *testing.T) {
	server := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	s := open(t, Options{URL: server.URL()})
	insert(t, s, entry("a"))
	held := claimAll(t, s, 1).Jobs
	server.Kill()

	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry("b")})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = s.Shards()[0].Wait(t.Context(), store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Second})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = s.GetDocuments(t.Context(), make([]store.DocumentKey, 2))
	require.ErrorIs(t, err, store.ErrUnavailable)

	server.Restart()
	require.Eventually(t, func() bool { return s.Ping(t.Context()) == nil }, time.Minute, 10*time.Millisecond)
	settle(t, s, settlement(held[0], policy.Verdict{Kind: policy.Delivered}, 200))
	requireRecovery(t, func() error { // its client looks for a server that was away once a second
		_, err := s.Shards()[0].Wait(t.Context(),
			store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Millisecond})
		return err
	})
}

func TestFault_ScriptsSurviveAFlush(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		flush := func() { require.NoError(t, s.Client.ScriptFlush(t.Context()).Err()) }
		insert(t, s, entry("a"))
		flush()
		insert(t, s, entry("b"))
		held := claimAll(t, s, 1).Jobs
		require.Len(t, held, 1)
		flush()
		next := wants(1)
		// Only the claim's script is known: it must not run before the settlement.
		_, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{Queues: next.Queues})
		require.NoError(t, err)
		errs, claimed, err := s.Shards()[0].Settle(t.Context(), store.NewToken(),
			[]store.Settlement{settlement(held[0], policy.Verdict{Kind: policy.Delivered}, 200)}, &next)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		require.Len(t, claimed.Jobs, 1)
		flush()
		_, err = s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
	})
}

// losing loses the reply of the next call if lose is set, as a broken connection does. The call has taken effect.
type losing struct {
	redis.Hook
	lose bool
}

var errLost = errors.New("the reply was lost")

func (l *losing) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *losing) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.lose && !redis.HasErrorPrefix(err, "NOSCRIPT") {
			l.lose = false
			cmd.SetErr(errLost)
			return errLost
		}
		return err
	}
}

func (l *losing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if l.lose {
			l.lose = false
			for _, cmd := range cmds {
				cmd.SetErr(errLost)
			}
			return errLost
		}
		return err
	}
}

func TestFault_LostReplyIsReturnedAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		l := &losing{}
		s.Client.AddHook(l)
		insert(t, s, entry("warm"), entry("up")) // queues have their numbers
		claimAll(t, s, 2)

		token := store.NewToken()
		l.lose = true
		_, err := s.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("a"), entry("b")})
		require.ErrorIs(t, err, store.ErrUnavailable)
		again, err := s.Shards()[0].Insert(t.Context(), token, []store.NewJob{entry("a"), entry("b")})
		require.NoError(t, err)
		require.Equal(t, store.Created, again[0].Outcome)

		token = store.NewToken()
		l.lose = true
		_, err = s.Shards()[0].Claim(t.Context(), token, wants(1))
		require.ErrorIs(t, err, store.ErrUnavailable)
		held, err := s.Shards()[0].Claim(t.Context(), token, wants(1))
		require.NoError(t, err)
		require.Len(t, held.Jobs, 1)
		require.Equal(t, "a", held.Jobs[0].ID)

		token, next := store.NewToken(), wants(1)
		items := []store.Settlement{settlement(held.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200)}
		l.lose = true
		_, _, err = s.Shards()[0].Settle(t.Context(), token, items, &next)
		require.ErrorIs(t, err, store.ErrUnavailable)
		errs, claimed, err := s.Shards()[0].Settle(t.Context(), token, items, &next)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		require.Len(t, claimed.Jobs, 1)
		require.Equal(t, "b", claimed.Jobs[0].ID)
	})
}

func TestFault_EmptiedDatabaseStartsAgain(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		other := entry("x")
		other.Lane = "other"
		insert(t, s, other, entry("a"))
		require.NoError(t, s.Client.FlushDB(t.Context()).Err())
		insert(t, s, entry("b"))
		insert(t, s, other)
		claimed := claimAll(t, s, 10)
		require.Len(t, claimed.Jobs, 1)
		require.Equal(t, "b", claimed.Jobs[0].ID)
		require.Equal(t, lane, claimed.Jobs[0].Queue)
	})
}

// The first reply of the pipeline is that a list is empty. It must not hide that a later command failed.
func TestTopicStats_FailsIfAReadyListCannotBeRead(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		other := entry("b")
		other.Lane, other.Delay = "other", time.Hour
		first := entry("a")
		first.Delay = time.Hour
		insert(t, s, first, other)
		require.NoError(t, s.Client.Set(t.Context(), s.shards[0].Keys.Ready("2"), "x", 0).Err())
		_, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
		require.ErrorContains(t, err, "WRONGTYPE")
	})
}

func TestWait_EndsWithItsContextAndIsUsableAfterwards(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		connections := func() string {
			info, err := s.Client.InfoMap(t.Context(), "clients").Result()
			require.NoError(t, err)
			return info["Clients"]["connected_clients"]
		}
		before := connections()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := s.Shards()[0].Wait(ctx,
				store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Minute})
			ended <- err
		}()
		require.Eventually(t, func() bool { return connections() != before }, time.Minute, time.Millisecond)
		cancel()
		select {
		case err := <-ended:
			require.ErrorIs(t, err, context.Canceled)
		case <-time.After(time.Minute):
			require.Fail(t, "Wait did not end")
		}
		insert(t, s, entry("a"))
		notified, err := s.Shards()[0].Wait(t.Context(), store.WaitOptions{
			Groups: []string{store.GroupPush}, Timeout: time.Minute,
		})
		require.NoError(t, err)
		require.Equal(t, []job.Queue{lane}, notified)
	})
}

func TestLead_CopiesAPartlyWrittenPolicy(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insert(t, s, entry("a"))
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
		require.NoError(t, err)
		require.NoError(t, s.Client.Del(t.Context(), s.shards[0].Keys.Limits).Err()) // as if the copy had not been made
		lead, err := s.Shards()[0].Lead(t.Context())
		require.NoError(t, err)
		claimed := claimAll(t, s, 1)
		require.Empty(t, claimed.Jobs)
		require.True(t, claimed.Queues[0].Blocked)
		topics, revision, err := storetest.ListTopics(t.Context(), s)
		require.NoError(t, err)
		require.Len(t, topics, 1)
		require.Equal(t, revision, claimed.Revision)
		_, err = s.Shards()[0].Lead(t.Context())
		require.ErrorIs(t, err, store.ErrNotLeader)
		require.NoError(t, lead.Extend(t.Context()))
		require.NoError(t, lead.Release(t.Context()))
	})
}

func TestLead_CopiesAPartlyWrittenPolicyWhileHeld(t *testing.T) {
	s, l, wait := leader(t)
	insert(t, s, entry("a"))
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: true}})
	require.NoError(t, err)
	require.NoError(t, s.Client.Del(t.Context(), s.shards[0].Keys.Limits).Err()) // as if the copy had not been made
	wait()
	_, err = s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{Lead: l})
	require.NoError(t, err)
	require.Empty(t, claimAll(t, s, 1).Jobs)
	require.NoError(t, s.Client.Del(t.Context(), s.shards[0].Keys.Limits).Err())
	wait()
	require.NoError(t, l.Extend(t.Context()))
	require.Len(t, claimAll(t, s, 1).Jobs, 1, "nothing was written since, nothing is copied")
}

func TestResume_NotifiesEveryLane(t *testing.T) {
	s := open(t, Options{URL: redistest.Start(t).URL()})
	put := func(paused bool) {
		_, err := store.PutTopic(t.Context(), s,
			store.Topic{Namespace: lane.Namespace, Name: lane.Topic, Policy: policy.Topic{Paused: paused}})
		require.NoError(t, err)
	}
	put(true)
	const lanes = 400
	id := 0
	for range lanes * 2 / batch {
		insert(t, s, bulk(&id, lanes, 0)...)
	}
	put(false)
	for rounds := 0; ; rounds++ {
		require.Less(t, rounds, 100)
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		if carried.Next != 0 {
			break
		}
	}
	notified, err := s.Shards()[0].Wait(t.Context(),
		store.WaitOptions{Groups: []string{store.GroupPush}, Timeout: time.Second})
	require.NoError(t, err)
	require.Len(t, notified, lanes)
}
