package sqlite

import (
	"cmp"
	"slices"

	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A tx is one transaction, shared by the calls that were waiting. Each change that it makes in memory leaves an undo. The
// agenda and the wake-ups follow after the commit.
type tx struct {
	*db.Tx
	store   *Store
	mem     *memory.State
	now     clock.Instant
	serial  uint64
	damages int // of memory at the beginning

	// culprit is the lease that could not be ended.
	culprit *memory.Lease

	undos         []func()
	queues        []*memory.Queue // touched
	topics        []*memory.Topic // touched
	notifications []*memory.Queue // to be named in a wake-up when they have something to claim
	toPlan        []*memory.Queue // to be planned again
	newLeases     []*memory.Lease
	endedLeases   []*memory.Lease
	batches       []*memory.Batch // of either
	open          *memory.Batch   // that has room
	wake          bool            // wake Wait whatever the agenda has
	mayBeNewHead  bool            // something came that may head the agenda
}

// begin begins a transaction in memory.
func (s *Store) begin(t *db.Tx) *tx {
	s.serial++
	now := s.clock()
	s.mem.Steps.Observe(now, s.mem.LastN)
	tx := &tx{Tx: t, store: s, mem: s.mem, now: now, serial: s.serial, damages: s.mem.Damages}
	save(tx, &s.mem.Numbers)
	return tx
}

// undo adds what takes a change of memory back.
func (tx *tx) undo(f func()) { tx.undos = append(tx.undos, f) }

// save notes a value that is about to change.
func save[T any](tx *tx, value *T) {
	before := *value
	tx.undo(func() { *value = before })
}

// touch saves a queue's and its topic's numbers before they change.
func (tx *tx) touch(q *memory.Queue) {
	if q.SavedIn != tx.serial {
		q.Saved, q.SavedIn = q.QueueNumbers, tx.serial
		tx.undo(func() { q.QueueNumbers = q.Saved })
		tx.queues = append(tx.queues, q)
	}
	tx.touchTopic(q.Topic)
}

func (tx *tx) touchTopic(t *memory.Topic) {
	if t.SavedIn != tx.serial {
		t.Saved, t.SavedIn = t.TopicNumbers, tx.serial
		tx.undo(func() { t.TopicNumbers = t.Saved })
		tx.topics = append(tx.topics, t)
	}
}

// notify notes a queue that is to be named in a wake-up after the commit.
func (tx *tx) notify(q *memory.Queue) { tx.notifications = append(tx.notifications, q) }

// Flush writes the touched numbers.
func (tx *tx) Flush() error {
	if err := tx.flushLeases(); err != nil {
		return err
	}
	for _, q := range tx.toPlan {
		if err := tx.loadHead(q); err != nil {
			return err
		}
		tx.notifyWhenFree(q)
	}
	for i := 0; i < len(tx.queues); i++ { // learnHead may add
		q := tx.queues[i]
		if err := tx.loadHead(q); err != nil {
			return err
		}
		tx.notifyWhenFree(q)
		if q.Throttle != q.Saved.Throttle {
			if err := tx.Exec(table.UpdateThrottle, q.Throttle.Column(tx.now), q.Id); err != nil {
				return err
			}
		}
		// A claim changes nothing here: leased jobs are among the waiting.
		if q.Waiting+q.Running == q.Saved.Waiting+q.Saved.Running && q.Rows == q.Saved.Rows {
			continue
		}
		if err := tx.Exec(table.UpdateQueue, q.Waiting+q.Running, q.Rows, q.Id); err != nil {
			return err
		}
	}
	for _, t := range tx.topics {
		before := t.Saved
		before.Waiting, before.Ready, before.Running = t.Waiting, t.Ready, t.Running
		before.OldestID, before.KeptDone.Oldest, before.KeptDead.Oldest = t.OldestID, t.KeptDone.Oldest, t.KeptDead.Oldest
		if before.Grants != t.Grants || before.Alarm != t.Alarm {
			if err := tx.Exec(table.UpdateGrants, t.Grants.Column(tx.now), t.Alarm, t.Id); err != nil {
				return err
			}
			before.Grants, before.Alarm = t.Grants, t.Alarm
		}
		if before == t.TopicNumbers {
			continue
		}
		err := tx.Exec(table.UpdateTopic, t.Registered, t.Delivered, t.Dead, t.Cancelled, t.KeptDone.Jobs, t.KeptDone.Bytes,
			t.KeptDead.Jobs, t.KeptDead.Bytes, t.Ids, t.Id)
		if err != nil {
			return err
		}
	}
	return nil
}

// notifyWhenFree forgets the last wake-up of a queue that is kept back for a while, so that another is sent as soon as that
// ends.
func (tx *tx) notifyWhenFree(q *memory.Queue) {
	if q.Throttle == nil || q.NotifiedAt == clock.Past {
		return
	}
	if free, _ := q.FreeAt(tx.now); free > tx.now.Mono {
		tx.touch(q)
		q.NotifiedAt = clock.Past
	}
}

// Undo restores memory to what it was when the transaction began. A repetition leaves alone what was found to be damaged.
func (tx *tx) Undo(error) (again bool) {
	for i := len(tx.undos) - 1; i >= 0; i-- {
		tx.undos[i]()
	}
	// A carry has planned queues already, and taken out leases that were over.
	a := &tx.mem.Agenda
	for _, list := range [][]*memory.Queue{tx.queues, tx.toPlan} {
		for _, q := range list {
			if tx.mem.ByID[q.Id] == q {
				a.Plan(q, tx.now)
			}
		}
	}
	for _, h := range tx.endedLeases {
		if h.Slot.Lease != nil {
			a.Leases.Set(&h.Slot, h.Deadline, h.N)
		}
	}
	return tx.mem.Damages != tx.damages
}

// Apply brings the agenda and the wake-ups up to what was committed.
func (tx *tx) Apply() {
	a := &tx.mem.Agenda
	for _, h := range tx.endedLeases {
		a.Leases.Drop(&h.Slot)
	}
	for _, h := range tx.newLeases {
		h.Slot = memory.Slot{Pos: -1, Lease: h}
		a.Leases.Set(&h.Slot, h.Deadline, h.N)
	}
	rung := tx.notifications[:0]
	for _, q := range tx.notifications {
		if q.Due(tx.now) && !q.Blocked(tx.now) {
			q.NotifiedAt = tx.now.Mono
			rung = append(rung, q)
			a.Dues.Drop(&q.DueSlot)
			a.Plan(q, tx.now)
		}
	}
	// In the order of their first jobs, as the lanes will take turns: then what is claimed and settled together lies in few
	// pages, wherever the order came from (policies walk a map).
	slices.SortFunc(rung, func(a, b *memory.Queue) int {
		return cmp.Or(cmp.Compare(a.Head.Due, b.Head.Due), cmp.Compare(a.Head.N, b.Head.N))
	})
	wake := tx.wake
	for _, list := range [][]*memory.Queue{tx.queues, tx.toPlan} {
		for _, q := range list {
			before := a.Next(tx.now, true)
			a.Plan(q, tx.now)
			wake = wake || (tx.mayBeNewHead && a.Next(tx.now, true) < before)
		}
	}
	for _, q := range tx.queues {
		memory.SetMember(tx.mem.Unused, q, q.Rows == 0)
		if q.Throttle != q.Saved.Throttle {
			tx.mem.Index(q)
		}
	}
	if len(rung) > 0 || wake {
		tx.store.wakeups.Notify(rung, wake)
	}
}
