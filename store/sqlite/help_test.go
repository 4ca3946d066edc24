package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/unit"
)

func options(t testing.TB) Options {
	return Options{
		Path: filepath.Join(t.TempDir(), "jobs.db"), Limits: Defaults(policy.Builtin()).Limits(),
		Logger: slog.New(slog.DiscardHandler), driver: faultDriver{},
	}
}

// captureLog returns the log of stores that are opened with the options.
func captureLog(o *Options) *testkit.Log {
	l := &testkit.Log{}
	o.Logger = slog.New(slog.NewTextHandler(l, nil))
	return l
}

// openStore opens a store that is verified and closed when the test ends.
func openStore(t *testing.T, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	require.NoError(t, err)
	t.Cleanup(func() {
		if !t.Failed() {
			verify(t, s)
		}
		require.NoError(t, s.Close())
	})
	return s
}

var lane = job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "shop.example:443"}

func ref(id string) job.Ref { return job.Ref{Namespace: job.DefaultNamespace, ID: id} }

func newJob(id string, delay time.Duration) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{
		ID: id, Queue: lane, URL: "https://shop.example/hooks", Method: "POST",
	}, Delay: delay}}
}

func insert(t testing.TB, s *Store, entries ...store.NewJob) []store.InsertResult {
	t.Helper()
	inserted, err := s.Insert(t.Context(), store.NewToken(), entries)
	require.NoError(t, err)
	return inserted
}

// newJobs returns n jobs with ids of a prefix, due after delay.
func newJobs(prefix string, n int, delay time.Duration) []store.NewJob {
	entries := make([]store.NewJob, n)
	for i := range entries {
		entries[i] = newJob(fmt.Sprintf("%s-%04d", prefix, i), delay)
	}
	return entries
}

func claimJobs(t testing.TB, s *Store, n int) []store.ClaimedJob {
	t.Helper()
	claimed, err := s.Claim(t.Context(), store.NewToken(), claimRequest(n))
	require.NoError(t, err)
	return claimed.Jobs
}

func claimRequest(n int) store.ClaimRequest {
	return store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: lane, Max: n, Timeout: 10 * time.Second}},
		Max:    n, MaxBytes: 1 << 20, Margin: 5 * time.Second,
	}
}

func settlementOf(h store.ClaimedJob, verdict policy.Verdict) store.Settlement {
	return store.Settlement{
		Ref: h.Ref(), Queue: h.Queue, Lease: h.Lease, Verdict: verdict,
		Attempt: job.Attempt{N: h.Attempts + 1, Kind: job.KindAttempt, StartedAt: time.Now().UTC(), Status: 200},
	}
}

func settle(t testing.TB, s *Store, items ...store.Settlement) {
	t.Helper()
	errs, _, err := s.Settle(t.Context(), store.NewToken(), items, nil)
	require.NoError(t, err)
	for _, err := range errs {
		require.NoError(t, err)
	}
}

func revive(t testing.TB, s *Store, id string, delay time.Duration) job.Job {
	t.Helper()
	revived, err := s.Revive(t.Context(), store.NewToken(), []store.Revival{{Ref: ref(id), Delay: delay}})
	require.NoError(t, err)
	require.NoError(t, revived[0].Err)
	return revived[0].Job
}

func carry(t testing.TB, s *Store) store.CarryResult {
	t.Helper()
	carried, err := s.Carry(t.Context(), store.NewToken(), store.CarryOptions{})
	require.NoError(t, err)
	return carried
}

func get(t testing.TB, s *Store, id string) job.Job {
	t.Helper()
	found, err := s.Get(t.Context(), ref(id))
	require.NoError(t, err)
	return found
}

// inWriter runs a task in the writer, and waits until it is done.
func inWriter(t testing.TB, s *Store, task func()) {
	t.Helper()
	require.NoError(t, s.db.Submit(context.Background(), &op{Verb: "test", Run: func(*unit.Unit) error {
		task()
		return nil
	}}))
}

// blockWriter keeps the writer busy until release is called.
func blockWriter(t *testing.T, s *Store) (release func()) {
	t.Helper()
	began, released := make(chan struct{}), make(chan struct{})
	go func() {
		_ = s.db.Submit(context.Background(), &op{Verb: "stall", Run: func(*unit.Unit) error {
			close(began)
			<-released
			return nil
		}})
	}()
	<-began
	return sync.OnceFunc(func() { close(released) })
}

// waitForCalls waits until n calls wait for the writer.
func waitForCalls(t *testing.T, s *Store, n int) {
	t.Helper()
	require.Eventually(t, func() bool { return s.db.Waiting() == n }, time.Minute, time.Millisecond)
}

// A codeError is an error with a result code of SQLite.
type codeError int

func (e codeError) Error() string { return "injected fault" }
func (e codeError) Code() int     { return int(e) }

// unreadableSpec sets the specification of a job to as many bytes that cannot be decoded.
const unreadableSpec = "spec = CAST(replace(hex(zeroblob(length(spec))), '00', char(127)) AS BLOB)"
