package sqlite

import (
	"cmp"
	"context"
	"database/sql/driver"
	"math"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/txn"
)

// A round's bounds when it names none.
const (
	carryQueues = 128
	carryJobs   = 1024
	carryReady  = 1024
)

// Carry implements store.Shard. Due jobs need no move, so that what goes to ready is a matter of counting; the rest of
// a round is expired leases, wake-ups and the outbox.
func (s *Store) Carry(ctx context.Context, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	round.Queues = cmp.Or(round.Queues, carryQueues)
	round.Jobs = cmp.Or(round.Jobs, carryJobs)
	round.Ready = cmp.Or(round.Ready, carryReady)
	round.SkipOutbox, round.OutboxBytes = max(round.SkipOutbox, 0), cmp.Or(max(round.OutboxBytes, 0), store.OutboxBytes)
	var carried store.CarryResult
	var culprit *memory.Lease
	carryOnce := func() error {
		return s.db.Submit(ctx, &op{Verb: "carry jobs", Weight: round.Jobs, Run: func(tx *tx) (err error) {
			carried, err = once(tx, memory.Call{Method: "carry", Token: token}, weighCarried, func() (store.CarryResult, error) {
				return tx.carry(round)
			})
			culprit = tx.Culprit
			return err
		}})
	}
	err := carryOnce()
	// Each of them is passed over for good.
	for range round.Jobs {
		if !db.IsDamage(err) || culprit == nil { // without an answer it is the writer's
			break
		}
		if err = s.abandon(ctx, culprit, "end a lease"); err == nil {
			culprit = nil
			err = carryOnce()
		}
	}
	if err != nil {
		return store.CarryResult{}, err
	}
	return carried, nil
}

func weighCarried(c store.CarryResult) int {
	weight := 0
	for _, e := range c.Outbox {
		weight += 1024 + len(e.Body)
	}
	return weight
}

func (tx *tx) carry(round store.CarryOptions) (store.CarryResult, error) {
	c := store.CarryResult{Now: clock.Time(tx.Now.Millis)}
	steps := &tx.Mem.Steps
	if step := steps.Pending; step != 0 {
		txn.Save(&tx.Tx, &steps.Pending)
		c.ClockStep, steps.Pending = time.Duration(step)*time.Millisecond, 0
	}
	stepped, waits := false, false
	if err := tx.UnlessDamaged(&tx.Mem.NoSteps, "move jobs after a step of the clock", func() (err error) {
		stepped, err = tx.followClock()
		return err
	}); err != nil {
		return c, err
	}
	if err := tx.UnlessDamaged(&tx.Mem.NoOutbox, "empty the outbox", func() error { return tx.removeRelayed(round.Relayed) }); err != nil {
		return c, err
	}
	visits, left, bounded, err := tx.expireLeases(round, &c)
	if err != nil {
		return c, err
	}
	more, err := tx.visitQueues(round, visits, &c)
	if err != nil {
		return c, err
	}
	if err := tx.UnlessDamaged(&tx.Mem.NoOutbox, "read the outbox", func() (err error) {
		waits, err = tx.readOutbox(round, &c)
		return err
	}); err != nil {
		return c, err
	}
	c.Next, err = tx.nextDue(left)
	if more || bounded || waits || stepped {
		c.Next = 0
	}
	return c, err
}

// removeRelayed removes outbox entries that are in their own queue.
func (tx *tx) removeRelayed(home []job.Ref) error {
	for _, ref := range home {
		gone, err := tx.Change(table.DeleteOutbox, ref.Namespace, ref.ID)
		if err != nil {
			return err
		}
		tx.Mem.Outbox -= gone
	}
	return nil
}

