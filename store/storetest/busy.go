package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// AuditBusy requires that audit finds nothing in a store of one shard while jobs are inserted, claimed, settled and
// carried. It stops them when it returns.
func AuditBusy(t *testing.T, s store.Store, audit func() []store.Fault) {
	t.Helper()
	_, err := store.PutTopic(t.Context(), s,
		store.Topic{Namespace: job.DefaultNamespace, Name: "ordered", Policy: policy.Topic{Ordered: true}})
	require.NoError(t, err)
	var stop atomic.Bool
	var rounds atomic.Int64
	var load sync.WaitGroup
	defer func() {
		stop.Store(true)
		load.Wait()
	}()
	for worker := range 2 {
		load.Go(func() {
			for n := 0; !stop.Load(); n++ {
				if err := busyRound(t, s.Shards()[0], fmt.Sprint(worker, "-", n), n); err != nil {
					t.Error(err)
					return
				}
				rounds.Add(1)
			}
		})
	}
	for looks := 0; !t.Failed() && (looks < 4 || rounds.Load() < 30); looks++ {
		require.Empty(t, audit())
	}
}

// busyRound inserts jobs into some lanes, cancels one, claims some, settles them in every way, and carries.
func busyRound(t *testing.T, shard store.Shard, name string, n int) error {
	t.Helper()
	ctx := t.Context()
	jobs := make([]store.NewJob, 20)
	for i := range jobs {
		q := job.Queue{
			Namespace: job.DefaultNamespace, Topic: []string{"t", "u", "ordered"}[i%3],
			Lane: fmt.Sprint("lane-", i%4),
		}
		jobs[i].Spec = job.Spec{
			ID: fmt.Sprint(name, "-", i), Queue: q,
			URL: "https://example.com/hooks", Method: "POST",
		}
		if i%5 == 0 {
			jobs[i].Delay, jobs[i].ExpiresIn = 20*time.Millisecond, time.Second
		}
	}
	if _, err := shard.Insert(ctx, store.NewToken(), jobs); err != nil {
		return err
	}
	_, err := shard.Cancel(ctx, store.NewToken(), jobs[n%20].Ref(), store.Cancellation{})
	if _, refused := errors.AsType[*store.StateError](err); err != nil && !refused &&
		!errors.Is(err, store.ErrNotFound) {
		return err
	}
	claimed, err := shard.Claim(ctx, store.NewToken(), store.ClaimRequest{
		Queues: []store.QueueClaim{{Queue: jobs[n%20].Queue, Max: 8, Timeout: 10 * time.Second}}, Max: 8,
		MaxBytes: 1 << 20, Margin: 5 * time.Second,
	})
	if err != nil {
		return err
	}
	for i, j := range claimed.Jobs {
		verdict := []policy.Verdict{
			{Kind: policy.Delivered},
			{Kind: policy.Dead, Reason: policy.ReasonGaveUp},
			{Kind: policy.Again, Wait: 10 * time.Millisecond},
		}[i%3]
		item := store.Settlement{Ref: j.Ref(), Queue: j.Queue, Lease: j.Lease, Verdict: verdict, Attempt: job.Attempt{
			N: j.Attempts + 1, Kind: job.KindAttempt, StartedAt: time.Now().UTC(), Status: 200,
			Verdict: verdict.Kind.String(), Reason: verdict.Reason,
		}}
		if i%4 == 0 {
			born := jobs[0]
			born.ID = "outbox-" + j.ID
			item.Outbox = []store.NewJob{born}
		}
		if _, _, err := shard.Settle(ctx, store.NewToken(), []store.Settlement{item}, nil); err != nil {
			return err
		}
	}
	_, err = shard.Carry(ctx, store.NewToken(), store.CarryOptions{})
	return err
}
