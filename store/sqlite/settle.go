package sqlite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// Settle implements store.Shard.
func (s *Store) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	bound("settlements", len(items))
	written := make([]settlement, len(items))
	for i := range items {
		written[i].fill(&items[i])
	}
	var c *claim
	weight := len(items)
	if next != nil {
		c = newClaim(token, *next)
		weight += next.Max
	}
	var errs []error
	var revision int64
	err := s.db.Submit(ctx, &op{Verb: "settle attempts", Weight: weight, Run: func(tx *tx) (err error) {
		revision = tx.mem.Revisions[store.KindTopic]
		errs, err = once(tx, memory.Call{Method: "settle", Token: token}, func(errs []error) int { return 16 * len(errs) }, func() ([]error, error) {
			errs := make([]error, len(items))
			for i := range items {
				if errs[i], err = tx.settle(&items[i], &written[i]); err != nil {
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
		return c.run(tx)
	}})
	if db.IsDamage(err) {
		errs, err = s.settleEach(ctx, token, items, written)
		if err == nil && c != nil {
			err = s.db.Submit(ctx, &op{Verb: "claim jobs", Weight: next.Max, Run: c.run, Gone: func() error { return db.ContextError(ctx) }})
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

// settleEach settles attempts one by one, where some cannot be written because of a damaged page: their jobs are passed over.
func (s *Store) settleEach(
	ctx context.Context, token store.Token, items []store.Settlement, written []settlement,
) ([]error, error) {
	const verb = "settle an attempt"
	errs := make([]error, len(items))
	for i := range items {
		var h *memory.Lease
		err := s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(tx *tx) (err error) {
			h = tx.mem.Leases[items[i].Ref]
			errs[i], err = once(tx, memory.Call{Method: fmt.Sprintf("settle %d", i), Token: token}, func(error) int { return 16 }, func() (error, error) {
				return tx.settle(&items[i], &written[i])
			})
			return err
		}})
		if db.IsDamage(err) && h != nil {
			errs[i] = store.ErrLeaseLost
			err = s.abandon(ctx, h, verb)
		}
		if err != nil {
			return nil, err
		}
	}
	// A repetition of the call answers the same.
	return errs, s.db.Submit(ctx, &op{Verb: verb, Weight: 1, Run: func(tx *tx) error {
		_, err := once(tx, memory.Call{Method: "settle", Token: token}, func(errs []error) int { return 16 * len(errs) }, func() ([]error, error) { return errs, nil })
		return err
	}})
}

// A settlement's text is encoded by the caller.
type settlement struct {
	entry  string
	outbox [][]byte
}

func (s *settlement) fill(item *store.Settlement) {
	if k := item.Verdict.Kind; k < policy.Delivered || k > policy.Released {
		panic(fmt.Sprintf("sqlite: a settlement with verdict %v", k))
	}
	if item.Attempt.Kind != "" {
		s.entry = string(item.Attempt.JSON())
	}
	s.outbox = encodeOutbox(item.Outbox)
}

func encodeOutbox(outbox []store.NewJob) (written [][]byte) {
	for i := range outbox {
		written = append(written, store.AppendNewJob(nil, &outbox[i]))
	}
	return written
}

// settle ends one attempt. The first error is the item's own.
func (tx *tx) settle(item *store.Settlement, written *settlement) (refused, err error) {
	h := tx.mem.Leases[item.Ref]
	if h == nil || h.Token != item.Lease {
		return store.ErrLeaseLost, nil
	}
	verdict := item.Verdict
	tx.applyLaneChange(h.Queue, item.Lane)
	to := h.Progress
	if written.entry != "" {
		if err := tx.record(h.N, &to, item.Attempt.Kind, written.entry); err != nil {
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
		if err := tx.enqueue(item.Outbox, written.outbox); err != nil {
			return nil, err
		}
	}
	switch {
	case verdict.Kind == policy.Delivered:
		return nil, tx.finishLeased(h, to, job.Delivered, "")
	case h.Cancel:
		return nil, tx.finishLeased(h, to, job.Cancelled, job.ReasonCancelled)
	case verdict.Kind == policy.Dead:
		return nil, tx.finishLeased(h, to, job.Dead, verdict.Reason)
	default: // again, or released
		return nil, tx.reschedule(h, to, tx.now.After(verdict.Wait))
	}
}

// enqueue puts new jobs into the outbox and wakes the carrier.
func (tx *tx) enqueue(outbox []store.NewJob, written [][]byte) error {
	for i, e := range outbox {
		added, err := tx.Change(table.InsertOutbox, e.Namespace, e.ID, written[i])
		if err != nil {
			return err
		}
		tx.mem.Outbox += added
		tx.wake = true
	}
	return nil
}

// expireLease ends an attempt without a settlement: the job is due again at once, or cancelled when that was requested.
func (tx *tx) expireLease(h *memory.Lease, lasted time.Duration) error {
	to := h.Progress
	to.ConsecutiveLost++
	if to.ConsecutiveLost > policy.FreeLosses {
		to.FailedAttempts++
	}
	entry := job.Attempt{N: int(to.Attempts) + 1, Kind: job.KindLost, StartedAt: clock.Time(h.Claimed), Duration: lasted}
	if err := tx.record(h.N, &to, entry.Kind, string(entry.JSON())); err != nil {
		return err
	}
	if h.Cancel {
		return tx.finishLeased(h, to, job.Cancelled, job.ReasonCancelled)
	}
	return tx.reschedule(h, to, tx.now.Millis)
}

// eventSlots is the first slot of a record for events that are no attempts.
const eventSlots = job.MaxAttempts

// record adds to a job's record, and counts an attempt that was made. The slot is that of the entry of its sort which is one
// too many. The job's row must be written after it.
func (tx *tx) record(n int64, to *table.Progress, kind job.AttemptKind, entry string) error {
	seq, slot := to.Entries, eventSlots+(to.Entries-to.Attempts)%job.MaxEvents
	to.Entries++
	if kind.IsAttempt() {
		slot = to.Attempts % job.MaxAttempts
		to.Attempts++
	}
	if seq == 0 {
		tx.mem.LastFirstAttempt++
		to.First = tx.mem.LastFirstAttempt
		return tx.Exec(table.InsertFirstAttempt, to.First, n, entry)
	}
	return tx.Exec(table.InsertAttempt, n, slot, seq, entry)
}

// recordEvent is record for what a client did.
func (tx *tx) recordEvent(n int64, to *table.Progress, kind job.AttemptKind) error {
	entry := job.Attempt{N: int(to.Attempts), Kind: kind, StartedAt: clock.Time(tx.now.Millis)}
	return tx.record(n, to, kind, string(entry.JSON()))
}

// endLease ends a lease, and sends a wake-up when that frees a slot of a lane at its limit.
func (tx *tx) endLease(h *memory.Lease) {
	q := h.Queue
	tx.touch(q)
	if q.Blocked(tx.now) && q.Waiting > 0 {
		tx.notify(q)
	}
	q.Running--
	q.Topic.Running--
	tx.mayBeNewHead = true // a lane that is freed may have the next job of all
	tx.removeLease(h)
}

// reschedule makes a leased job due again.
func (tx *tx) reschedule(h *memory.Lease, to table.Progress, due int64) error {
	if err := tx.Exec(table.MoveJob, due, to.Attempts, to.FailedAttempts, to.ConsecutiveLost, db.NullZero(to.Status), to.Entries, db.NullZero(to.First), h.N); err != nil {
		return err
	}
	tx.mem.Steps.SetDelayed(h.N, false)
	tx.endLease(h)
	return tx.arrive(h.Queue, table.Key{Due: due, N: h.N})
}

func (tx *tx) finishLeased(h *memory.Lease, to table.Progress, state job.State, reason policy.Reason) error {
	tx.endLease(h)
	return tx.finish(h.Queue, h.Ref, h.N, to, state, reason)
}

// finish finishes a job that is counted nowhere any more.
func (tx *tx) finish(q *memory.Queue, ref job.Ref, n int64, to table.Progress, state job.State, reason policy.Reason) error {
	tx.touch(q)
	tx.mem.Steps.SetDelayed(n, false)
	t := q.Topic
	t.Count(state, 1)
	kept, keep := t.Retained(state)
	if *keep.For <= 0 || *keep.Max <= 0 {
		return tx.remove(q, ref, n, to, state, reason, tx.now.Millis)
	}
	err := tx.Exec(table.EndJob, string(state), tx.now.Millis, db.NullEmpty(string(reason)), to.Attempts, to.FailedAttempts, to.ConsecutiveLost, db.NullZero(to.Status),
		to.Entries, db.NullZero(to.First), to.Version, n)
	if err != nil {
		return err
	}
	if kept.Jobs == 0 || tx.now.Millis < kept.Oldest {
		kept.Oldest = tx.now.Millis
	}
	kept.Jobs++
	kept.Bytes += to.Size
	return nil
}
