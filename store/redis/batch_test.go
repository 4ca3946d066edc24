package redis

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/storetest"
)

// insertDead inserts jobs of the test queue and settles them dead.
func insertDead(t *testing.T, s *Store, entries ...store.NewJob) {
	t.Helper()
	insert(t, s, entries...)
	claimed, err := s.Shards()[0].Claim(t.Context(), store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: lane, Max: len(entries), Timeout: time.Minute}},
		Max:    len(entries), MaxBytes: 1 << 30,
	})
	require.NoError(t, err)
	require.Len(t, claimed.Jobs, len(entries))
	for _, h := range claimed.Jobs {
		settle(t, s, settlement(h, policy.Verdict{Kind: policy.Dead, Reason: policy.ReasonGaveUp}, 410))
	}
}

func largeJob(id string, size int) store.NewJob {
	e := entry(id)
	e.BodyKind, e.Body = job.BodyText, []byte(strings.Repeat("x", size))
	return e
}

func TestRevive_ResultIsBoundedAndRepeatable(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		var entries []store.NewJob
		var items []store.Revival
		for i := range 10 {
			id := fmt.Sprint("job", i)
			entries = append(entries, largeJob(id, 1<<20))
			items = append(items,
				store.Revival{Ref: ref(id), Delay: time.Hour, URL: "https://new.example/" + strings.Repeat("u", 200)})
		}
		entries[0].ExpiresIn = 2 * time.Hour
		insertDead(t, s, entries...)
		token := store.NewToken()
		var first []store.ReviveResult
		for turn := range 2 {
			results, err := s.Shards()[0].Revive(t.Context(), token, items)
			require.NoError(t, err)
			bytes := 0
			for i, r := range results {
				require.NoError(t, r.Err)
				require.Equal(t, items[i].URL, r.Job.URL)
				require.Equal(t, 1, r.Job.Generation)
				bytes += len(r.Job.Body)
			}
			require.Equal(t, 7<<20, bytes, "beyond its bound jobs come without their body")
			if turn == 0 {
				first = results
			}
			require.Equal(t, first, results)
		}
		for _, e := range entries {
			found, err := s.Shards()[0].Get(t.Context(), e.Ref())
			require.NoError(t, err)
			require.Equal(t, e.Body, found.Body)
			require.Equal(t, 1, found.Generation)
		}
		require.False(t, first[0].Job.ExpiresAt.IsZero())
	})
}

func TestRevive_RepeatReturnsTheFirstResult(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insertDead(t, s, entry("a"), entry("b"))
		items := []store.Revival{
			{Ref: ref("a"), Delay: time.Hour},
			{Ref: ref("b"), Delay: time.Hour},
			{Ref: ref("a")},
			{Ref: ref("no")},
		}
		token := store.NewToken()
		first, err := s.Shards()[0].Revive(t.Context(), token, items)
		require.NoError(t, err)
		require.NoError(t, first[0].Err)
		var state *store.StateError
		require.ErrorAs(t, first[2].Err, &state)
		require.Equal(t, job.Scheduled, state.State)
		require.ErrorIs(t, first[3].Err, store.ErrNotFound)
		_, err = storetest.Edit(t.Context(), s.Shards()[0], store.NewToken(), ref("a"),
			func(spec *job.Spec) { spec.URL = "https://other.example/" })
		require.NoError(t, err)
		_, err = s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("b"), store.Cancellation{})
		require.NoError(t, err)
		insert(t, s, entry("no"))
		again, err := s.Shards()[0].Revive(t.Context(), token, items)
		require.NoError(t, err)
		require.Equal(t, first, again)
	})
}

// A new URL or expiry replaces one field of the record. The other fields stay.
func TestRevive_KeepsUnchangedFields(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		e := entry("a")
		e.ExpiresIn, e.Fingerprint = time.Millisecond, []byte("print")
		e.Header = map[string][]string{"X-A": {strings.Repeat("a", 300)}}
		e.OnDead = &policy.Callback{URL: "https://callback.example/"}
		insertDead(t, s, e)
		sh := s.shards[0]
		before, err := s.Client.HGet(t.Context(), sh.Keys.Jobs, "a").Result()
		require.NoError(t, err)
		newer := string(codec.AppendField(nil, 60, []byte("from the future")))
		require.NoError(t, s.Client.HSet(t.Context(), sh.Keys.Jobs, "a", before+newer).Err())
		require.Eventually(t, func() bool {
			found, err := s.Shards()[0].Get(t.Context(), ref("a"))
			require.NoError(t, err)
			return time.Now().After(found.ExpiresAt.Add(10 * time.Millisecond)) // the server's clock is ours
		}, time.Minute, 10*time.Millisecond)
		url := "https://new.example/" + strings.Repeat("n", 400)
		revival := store.Revival{Ref: ref("a"), Delay: time.Hour, ExpiresIn: 2 * time.Hour, URL: url, From: job.Dead}
		results, err := s.Shards()[0].Revive(t.Context(), store.NewToken(), []store.Revival{revival})
		require.NoError(t, err)
		require.NoError(t, results[0].Err)
		got := results[0].Job
		require.WithinDuration(t, time.Now().Add(2*time.Hour), got.ExpiresAt, time.Minute)
		want := e.Spec
		want.URL, want.FirstURL, want.Unknown = url, e.URL, []byte(newer)
		require.Equal(t, want, got.Spec)
		after, err := s.Client.HGet(t.Context(), sh.Keys.Jobs, "a").Result()
		require.NoError(t, err)
		require.Contains(t, after, newer)
	})
}

