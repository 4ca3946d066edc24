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
	"github.com/ringback/ringback/store/sqlite/unit"
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
	var settled memory.Settled
	var revision int64
	err := s.db.Submit(ctx, &op{Verb: "settle attempts", Weight: weight, Run: func(u *unit.Unit) (err error) {
		revision = u.Mem.Revisions[store.KindTopic]
		call := memory.Call{Method: memory.SettleMethod, Token: token}
		settled, err = unit.Once(u, call, memory.Settled.Weigh, func() (memory.Settled, error) {
			errs := make([]error, len(items))
			for i := range items {
				if errs[i], err = settleAttempt(u, &items[i], &written[i]); err != nil {
					return memory.Settled{}, err
				}
			}
			if token.IsShared() && slices.Contains(errs, nil) {
				u.StoreReply(token, errs)
			}
			return memory.Settled{Refused: errs, Health: u.ChangeHealth(items, errs)}, nil
		})
		if err != nil || c == nil {
			return err
		}
		if err := db.ContextError(ctx); err != nil {
			return err // the settlements are done, but nothing would work on claimed jobs
		}
		return c.run(u)
	}})
	if err != nil {
		return nil, store.ClaimResult{}, err
	}
	claimed := store.ClaimResult{Revision: revision}
	if c != nil {
		claimed = c.answer(s)
	}
	claimed.Health = settled.Health
	return slices.Clone(settled.Refused), claimed, nil
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
	s.outbox = unit.EncodeOutbox(item.Outbox)
}

// settleAttempt ends one attempt, or extends its lease. The first error is the item's own.
func settleAttempt(u *unit.Unit, item *store.Settlement, written *settlement) (refused, err error) {
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
	verdict, counts := item.Verdict, store.CountSettlement(item, h.Cancel)
	u.CountHistory(item.Queue, &counts)
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
		to.Answer = item.Attempt.Answer()
		if verdict.Kind != policy.Delivered {
			to.FailedAttempts++
		}
	}
	if verdict.Kind == policy.Delivered || !h.Cancel {
		if err := u.Enqueue(item.Outbox, written.outbox); err != nil {
			return nil, err
		}
	}
	if body := item.NewBody(h.Cancel); body != nil {
		if err := u.ReplaceBody(h.Queue, h.N, &to, body); err != nil {
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
