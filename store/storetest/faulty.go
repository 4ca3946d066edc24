package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Fault is what happens to a call.
type Fault uint8

// The faults.
const (
	None      Fault = iota
	Before          // it fails and changed nothing
	LostReply       // it took effect, and fails all the same
)

// Faulty returns s with injected faults. Decide gets the method's name at every call that changes something, and at
// Wait; it must be safe for concurrent use. A faulty call fails with store.ErrUnavailable. Reads, Ping and Close never
// fail.
func Faulty(s store.Store, decide func(method string) Fault) store.Store {
	return &faulty{Store: s, decide: decide}
}

// Nth makes the n-th call (from 1) of a method fail.
func Nth(method string, n int, fault Fault) func(string) Fault {
	var mu sync.Mutex
	return func(m string) Fault {
		mu.Lock()
		defer mu.Unlock()
		if m != method {
			return None
		}
		if n--; n == 0 {
			return fault
		}
		return None
	}
}

// Share makes a share of all calls fail, 0 to 1, half of them before and half after they take effect. The same seed
// gives the same sequence.
func Share(seed uint64, share float64) func(string) Fault {
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, seed))
	return func(string) Fault {
		mu.Lock()
		defer mu.Unlock()
		switch x := random.Float64(); {
		case x >= share:
			return None
		case x < share/2:
			return Before
		default:
			return LostReply
		}
	}
}

type faulty struct {
	store.Store
	decide func(string) Fault
}

func (f *faulty) Shards() []store.Shard {
	return WrapShards(f.Store, func(_ int, next store.Shard) store.Shard { return faultyShard{next, f} })
}

type faultyShard struct {
	store.Shard
	*faulty
}

func injected(reason string) error {
	return &store.UnavailableError{Reason: "injected fault: " + reason}
}

// intercept makes one call, or fails before or after it.
func intercept[T any](decide func(string) Fault, method string, do func() (T, error)) (T, error) {
	var none T
	fault := decide(method)
	if fault == Before {
		return none, injected(method + " not sent")
	}
	value, err := do()
	if fault == LostReply {
		return none, injected(method + " lost its reply")
	}
	return value, err
}

func (f faultyShard) Insert(
	ctx context.Context, token store.Token, entries []store.NewJob,
) ([]store.InsertResult, error) {
	return intercept(f.decide, "Insert",
		func() ([]store.InsertResult, error) { return f.Shard.Insert(ctx, token, entries) })
}

func (f faultyShard) Lead(ctx context.Context) (store.Leadership, error) {
	return intercept(f.decide, "Lead", func() (store.Leadership, error) { return f.Shard.Lead(ctx) })
}

func (f faultyShard) Carry(
	ctx context.Context, token store.Token, round store.CarryOptions,
) (store.CarryResult, error) {
	return intercept(f.decide, "Carry", func() (store.CarryResult, error) { return f.Shard.Carry(ctx, token, round) })
}

func (f faultyShard) Wait(ctx context.Context, watch store.WaitOptions) ([]job.Queue, error) {
	return intercept(f.decide, "Wait", func() ([]job.Queue, error) { return f.Shard.Wait(ctx, watch) })
}

func (f faultyShard) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	return intercept(f.decide, "WaitAgenda", func() (bool, error) { return f.Shard.WaitAgenda(ctx, timeout) })
}

func (f faultyShard) Notify(ctx context.Context, queues []job.Queue) error {
	_, err := intercept(f.decide, "Notify", func() (struct{}, error) { return struct{}{}, f.Shard.Notify(ctx, queues) })
	return err
}

func (f faultyShard) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	return intercept(f.decide, "ClaimExpired",
		func() ([]store.ClaimedJob, error) { return f.Shard.ClaimExpired(ctx, token, request) })
}

func (f faultyShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	return intercept(f.decide, "Claim", func() (store.ClaimResult, error) { return f.Shard.Claim(ctx, token, request) })
}

func (f faultyShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	type answer struct {
		errs    []error
		claimed store.ClaimResult
	}
	a, err := intercept(f.decide, "Settle", func() (answer, error) {
		errs, claimed, err := f.Shard.Settle(ctx, token, items, next)
		return answer{errs, claimed}, err
	})
	return a.errs, a.claimed, err
}

func (f faultyShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	return intercept(f.decide, "Cancel",
		func() (job.Job, error) { return f.Shard.Cancel(ctx, token, ref, cancellation) })
}

func (f faultyShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	return intercept(f.decide, "Replace",
		func() (job.Job, error) { return f.Shard.Replace(ctx, token, ref, replacement) })
}

func (f faultyShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	return intercept(f.decide, "Revive",
		func() ([]store.ReviveResult, error) { return f.Shard.Revive(ctx, token, items) })
}

func (f faultyShard) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	return intercept(f.decide, "Sweep", func() (store.SweepResult, error) { return f.Shard.Sweep(ctx, token, limit) })
}

func (f faultyShard) Repair(ctx context.Context) (store.RepairResult, error) {
	return intercept(f.decide, "Repair", func() (store.RepairResult, error) { return f.Shard.Repair(ctx) })
}

func (f *faulty) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return intercept(f.decide, "PutTopic",
		func() (store.Document, error) { return f.Store.PutDocument(ctx, token, doc, limits) })
}

func (f faultyShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	return intercept(f.decide, "Purge", func() ([]error, error) { return f.Shard.Purge(ctx, token, items) })
}

func (f faultyShard) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) ([]store.Outcome, error) {
	return intercept(f.decide, "PutRecords",
		func() ([]store.Outcome, error) { return f.Shard.PutRecords(ctx, token, records) })
}

func (f faultyShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return intercept(f.decide, "PutLane",
		func() (store.Document, error) { return f.Shard.PutDocument(ctx, token, doc, limits) })
}

func (f faultyShard) Permit(
	ctx context.Context, token store.Token, asks []store.PermitRequest,
) ([]store.Permit, error) {
	return intercept(f.decide, "Permit", func() ([]store.Permit, error) { return f.Shard.Permit(ctx, token, asks) })
}

func (f faultyShard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	return intercept(f.decide, "Alarm", func() (bool, error) { return f.Shard.Alarm(ctx, token, alarm) })
}
