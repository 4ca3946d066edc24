package sqlite

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func TestClaim_TakesNothingForACallerThatHasLeft(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJob("a", 0), newJob("b", 0))
	h := claimJobs(t, s, 1)[0]
	release := blockWriter(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := s.Claim(ctx, store.NewToken(), claimRequest(1))
		gone <- err
	}()
	next := claimRequest(1)
	go func() {
		items := []store.Settlement{settlementOf(h, policy.Verdict{Kind: policy.Delivered})}
		_, _, err := s.Settle(ctx, store.NewToken(), items, &next)
		gone <- err
	}()
	waitForCalls(t, s, 2)
	cancel()
	require.ErrorIs(t, <-gone, context.Canceled)
	require.ErrorIs(t, <-gone, context.Canceled)
	release()
	inWriter(t, s, func() {}) // the group may not have been taken yet
	require.Eventually(t, func() bool { return get(t, s, h.ID).State == job.Delivered }, time.Minute, time.Millisecond)
	leased := 0
	inWriter(t, s, func() { leased = len(s.mem.Leases) })
	require.Zero(t, leased)
	require.Len(t, claimJobs(t, s, 1), 1)
}

func TestEnded_ReturnsTheContextsCause(t *testing.T) {
	s := openStore(t, options(t))
	why := errors.New("the caller had enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(why)
	_, err := s.TopicStats(ctx, store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, why)
	_, err = s.Get(ctx, ref("a"))
	require.ErrorIs(t, err, context.Canceled)
	plain, cancelPlain := context.WithCancel(t.Context())
	cancelPlain()
	_, err = s.TopicStats(plain, store.StatsFilter{Namespace: lane.Namespace, Topics: []string{lane.Topic}})
	require.EqualError(t, err, "count jobs: context canceled")
}

func TestWriter_SharesNothingWithACallerThatHasLeft(t *testing.T) {
	s := openStore(t, options(t))
	insert(t, s, newJob("a", time.Hour))
	calls := map[string]func(context.Context) error{
		"PutTopic": func(ctx context.Context) error {
			_, err := store.PutTopic(ctx, s, store.Topic{Namespace: job.DefaultNamespace, Name: "t"})
			return err
		},
		"Carry": func(ctx context.Context) error {
			_, err := s.Carry(ctx, store.NewToken(), store.CarryOptions{})
			return err
		},
		"Sweep": func(ctx context.Context) error { _, err := s.Sweep(ctx, store.NewToken(), 10); return err },
		"Cancel": func(ctx context.Context) error {
			_, err := s.Cancel(ctx, store.NewToken(), ref("a"), store.Cancellation{})
			return err
		},
		"Totals": func(ctx context.Context) error { _, err := s.Totals(ctx, job.DefaultNamespace); return err },
		"TopicStats": func(ctx context.Context) error {
			_, err := s.TopicStats(ctx, store.StatsFilter{Namespace: job.DefaultNamespace, Limit: store.MaxBatch})
			return err
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			release := blockWriter(t, s)
			ctx, leave := context.WithCancel(t.Context())
			context.AfterFunc(ctx, release) // at once, with nothing that orders it after the caller's return
			left := make(chan error, 1)
			go func() { left <- call(ctx) }()
			waitForCalls(t, s, 1)
			leave()
			if err := <-left; err != nil { // the writer may have been quicker
				require.ErrorIs(t, err, context.Canceled)
			}
			inWriter(t, s, func() {}) // the race detector has seen what the writer touched
		})
	}
}
