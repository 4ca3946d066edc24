package redis

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

var quiet = slog.New(slog.DiscardHandler)

// patient returns an address with timeouts that a slow machine does not reach, unless it has its own.
func patient(url string) string {
	switch {
	case strings.Contains(url, "_timeout="):
		return url
	case strings.Contains(url, "?"):
		return url + "&read_timeout=1m&dial_timeout=1m"
	default:
		return url + "?read_timeout=1m&dial_timeout=1m"
	}
}

// open opens a store that is closed with the test.
func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	if o.Logger == nil {
		o.Logger = quiet
	}
	o.URL = patient(o.URL)
	s, err := Open(tb.Context(), o)
	require.NoError(tb, err)
	tb.Cleanup(func() { require.NoError(tb, s.Close()) })
	return s
}

// each runs a test on a real server, and in make test-all on miniredis, too.
func each(t *testing.T, test func(t *testing.T, s *Store)) {
	if testkit.All {
		t.Run("miniredis", func(t *testing.T) {
			test(t, open(t, Options{URL: "redis://" + miniredis.RunT(t).Addr()}))
		})
	}
	t.Run("redis", func(t *testing.T) { test(t, open(t, Options{URL: redistest.Start(t).URL()})) })
}

var lane = job.Queue{Namespace: job.DefaultNamespace, Topic: "t", Lane: "l"}

// entry returns a job of the test queue, due now.
func entry(id string) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{
		ID: id, Queue: lane, URL: "https://example.com/hooks/0123456789", Method: "POST",
		ContentType: "application/json",
		BodyKind:    job.BodyJSON, Body: fmt.Appendf(nil, `{"id":%q,"padding":"%041d"}`, "x", 0),
	}}}
}

func ref(id string) job.Ref { return job.Ref{Namespace: job.DefaultNamespace, ID: id} }

func insert(tb testing.TB, s *Store, entries ...store.NewJob) []store.InsertResult {
	tb.Helper()
	results, err := s.Shards()[0].Insert(tb.Context(), store.NewToken(), entries)
	require.NoError(tb, err)
	return results
}

func wants(n int) store.ClaimRequest {
	return store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: lane, Max: n, Timeout: 10 * time.Second}}, Max: n, MaxBytes: 1 << 20,
		Margin: 5 * time.Second,
	}
}

func claimAll(tb testing.TB, s *Store, n int) store.ClaimResult {
	tb.Helper()
	claimed, err := s.Shards()[0].Claim(tb.Context(), store.NewToken(), wants(n))
	require.NoError(tb, err)
	return claimed
}

// settlement returns the settlement of a claimed job.
func settlement(h store.ClaimedJob, v policy.Verdict, status int) store.Settlement {
	return store.Settlement{
		Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: v,
		Attempt: job.Attempt{
			N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: time.Now().UTC(),
			Duration: time.Millisecond, Status: status, Verdict: v.Kind.String(), Reason: v.Reason,
		},
	}
}

func settle(tb testing.TB, s *Store, items ...store.Settlement) {
	tb.Helper()
	errs, _, err := s.Shards()[0].Settle(tb.Context(), store.NewToken(), items, nil)
	require.NoError(tb, err)
	for _, err := range errs {
		require.NoError(tb, err)
	}
}

// reviveOne revives one job.
func reviveOne(t *testing.T, s *Store, token store.Token, id string, delay time.Duration) (job.Job, error) {
	t.Helper()
	results, err := s.Shards()[0].Revive(t.Context(), token, []store.Revival{{Ref: ref(id), Delay: delay}})
	if err != nil {
		return job.Job{}, err
	}
	require.Len(t, results, 1)
	return results[0].Job, results[0].Err
}

func TestStore_DeliversAJob(t *testing.T) {
	each(t, func(t *testing.T, s *Store) {
		e := entry("a")
		e.Header = map[string][]string{"X-A": {"1", "2"}}
		e.Labels = map[string]string{"k": "v"}
		e.Ladder = policy.Ladder{time.Millisecond, time.Second}
		e.Retries = new(3)
		e.ExpiresIn = time.Hour
		e.Timeout = 1500 * time.Millisecond
		e.Fingerprint = []byte("print")
		in := insert(t, s, e)
		require.Equal(t, store.Created, in[0].Outcome)
		require.Equal(t, job.Ready, in[0].Job.State)

		got, err := s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, in[0].Job, got)

		notified, err := s.Shards()[0].Wait(t.Context(), store.WaitOptions{
			Groups: []string{store.GroupPush}, Timeout: time.Minute,
		})
		require.NoError(t, err)
		require.Equal(t, []job.Queue{lane}, notified)

		claimed := claimAll(t, s, 10)
		require.Len(t, claimed.Jobs, 1)
		require.Equal(t, 6500*time.Millisecond, claimed.Jobs[0].LeaseFor)
		got, err = s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, job.Running, got.State)

		settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Again, Wait: time.Hour}, 500))
		got, err = s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, job.Scheduled, got.State)
		require.Equal(t, 1, got.Attempts)
		require.Equal(t, 1, got.FailedAttempts)
		require.Len(t, got.History, 1)

		edited, err := s.Shards()[0].Replace(t.Context(), store.NewToken(), ref("a"),
			store.Replacement{Kind: job.EventRun, Due: &job.TimeOrDelay{}})
		require.NoError(t, err)
		require.Equal(t, job.Ready, edited.State)
		require.EqualValues(t, 2, edited.Version)
		require.Equal(t, e.Header, edited.Header)

		claimed = claimAll(t, s, 10)
		require.Len(t, claimed.Jobs, 1)
		settle(t, s, settlement(claimed.Jobs[0], policy.Verdict{Kind: policy.Delivered}, 200))
		got, err = s.Shards()[0].Get(t.Context(), ref("a"))
		require.NoError(t, err)
		require.Equal(t, job.Delivered, got.State)
		require.Len(t, got.History, 2)
		require.Len(t, got.Events, 1)

		again := insert(t, s, e)
		require.Equal(t, store.Existing, again[0].Outcome)

		page, err := s.Shards()[0].List(t.Context(),
			store.Filter{Namespace: "default", Topic: "t", States: []job.State{job.Delivered}, Limit: 5})
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1)
		require.Nil(t, page.Jobs[0].Body)
		require.False(t, page.More)

		revived, err := reviveOne(t, s, store.NewToken(), "a", time.Minute)
		require.NoError(t, err)
		require.Equal(t, job.Scheduled, revived.State)
		cancelled, err := s.Shards()[0].Cancel(t.Context(), store.NewToken(), ref("a"), store.Cancellation{})
		require.NoError(t, err)
		require.Equal(t, job.Cancelled, cancelled.State)

		stats, err := s.Shards()[0].TopicStats(t.Context(),
			store.StatsFilter{Namespace: "default", Limit: store.MaxBatch})
		require.NoError(t, err)
		require.Equal(t, []store.TopicStats{{Namespace: "default", Topic: "t", Registered: 1, Cancelled: 1}}, stats)
		carried, err := s.Shards()[0].Carry(t.Context(), store.NewToken(), store.CarryOptions{})
		require.NoError(t, err)
		require.Negative(t, carried.Next)
	})
}
