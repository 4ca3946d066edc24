package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"math"
	"time"

	"github.com/ringback/ringback/internal/logs"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/unit"
)

// The default bounds of a round.
const (
	carryQueues = 128
	carryJobs   = 1024
	carryReady  = 1024
)

// Carry implements store.Keeper. Due jobs need no move, so that what goes to ready is a matter of counting; the rest of
// a round is expired leases, wake-ups and the outbox.
func (k *keeping) Carry(ctx context.Context, token store.Token, options store.CarryOptions) (store.CarryResult, error) {
	if err := options.ExtendLead(ctx); err != nil {
		return store.CarryResult{}, err
	}
	options.Queues = cmp.Or(options.Queues, carryQueues)
	options.Jobs = cmp.Or(options.Jobs, carryJobs)
	options.Ready = cmp.Or(options.Ready, carryReady)
	options.SkipOutbox, options.OutboxBytes = max(options.SkipOutbox, 0), cmp.Or(max(options.OutboxBytes, 0),
		store.OutboxBytes)
	c := keeperOp{Verb: "carry jobs", Weight: options.Jobs}
	return unit.Submit(ctx, k.db, token, c, weighCarry, func(u *unit.Unit) (store.CarryResult, error) {
		r := &round{Unit: u, options: options, visited: make(map[*memory.Queue]bool), unreadable: &k.unreadable}
		r.result.Now = clock.Time(u.Now.Millis)
		err := r.carry()
		return r.result, err
	})
}

func weighCarry(c store.CarryResult) int {
	weight := 0
	for _, e := range c.Outbox {
		weight += 1024 + len(e.Body)
	}
	return weight
}

// A round is one Carry under way.
type round struct {
	*unit.Unit
	options    store.CarryOptions
	result     store.CarryResult
	visited    map[*memory.Queue]bool
	more       bool // a bound has kept something for the next round
	leftLeases bool // the options have kept expired leases
	unreadable *logs.Limited
}

func (r *round) carry() error {
	steps := &r.Mem.Steps
	if step := steps.Pending; step != 0 {
		unit.Save(r.Unit, &steps.Pending)
		r.result.ClockStep, steps.Pending = time.Duration(step)*time.Millisecond, 0
	}
	if err := r.followClock(); err != nil {
		return err
	}
	if err := r.removeRelayed(); err != nil {
		return err
	}
	queues, err := r.expireLeases()
	if err != nil {
		return err
	}
	if err := r.visitQueues(queues); err != nil {
		return err
	}
	if err := r.readOutbox(); err != nil {
		return err
	}
	// Leases that stay although they have expired do not count, or the next round would come at once again and again.
	if r.result.Next, err = r.NextMoment(!r.leftLeases); r.more {
		r.result.Next = 0
	}
	return err
}

// removeRelayed removes outbox entries that are in their own queue.
func (r *round) removeRelayed() error {
	for _, ref := range r.options.Relayed {
		gone, err := r.Change(table.DeleteOutbox, ref.Namespace, ref.ID)
		if err != nil {
			return err
		}
		r.Mem.Outbox -= gone
	}
	return nil
}

// expireLeases makes jobs due again whose lease has expired, and returns their queues.
func (r *round) expireLeases() (queues []*memory.Queue, err error) {
	a := &r.Mem.Agenda
	var stay []*memory.Slot
	defer func() {
		for _, s := range stay {
			a.Leases.Set(s, s.At, s.N)
		}
	}()
	for s := a.Leases.Head(r.Now.Mono); s != nil; s = a.Leases.Head(r.Now.Mono) {
		if r.options.KeepLeases {
			r.leftLeases = true
			return queues, nil
		}
		if r.result.ExpiredLeases == r.options.Jobs {
			r.more = true
			return queues, nil
		}
		a.Leases.Drop(s)
		h := s.Lease
		if r.Mem.Leases[h.Ref] != h {
			continue // settled earlier in this transaction
		}
		// The deadline by the wall clock as it is now: since the claim it may have been set back or ahead.
		until := r.Now.Millis - (r.Now.Mono-h.Deadline)/int64(time.Millisecond)
		if before := r.options.ExpireLeasesBefore; !before.IsZero() && until > before.UnixMilli() {
			stay, r.leftLeases = append(stay, s), true
			continue
		}
		if err := r.ExpireLease(h, time.Duration(r.Now.Mono-h.Begun).Truncate(time.Millisecond)); err != nil {
			stay = append(stay, s)
			return nil, err
		}
		r.result.ExpiredLeases++
		queues = append(queues, h.Queue)
	}
	return queues, nil
}