// expireLeases makes jobs due again whose lease has expired. It returns their queues, whether the round's options left
// expired leases alone, and whether its bound did, so that the next round can go on at once.
func (tx *tx) expireLeases(round store.CarryOptions, c *store.CarryResult) (visits []*memory.Queue, left, bounded bool, err error) {
	a := &tx.Mem.Agenda
	var stay []*memory.Slot
	defer func() {
		for _, s := range stay {
			a.Leases.Set(s, s.At, s.N)
		}
	}()
	for s := a.Leases.Head(tx.Now.Mono); s != nil; s = a.Leases.Head(tx.Now.Mono) {
		if round.KeepLeases {
			return visits, true, false, nil
		}
		if c.ExpiredLeases == round.Jobs {
			return visits, left, true, nil
		}
		a.Leases.Drop(s)
		h := s.Lease
		if tx.Mem.Leases[h.Ref] != h {
			continue // settled earlier in this transaction
		}
		// The deadline by the wall clock as it is now: since the claim it may have been set back or ahead.
		until := tx.Now.Millis - (tx.Now.Mono-h.Deadline)/int64(time.Millisecond)
		if !round.ExpireLeasesBefore.IsZero() && until > round.ExpireLeasesBefore.UnixMilli() {
			stay, left = append(stay, s), true
			continue
		}
		if err := tx.ExpireLease(h, time.Duration(tx.Now.Mono-h.Begun).Truncate(time.Millisecond)); err != nil {
			stay = append(stay, s)
			if db.IsDamage(err) {
				tx.Culprit = h
			}
			return nil, false, false, err
		}
		c.ExpiredLeases++
		visits = append(visits, h.Queue)
	}
	return visits, left, false, nil
}

// visitQueues visits the queues of expired leases and those whose time on the agenda has come. It takes the latter out of the
// agenda; nextDue plans them again. Due jobs go before repeated wake-ups, but neither takes more than half of a round from the
// other. more says that the round's bounds kept something back.
func (tx *tx) visitQueues(round store.CarryOptions, visits []*memory.Queue, c *store.CarryResult) (more bool, err error) {
	visited := make(map[*memory.Queue]bool)
	for _, q := range visits {
		if err := tx.visit(q, round, c, visited); err != nil {
			return false, err
		}
	}
	a := &tx.Mem.Agenda
	looked := 0
	for _, part := range []struct {
		moments *memory.Moments
		now     int64
		most    int
	}{
		{&a.Dues, tx.Now.Millis, (round.Queues + 1) / 2},
		{&a.Renotifications, tx.Now.Mono, round.Queues},
		{&a.Dues, tx.Now.Millis, round.Queues},
	} {
		for s := part.moments.Head(part.now); s != nil; s = part.moments.Head(part.now) {
			if looked >= part.most || c.Moved+c.ExpiredLeases >= round.Jobs {
				break
			}
			looked++
			tx.takeOut(part.moments, s)
			if err := tx.visit(s.Queue, round, c, visited); err != nil {
				return false, err
			}
		}
	}
	return a.Dues.Head(tx.Now.Millis) != nil || a.Renotifications.Head(tx.Now.Mono) != nil, nil
}

// takeOut takes a queue's moment out of the agenda, until the transaction is taken back.
func (tx *tx) takeOut(part *memory.Moments, s *memory.Slot) {
	a, at, n, q := &tx.Mem.Agenda, s.At, s.N, s.Queue
	part.Drop(s)
	tx.OnUndo(func() {
		a.Dues.Drop(&q.DueSlot) // it may have been planned for either
		a.Renotifications.Drop(&q.RenotifySlot)
		part.Set(s, at, n)
	})
}

// visit counts the ready jobs of a queue and sends a wake-up for it.
func (tx *tx) visit(q *memory.Queue, round store.CarryOptions, c *store.CarryResult, visited map[*memory.Queue]bool) error {
	if visited[q] {
		return nil
	}
	visited[q] = true
	tx.ToPlan = append(tx.ToPlan, q)
	if err := tx.LoadHead(q); err != nil || !q.Due(tx.Now) || q.Blocked(tx.Now) {
		return err
	}
	silent := q.Ready == 0 || q.Silent // no wake-up was sent for its jobs
	moved, err := tx.markReady(q, min(round.Jobs-c.Moved-c.ExpiredLeases, round.Ready-int(q.Ready)))
	c.Moved += moved
	if silent || q.NotifiedAt+int64(store.RenotifyAfter) <= tx.Now.Mono {
		tx.Touch(q)
		q.NotifiedAt, q.Silent = tx.Now.Mono, false
		tx.Notify(q)
	}
	return err
}

