package pull_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ringback/ringback/dispatcher/pull"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// endless is a store with one shard, whose 16 lanes always have jobs. Its calls take no time, so that only the Puller's
// work is measured.
type endless struct {
	store.Shard

	made  atomic.Int64
	lanes []job.Queue
}

func (s *endless) Wait(ctx context.Context, _ store.WaitOptions) ([]job.Queue, error) {
	if s.made.CompareAndSwap(0, 1) {
		return s.lanes, nil
	}
	<-ctx.Done()
	return nil, ctx.Err()
}

func (*endless) Notify(context.Context, []job.Queue) error { return nil }

func (s *endless) Claim(_ context.Context, token store.Token, r store.ClaimRequest) (store.ClaimResult, error) {
	result := store.ClaimResult{Jobs: make([]store.ClaimedJob, 0, r.Max), Queues: make([]store.QueueStatus,
		len(r.Queues))}
	for i, q := range r.Queues {
		result.Queues[i] = store.QueueStatus{Queue: q.Queue, More: true}
		for n := 0; n < q.Max && len(result.Jobs) < r.Max; n++ {
			j := store.ClaimedJob{Lease: token, LeaseFor: q.Timeout}
			j.ID, j.Queue, j.BodyKind, j.FirstDueAt = fmt.Sprint(s.made.Add(1)), q.Queue, job.BodyText, time.Now()
			result.Jobs = append(result.Jobs, j)
		}
	}
	return result, nil
}

func (s *endless) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	claimed := store.ClaimResult{}
	if next != nil {
		claimed, _ = s.Claim(ctx, token, *next)
	}
	return make([]error, len(items)), claimed, nil
}

// fixed is one policy for all topics.
type fixed struct{ policy policy.Topic }

func (f fixed) Topic(string, string) policy.Topic { return f.policy }
func (fixed) Update(context.Context) error        { return nil }
func (fixed) UpdateNow(context.Context) error     { return nil }
func (fixed) Sync(context.Context, int64) bool    { return true }

func (fixed) Credentials(string, string) (job.Credentials, error) { return job.Credentials{}, nil }
func (fixed) OpenHeader(job.Queue, string, string) (job.HeaderSecret, error) {
	return job.HeaderSecret{}, nil
}
func (fixed) Signer(store.Lane) (job.Signer, error) { return nil, nil }

func (fixed) callbacks(pool.AttemptEvent) []store.NewJob { return nil }

// BenchmarkPull_Batches settles batches of 32 jobs and leases the next ones, by 8 clients. An operation is one job.
func BenchmarkPull_Batches(b *testing.B) {
	s := &endless{}
	for n := range 16 {
		s.lanes = append(s.lanes,
			job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: fmt.Sprint("lane-", n)})
	}
	policies := fixed{policy.Topic{Deliver: policy.DeliverPull}.WithDefaults(policy.Builtin())}
	p := pull.New(pull.Options{
		Store: single{Store: storetest.NewModel(storetest.ModelOptions{}), shard: s}, Policies: policies,
		Owner: store.NewLeaseOwner(), Callbacks: policies.callbacks, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(b.Context())
	var running, clients sync.WaitGroup
	running.Go(func() { p.Run(ctx) })
	const size = 32
	var left atomic.Int64
	left.Store(int64(b.N))
	next := store.LeaseRequest{
		Namespace: job.DefaultNamespace, Topic: topic, Max: size,
		Wait: time.Minute, Lease: time.Minute,
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range 8 {
		clients.Go(func() {
			leased, err := p.Lease(ctx, next)
			for err == nil && left.Add(-size) > -size {
				reports := make([]store.LeaseReport, len(leased))
				for i := range leased {
					reports[i] = store.LeaseReport{Lease: leased[i].ClientLease, Result: store.LeaseDone}
				}
				_, leased, err = p.Settle(ctx, reports, &next)
			}
			if err != nil {
				b.Error(err)
			}
		})
	}
	clients.Wait()
	b.StopTimer()
	cancel()
	running.Wait()
}