// visitQueues visits some queues and those whose time on the agenda has come. It removes the latter from the agenda;
// NextMoment plans them again. Due jobs go before repeated wake-ups, but neither takes more than half of a round from
// the other.
func (r *round) visitQueues(queues []*memory.Queue) error {
	for _, q := range queues {
		if err := r.visit(q); err != nil {
			return err
		}
	}
	a := &r.Mem.Agenda
	looked := 0
	for _, part := range []struct {
		moments *memory.Moments
		now     int64
		most    int
	}{
		{&a.Dues, r.Now.Millis, (r.options.Queues + 1) / 2},
		{&a.Renotifications, r.Now.Mono, r.options.Queues},
		{&a.Dues, r.Now.Millis, r.options.Queues},
	} {
		for s := part.moments.Head(part.now); s != nil; s = part.moments.Head(part.now) {
			if looked >= part.most || r.result.Moved+r.result.ExpiredLeases >= r.options.Jobs {
				break
			}
			looked++
			r.removeMoment(part.moments, s)
			if err := r.visit(s.Queue); err != nil {
				return err
			}
		}
	}
	r.more = r.more || a.Dues.Head(r.Now.Millis) != nil || a.Renotifications.Head(r.Now.Mono) != nil
	return nil
}

// removeMoment removes a queue's moment from the agenda, unless the transaction fails.
func (r *round) removeMoment(part *memory.Moments, s *memory.Slot) {
	a, at, n, q := &r.Mem.Agenda, s.At, s.N, s.Queue
	part.Drop(s)
	r.OnUndo(func() {
		a.Dues.Drop(&q.DueSlot) // it may have been planned for either
		a.Renotifications.Drop(&q.RenotifySlot)
		part.Set(s, at, n)
	})
}

// visit counts the ready jobs of a queue and sends a wake-up for it.
func (r *round) visit(q *memory.Queue) error {
	if r.visited[q] {
		return nil
	}
	r.visited[q] = true
	r.Plan(q)
	ordered := q.Limits().Ordered
	if ordered && q.HeadKnown { // the moment of its head has come: another may have its turn
		r.Touch(q)
		q.HeadKnown = false
	}
	if err := r.LoadHead(q); err != nil || !q.Due(r.Now) || q.Blocked(r.Now) {
		return err
	}
	silent := q.Ready == 0 || q.Silent || ordered // no wake-up was sent for its jobs
	moved, err := r.MarkReady(q,
		min(r.options.Jobs-r.result.Moved-r.result.ExpiredLeases, r.options.Ready-int(q.Ready)))
	r.result.Moved += moved
	if !silent && q.NotifiedAt+int64(store.RenotifyAfter) > r.Now.Mono {
		return err
	}
	r.Touch(q)
	q.NotifiedAt, q.Silent = r.Now.Mono, false
	if r.Env.Wakeups.IsUnread(q) {
		q.NotifiedAt += int64(store.RenotifyUnreadAfter - store.RenotifyAfter)
	} else {
		r.Notify(q)
	}
	return err
}

// readOutbox returns the oldest entries after those that the round skips, at most store.MaxBatch. One that cannot be
// read stays where it is and keeps nothing back.
func (r *round) readOutbox() error {
	c := &r.result
	waiting, room := r.Mem.Outbox-int64(r.options.SkipOutbox), r.options.OutboxBytes
	full, last, skip := false, int64(math.MinInt64), int64(r.options.SkipOutbox)
	for !full && int64(c.OutboxRead) < waiting && len(c.Outbox) < store.MaxBatch {
		before := c.OutboxRead
		err := r.Query(table.ReadOutbox, func(v []driver.Value) error {
			packed := db.Blob(v[1])
			if room -= len(packed); room < 0 && c.OutboxRead > 0 {
				full = true
				return db.ErrStop
			}
			c.OutboxRead++
			last = db.Int(v[0])
			e, err := store.DecodeNewJob(packed)
			if err != nil {
				r.unreadable.Error("outbox entry unreadable, leaving it in the outbox", "seq", last, "err", err)
				return nil
			}
			c.Outbox = append(c.Outbox, e)
			return nil
		}, last, int64(store.MaxBatch-len(c.Outbox)), skip)
		if err != nil {
			return err
		}
		if c.OutboxRead == before {
			break // the count is wrong: no reason to look again and again
		}
		skip = 0
	}
	if (full || len(c.Outbox) == store.MaxBatch) && int64(c.OutboxRead) < waiting {
		r.more = true
	}
	return nil
}