func TestBatch_UnreadableJobStopsNoOther(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insertDead(t, s, entry("good"), entry("newer"))
		key := s.shards[0].Keys.Jobs
		record, err := s.Client.HGet(t.Context(), key, "newer").Result()
		require.NoError(t, err)
		require.NoError(t, s.Client.HSet(t.Context(), key, "newer", "\x07"+record[1:]).Err())
		results, err := s.Shards()[0].Revive(t.Context(), store.NewToken(),
			[]store.Revival{{Ref: ref("newer")}, {Ref: ref("good")}})
		require.NoError(t, err)
		require.Error(t, results[0].Err)
		require.NoError(t, results[1].Err)
		require.Equal(t, job.Ready, results[1].Job.State)
		errs, err := s.Shards()[0].Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: ref("newer")}})
		require.NoError(t, err)
		require.NoError(t, errs[0], "an unreadable job can be purged")
	})
}

// A batch is repeated if one of its jobs is in another queue when its script runs.
func TestBatch_IsRepeatedWhenAJobMoved(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		insertDead(t, s, entry("a"))
		other := entry("b")
		other.Lane = "other"
		insert(t, s, other)
		sh := s.shards[0]
		found, _, err := sh.Find(t.Context(), []job.Queue{other.Queue})
		require.NoError(t, err)
		for position := range 2 {
			c := sh.NewCall(scriptRevive, sh.Keys.Reply("", ""), found, nil, 9)
			c.Add(1, 1, position, "a", "0", "", "", "", `{"ms":`)
			reply, err := s.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, "again", layout.Str(reply))
			c = sh.NewCall(scriptPurge, sh.Keys.Reply("", ""), found, nil, 3)
			c.Add(position, "a", "")
			reply, err = s.Run(t.Context(), c)
			require.NoError(t, err)
			require.Equal(t, "again", layout.Str(reply))
		}
	})
}

// While memory is full, calls that take more memory are refused whole. Calls that deliveries need are not.
func TestFull_LanesContinue(t *testing.T) {
	server := redistest.Start(t)
	s, c := open(t, Options{URL: server.URL()}), client(t, server.Addr())
	insertDead(t, s, entry("dead"), entry("purged"))
	insert(t, s, entry("a"), entry("b"))
	put := putLane(t, s, policy.Lane{LaneRate: policy.Rate{Starts: 100, Per: time.Hour}})
	setMaxMemory(t, c, "1")

	_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(),
		store.Lane{Queue: lane, Settings: policy.Lane{Paused: true}})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = s.Shards()[0].Alarm(t.Context(), store.NewToken(), store.Alarm{
		Namespace: lane.Namespace,
		Topic:     lane.Topic, Raised: true, Outbox: []store.NewJob{entry("callback")},
	})
	require.ErrorIs(t, err, store.ErrUnavailable)
	_, err = s.Shards()[0].Revive(t.Context(), store.NewToken(),
		[]store.Revival{{Ref: ref("dead"), URL: "https://new.example/"}})
	require.ErrorIs(t, err, store.ErrUnavailable)
	for range 2 {
		permits, err := s.Shards()[0].Permit(t.Context(), "a token",
			[]store.PermitRequest{{Topic: "t", Rate: policy.Rate{Starts: 1, Per: time.Hour}, Starts: 1}})
		require.NoError(t, err)
		require.Equal(t, 1, permits[0].Starts)
	}
	claimed := claimAll(t, s, 1).Jobs
	require.Len(t, claimed, 1)
	require.True(t, claimed[0].Rated)
	item := settlement(claimed[0], policy.Verdict{Kind: policy.Delivered}, 200)
	item.LaneChange = store.LaneChange{Cooldown: time.Hour}
	settle(t, s, item)
	errs, err := s.Shards()[0].Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: ref("purged")}})
	require.NoError(t, err)
	require.NoError(t, errs[0])

	setMaxMemory(t, c, "0")
	left := claimAll(t, s, 1)
	require.Empty(t, left.Jobs)
	require.True(t, left.Queues[0].Blocked)
	require.Equal(t, put.Revision, left.Queues[0].LaneDocument.Revision)
	found, err := s.Shards()[0].Get(t.Context(), ref("dead"))
	require.NoError(t, err)
	require.Equal(t, job.Dead, found.State)
	carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	require.Empty(t, carried.Outbox)
}
