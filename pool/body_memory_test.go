package pool_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// copyingShard copies the bodies of claimed jobs, as a database does.
type copyingShard struct{ store.Shard }

func newCopyingStore() store.Store {
	return wrap(model(), func(next store.Shard) store.Shard { return copyingShard{next} })
}

func (s copyingShard) Claim(ctx context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	claimed, err := s.Shard.Claim(ctx, token, r)
	return copied(claimed), err
}

func (s copyingShard) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := s.Shard.Settle(ctx, tok, it, n)
	return errs, copied(claimed), err
}

func copied(claimed store.ClaimResult) store.ClaimResult {
	for i := range claimed.Jobs {
		claimed.Jobs[i].Body = bytes.Clone(claimed.Jobs[i].Body)
	}
	return claimed
}

// An attempt that hangs does not keep the bodies in memory that came with its own.
func TestAttempt_FreesItsBodyWhenItEnds(t *testing.T) {
	const jobs = 8
	s := newCopyingStore()
	entries := make([]store.NewJob, jobs)
	for i := range entries {
		e := &entries[i]
		e.ID = fmt.Sprintf("big-%d", i)
		e.Queue = queueOf("big", "lane")
		e.URL, e.Method, e.Body = "https://x.example/", "POST", make([]byte, 100<<10)
	}
	_, err := s.Shards()[0].Insert(t.Context(), store.NewToken(), entries)
	require.NoError(t, err)
	var came, gone atomic.Int32
	over := make(chan struct{})
	defer close(over)
	run(t, s, delivererFunc(func(_ context.Context, r job.Request) policy.Result {
		runtime.AddCleanup(&r.Body[0], func(int) { gone.Add(1) }, 0)
		if came.Add(1) == 1 {
			<-over
		}
		return policy.Result{Status: 200}
	}), nil)
	require.Eventually(t, func() bool {
		runtime.GC()
		return gone.Load() == jobs-1
	}, 5*time.Minute, 10*time.Millisecond)
}
