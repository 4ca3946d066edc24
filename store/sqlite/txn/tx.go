package txn

import (
	"cmp"
	"slices"

	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A Tx is one transaction. Each change that it makes in memory leaves an undo; the agenda and the wake-ups follow after
// the commit.
type Tx struct {
	*db.Tx
	Base    *Base
	Mem     *memory.State
	Now     clock.Instant
	Serial  uint64
	damages int // of memory at the beginning

	// Culprit is the lease that could not be ended.
	Culprit *memory.Lease

	undos         []func()
	Queues        []*memory.Queue // touched
	topics        []*memory.Topic // touched
	notifications []*memory.Queue // to be named in a wake-up when they have something to claim
	ToPlan        []*memory.Queue // to be planned again
	newLeases     []*memory.Lease
	endedLeases   []*memory.Lease
	batches       []*memory.Batch // of either
	open          *memory.Batch   // that has room
	wake          bool            // wake Wait whatever the agenda has
	MayBeNewHead  bool            // something came that may head the agenda
}

// OnUndo adds a function that undoes a change of memory.
func (tx *Tx) OnUndo(f func()) { tx.undos = append(tx.undos, f) }

// Save saves a value before it changes.
func Save[T any](tx *Tx, value *T) {
	before := *value
	tx.OnUndo(func() { *value = before })
}

// Touch saves a queue's and its topic's numbers before they change.
func (tx *Tx) Touch(q *memory.Queue) {
	if q.SavedIn != tx.Serial {
		q.Saved, q.SavedIn = q.QueueNumbers, tx.Serial
		tx.OnUndo(func() { q.QueueNumbers = q.Saved })
		tx.Queues = append(tx.Queues, q)
	}
	tx.TouchTopic(q.Topic)
}

// TouchTopic saves a topic's numbers before they change.
func (tx *Tx) TouchTopic(t *memory.Topic) {
	if t.SavedIn != tx.Serial {
		t.Saved, t.SavedIn = t.TopicNumbers, tx.Serial
		tx.OnUndo(func() { t.TopicNumbers = t.Saved })
		tx.topics = append(tx.topics, t)
	}
}

// Notify has a queue named in a wake-up after the commit, if it has jobs to claim then.
func (tx *Tx) Notify(q *memory.Queue) { tx.notifications = append(tx.notifications, q) }

// Flush writes the touched numbers.
func (tx *Tx) Flush() error {
	if err := tx.flushLeases(); err != nil {
		return err
	}
	for _, q := range tx.ToPlan {
		if err := tx.LoadHead(q); err != nil {
			return err
		}
		tx.notifyWhenFree(q)
	}
	for i := 0; i < len(tx.Queues); i++ { // LoadHead may add
		q := tx.Queues[i]
		if err := tx.LoadHead(q); err != nil {
			return err
		}
		tx.notifyWhenFree(q)
		if q.Throttle != q.Saved.Throttle {
			if err := tx.Exec(table.UpdateThrottle, q.Throttle.Column(tx.Now), q.Id); err != nil {
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
			if err := tx.Exec(table.UpdateGrants, t.Grants.Column(tx.Now), t.Alarm, t.Id); err != nil {
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
func (tx *Tx) notifyWhenFree(q *memory.Queue) {
	if q.Throttle == nil || q.NotifiedAt == clock.Past {
		return
	}
	if free, _ := q.FreeAt(tx.Now); free > tx.Now.Mono {
		tx.Touch(q)
		q.NotifiedAt = clock.Past
	}
}

// Undo restores memory to what it was when the transaction began. A repetition leaves alone what was found to be damaged.
func (tx *Tx) Undo(error) (again bool) {
	for i := len(tx.undos) - 1; i >= 0; i-- {
		tx.undos[i]()
	}
	// A carry has planned queues already, and taken out leases that were over.
	a := &tx.Mem.Agenda
	for _, list := range [][]*memory.Queue{tx.Queues, tx.ToPlan} {
		for _, q := range list {
			if tx.Mem.ByID[q.Id] == q {
				a.Plan(q, tx.Now)
			}
		}
	}
	for _, h := range tx.endedLeases {
		if h.Slot.Lease != nil {
			a.Leases.Set(&h.Slot, h.Deadline, h.N)
		}
	}
	return tx.Mem.Damages != tx.damages
}

// Apply updates the agenda and sends wake-ups after the commit.
func (tx *Tx) Apply() {
	a := &tx.Mem.Agenda
	for _, h := range tx.endedLeases {
		a.Leases.Drop(&h.Slot)
	}
	for _, h := range tx.newLeases {
		h.Slot = memory.Slot{Pos: -1, Lease: h}
		a.Leases.Set(&h.Slot, h.Deadline, h.N)
	}
	rung := tx.notifications[:0]
	for _, q := range tx.notifications {
		if q.Due(tx.Now) && !q.Blocked(tx.Now) {
			q.NotifiedAt = tx.Now.Mono
			rung = append(rung, q)
			a.Dues.Drop(&q.DueSlot)
			a.Plan(q, tx.Now)
		}
	}
	// In the order of their first jobs, as the lanes will take turns: then what is claimed and settled together lies in few
	// pages, wherever the order came from (policies walk a map).
	slices.SortFunc(rung, func(a, b *memory.Queue) int {
		return cmp.Or(cmp.Compare(a.Head.Due, b.Head.Due), cmp.Compare(a.Head.N, b.Head.N))
	})
	wake := tx.wake
	for _, list := range [][]*memory.Queue{tx.Queues, tx.ToPlan} {
		for _, q := range list {
			before := a.Next(tx.Now, true)
			a.Plan(q, tx.Now)
			wake = wake || (tx.MayBeNewHead && a.Next(tx.Now, true) < before)
		}
	}
	for _, q := range tx.Queues {
		memory.SetMember(tx.Mem.Unused, q, q.Rows == 0)
		if q.Throttle != q.Saved.Throttle {
			tx.Mem.Index(q)
		}
	}
	if len(rung) > 0 || wake {
		tx.Base.Wakeups.Notify(rung, wake)
	}
}