// markReady counts waiting jobs that became due as ready, at most most of them.
func (tx *tx) markReady(q *memory.Queue, most int) (int, error) {
	if most <= 0 || q.Ready >= q.Waiting {
		return 0, nil
	}
	count, held, last := 0, 0, q.Mark
	next := func(v []driver.Value) error {
		count++
		last = table.Key{Due: db.Int(v[0]), N: db.Int(v[1])}
		if tx.Mem.LeaseByNumber[last.N] != nil {
			held++ // ClaimExpired has claimed it
		}
		return nil
	}
	// First those of the mark's own moment, then the later ones.
	err := tx.Query(table.WaitingAt, next, q.Id, q.Mark.Due, q.Mark.N, tx.Now.Millis, int64(most))
	if err == nil && count < most {
		err = tx.Query(table.WaitingAfter, next, q.Id, q.Mark.Due, tx.Now.Millis, int64(most-count))
	}
	if db.IsDamage(err) {
		tx.SetAside(q, "count due jobs", err)
		return 0, nil
	}
	if err != nil || count == 0 {
		return 0, err
	}
	tx.Touch(q)
	q.Mark = last
	q.Ready += int64(count - held)
	q.Topic.Ready += int64(count - held)
	return count, nil
}

// nextDue is the time until the agenda's head, as it will be once this transaction is applied; negative when there is
// none. With left, leases that are over do not count, or it would be zero again and again.
func (tx *tx) nextDue(left bool) (time.Duration, error) {
	a := &tx.Mem.Agenda
	for _, list := range [][]*memory.Queue{tx.ToPlan, tx.Queues} {
		for _, q := range list {
			if err := tx.LoadHead(q); err != nil {
				return 0, err
			}
			a.Plan(q, tx.Now)
		}
	}
	if wait := a.Next(tx.Now, !left); wait != memory.Never {
		return wait, nil
	}
	return -1, nil
}

// readOutbox hands out the oldest entries after those that the round passes over, at most store.MaxBatch; more says that
// others wait behind them. One that cannot be read stays where it is and keeps nothing back.
func (tx *tx) readOutbox(round store.CarryOptions, c *store.CarryResult) (more bool, err error) {
	waiting, room := tx.Mem.Outbox-int64(round.SkipOutbox), round.OutboxBytes
	full, last, skip := false, int64(math.MinInt64), int64(round.SkipOutbox)
	for !full && int64(c.OutboxRead) < waiting && len(c.Outbox) < store.MaxBatch {
		before := c.OutboxRead
		err := tx.Query(table.ReadOutbox, func(v []driver.Value) error {
			packed := db.Blob(v[1])
			if room -= len(packed); room < 0 && c.OutboxRead > 0 {
				full = true
				return db.ErrStop
			}
			c.OutboxRead++
			last = db.Int(v[0])
			e, err := store.DecodeNewJob(packed)
			if err != nil {
				tx.store.logUnreadable(last, err)
				return nil
			}
			c.Outbox = append(c.Outbox, e)
			return nil
		}, last, int64(store.MaxBatch-len(c.Outbox)), skip)
		if err != nil {
			return false, err
		}
		if c.OutboxRead == before {
			break // the count is wrong: no reason to look again and again
		}
		skip = 0
	}
	return (full || len(c.Outbox) == store.MaxBatch) && int64(c.OutboxRead) < waiting, nil
}

// logUnreadable logs, once, an outbox entry that cannot be read.
func (s *Store) logUnreadable(seq int64, err error) {
	if s.loggedOutbox[seq] {
		return
	}
	s.loggedOutbox[seq] = true
	s.log.Error("outbox entry unreadable, leaving it in the outbox", "seq", seq, "err", err)
}
