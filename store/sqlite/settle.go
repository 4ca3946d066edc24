package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/work"
)

// Settle implements store.Shard.
func (s *Store) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	checkBatch("settlements", len(items))
	written := make([]settlement, len(items))
	for i := range items {
		written[i].fill(&items[i])
	}
	var c *claim
	weight := len(items)
	if next != nil {
		c = newClaim(cmp.Or(next.Token, token), *next)
		weight += next.Max
	}
	var errs []error
	var revision int64
	err := s.db.Submit(ctx, &op{Verb: "settle attempts", Weight: weight, Run: func(u *work.Unit) (err error) {
		revision = u.Mem.Revisions[store.KindTopic]
		errs, err = work.Once(u, memory.Call{Method: "settle", Token: token}, weighErrors, func() ([]error, error) {
			errs := make([]error, len(items))
			for i := range items {
				if errs[i], err = settleAttempt(u, &items[i], &written[i]); err != nil {
					return nil, err
				}
			}
			return errs, nil
		})
		if err != nil || c == nil {
			return err
		}
		if err := db.ContextError(ctx); err != nil {
			return err // the settlements are done, but nothing would work on claimed jobs
		}
		return c.run(u)
	}})
	if db.IsDamage(err) {
		errs, err = s.settleEach(ctx, token, items, written)
		if err == nil && c != nil {
			err = s.db.Submit(ctx, &op{
				Verb: "claim jobs", Weight: next.Max, Run: c.run,
				Gone: func() error { return db.ContextError(ctx) },
			})
		}
	}
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	claimed := store.ClaimResult{Revision: revision}
	if c != nil {
		claimed = c.answer(s)
	}
	return slices.Clone(errs), claimed, nil
}

// settleEach settles attempts one by one, where some cannot be written because of a damaged page: their jobs are passed
// over.
func (s *Store) settleEach(
	ctx context.Context, token store.Token, items []store.Settlement, written []settlement,
) ([]error, error) {
	const verb = "settle an attempt"
	errs := make([]error, len(items))
	for i := range items {
		var h *memory.Lease
		err := s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(u *work.Unit) (err error) {
			h = u.Mem.Leases[items[i].Ref]
			errs[i], err = work.Once(u, memory.Call{Method: fmt.Sprintf("settle %d",
				i), Token: token}, func(error) int { return 16 }, func() (error, error) {
				return settleAttempt(u, &items[i], &written[i])
			})
			return err
		}})
		if db.IsDamage(err) && h != nil {
			errs[i] = store.ErrLeaseLost
			err = s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(u *work.Unit) error {
				u.AbandonLease(h, verb)
				return nil
			}})
		}
		if err != nil {
			return nil, err
		}
	}
	// A repetition of the call answers the same.
	return errs, s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(u *work.Unit) error {
		_, err := work.Once(u, memory.Call{Method: "settle", Token: token}, weighErrors,
			func() ([]error, error) { return errs, nil })
		return err
	}})
}

// A settlement's text is encoded by the caller.
type settlement struct {
	entry  string
	outbox [][]byte
}

func (s *settlement) fill(item *store.Settlement) {
	if item.Extend > 0 {
		return
	}
	if k := item.Verdict.Kind; k < policy.Delivered || k > policy.Released {
		panic(fmt.Sprintf("sqlite: a settlement with verdict %v", k))
	}
	if item.Attempt.Kind != "" {
		s.entry = string(item.Attempt.JSON())
	}
	s.outbox = work.EncodeOutbox(item.Outbox)
}

// settleAttempt ends one attempt, or extends its lease. The first error is the item's own.
func settleAttempt(u *work.Unit, item *store.Settlement, written *settlement) (refused, err error) {
	h := u.Mem.Leases[item.Ref]
	if h == nil || h.Token != item.Lease || h.Queue.Name != item.Queue {
		return store.ErrLeaseLost, nil
	}
	if item.Extend > 0 {
		u.ExtendLease(h, item.Extend)
		if h.Cancel {
			return store.ErrCancelRequested, nil
		}
		return nil, nil
	}
	verdict := item.Verdict
	u.ApplyLaneChange(h.Queue, item.LaneChange)
	to := h.Progress
	if entry := written.entry; entry != "" {
		if h.Cancel {
			attempt := item.CancelledAttempt()
			entry = string(attempt.JSON())
		}
		if err := u.Record(h.N, &to, item.Attempt.Kind, entry); err != nil {
			return nil, err
		}
	}
	if item.Attempt.Kind == job.KindAttempt {
		to.ConsecutiveLost = 0
		to.Status = int64(item.Attempt.Status)
		if verdict.Kind != policy.Delivered {
			to.FailedAttempts++
		}
	}
	if verdict.Kind == policy.Delivered || !h.Cancel {
		if err := u.Enqueue(item.Outbox, written.outbox); err != nil {
			return nil, err
		}
	}
	if item.Body != nil {
		if err := u.ReplaceBody(h.Queue, h.N, &to, item.Body); err != nil {
			return nil, err
		}
	}
	switch {
	case verdict.Kind == policy.Delivered:
		return nil, u.FinishLeased(h, to, job.Delivered, "")
	case h.Cancel:
		return nil, u.FinishLeased(h, to, job.Cancelled, job.ReasonCancelled)
	case verdict.Kind == policy.Dead:
		return nil, u.FinishLeased(h, to, job.Dead, verdict.Reason)
	default: // again, or released
		return nil, u.Reschedule(h, to, u.Now.After(verdict.Wait))
	}
}
