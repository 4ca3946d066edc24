package storetest

import (
	"context"
	"math/rand/v2"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Fault says what happens to a call.
type Fault uint8

// The faults.
const (
	None      Fault = iota
	Before          // it fails and changed nothing
	LostReply       // it took effect, and fails all the same
)

// Faulty is s with faults. Decide is asked at every call of a method that changes something, and at Wait, with the
// method's name; it must be safe for concurrent use. A faulty call fails with an error that is store.ErrUnavailable.
// Reads, Ping and Close pass.
func Faulty(s store.Store, decide func(method string) Fault) store.Store {
	return &faulty{Store: s, decide: decide}
}

// Nth lets the n-th call (from 1) of a method fail.
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

// Share lets a share of all calls fail, 0 to 1, half of them before and half after they took effect. The same seed
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

func injected(reason string) error {
	return &store.UnavailableError{Reason: "injected fault: " + reason}
}

// through makes one call, or fails before or after it.
func through[T any](f *faulty, method string, do func() (T, error)) (T, error) {
	var none T
	fault := f.decide(method)
	if fault == Before {
		return none, injected(method + " not sent")
	}
	value, err := do()
	if fault == LostReply {
		return none, injected(method + " lost its reply")
	}
	return value, err
}

func (f *faulty) Insert(ctx context.Context, shard int, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	return through(f, "Insert", func() ([]store.InsertResult, error) { return f.Store.Insert(ctx, shard, token, entries) })
}

func (f *faulty) Lead(ctx context.Context, shard int) (store.Leadership, error) {
	return through(f, "Lead", func() (store.Leadership, error) { return f.Store.Lead(ctx, shard) })
}

func (f *faulty) Carry(ctx context.Context, shard int, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	return through(f, "Carry", func() (store.CarryResult, error) { return f.Store.Carry(ctx, shard, token, round) })
}

func (f *faulty) Wait(ctx context.Context, shard int, watch store.WaitOptions) (store.Wakeup, error) {
	return through(f, "Wait", func() (store.Wakeup, error) { return f.Store.Wait(ctx, shard, watch) })
}

func (f *faulty) Notify(ctx context.Context, shard int, queues []job.Queue) error {
	_, err := through(f, "Notify", func() (struct{}, error) { return struct{}{}, f.Store.Notify(ctx, shard, queues) })
	return err
}

func (f *faulty) ClaimExpired(ctx context.Context, shard int, token store.Token, request store.ClaimExpiredRequest) ([]store.ClaimedJob, error) {
	return through(f, "ClaimExpired", func() ([]store.ClaimedJob, error) { return f.Store.ClaimExpired(ctx, shard, token, request) })
}

func (f *faulty) Claim(ctx context.Context, shard int, token store.Token, request store.ClaimRequest) (store.ClaimResult, error) {
	return through(f, "Claim", func() (store.ClaimResult, error) { return f.Store.Claim(ctx, shard, token, request) })
}

func (f *faulty) Settle(ctx context.Context, shard int, token store.Token, items []store.Settlement, next *store.ClaimRequest) ([]error, store.ClaimResult, error) {
	type answer struct {
		errs    []error
		claimed store.ClaimResult
	}
	a, err := through(f, "Settle", func() (answer, error) {
		errs, claimed, err := f.Store.Settle(ctx, shard, token, items, next)
		return answer{errs, claimed}, err
	})
	return a.errs, a.claimed, err
}

func (f *faulty) Cancel(ctx context.Context, shard int, token store.Token, ref job.Ref) (job.Job, error) {
	return through(f, "Cancel", func() (job.Job, error) { return f.Store.Cancel(ctx, shard, token, ref) })
}

func (f *faulty) Edit(ctx context.Context, shard int, token store.Token, ref job.Ref, edit store.Edit) (job.Job, error) {
	return through(f, "Edit", func() (job.Job, error) { return f.Store.Edit(ctx, shard, token, ref, edit) })
}

func (f *faulty) Revive(ctx context.Context, shard int, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	return through(f, "Revive", func() ([]store.ReviveResult, error) { return f.Store.Revive(ctx, shard, token, items) })
}

func (f *faulty) Sweep(ctx context.Context, shard int, token store.Token, limit int) (store.SweepResult, error) {
	return through(f, "Sweep", func() (store.SweepResult, error) { return f.Store.Sweep(ctx, shard, token, limit) })
}

func (f *faulty) Repair(ctx context.Context, shard int) (store.RepairResult, error) {
	return through(f, "Repair", func() (store.RepairResult, error) { return f.Store.Repair(ctx, shard) })
}

func (f *faulty) PutTopic(ctx context.Context, topic store.Topic) (store.Topic, error) {
	return through(f, "PutTopic", func() (store.Topic, error) { return f.Store.PutTopic(ctx, topic) })
}

func (f *faulty) Purge(ctx context.Context, shard int, token store.Token, refs []job.Ref) ([]error, error) {
	return through(f, "Purge", func() ([]error, error) { return f.Store.Purge(ctx, shard, token, refs) })
}

func (f *faulty) PutLane(ctx context.Context, shard int, token store.Token, lane store.Lane) (store.Lane, error) {
	return through(f, "PutLane", func() (store.Lane, error) { return f.Store.PutLane(ctx, shard, token, lane) })
}

func (f *faulty) Permit(ctx context.Context, shard int, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	return through(f, "Permit", func() ([]store.Permit, error) { return f.Store.Permit(ctx, shard, token, asks) })
}

func (f *faulty) Alarm(ctx context.Context, shard int, token store.Token, alarm store.Alarm) (bool, error) {
	return through(f, "Alarm", func() (bool, error) { return f.Store.Alarm(ctx, shard, token, alarm) })
}
