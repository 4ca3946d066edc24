package sqlite

import (
	"cmp"
	"slices"

	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A tx is one transaction, shared by the calls that were waiting. Each change that it makes in memory leaves an undo. The
// agenda and the wake-ups follow after the commit.
type tx struct {
	*db.Tx
	store   *Store
	mem     *memory
	now     clock.Instant
	serial  uint64
	damages int // of memory at the beginning

	// culprit is the lease that could not be ended.
	culprit *lease

	undos         []func()
	queues        []*queue // touched
	topics        []*topic // touched
	notifications []*queue // to be named in a wake-up when they have something to claim
	toPlan        []*queue // to be planned again
	newLeases     []*lease
	endedLeases   []*lease
	batches       []*batch // of either
	open          *batch   // that has room
	wake          bool     // wake Wait whatever the agenda has
	mayBeNewHead  bool     // something came that may head the agenda
}

// begin begins a transaction in memory.
func (s *Store) begin(t *db.Tx) *tx {
	s.serial++
	now := s.clock()
	s.mem.steps.Observe(now, s.mem.lastN)
	tx := &tx{Tx: t, store: s, mem: s.mem, now: now, serial: s.serial, damages: s.mem.damages}
	save(tx, &s.mem.numbers)
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
func (tx *tx) touch(q *queue) {
	if q.savedIn != tx.serial {
		q.saved, q.savedIn = q.queueNumbers, tx.serial
		tx.undo(func() { q.queueNumbers = q.saved })
		tx.queues = append(tx.queues, q)
	}
	tx.touchTopic(q.topic)
}

func (tx *tx) touchTopic(t *topic) {
	if t.savedIn != tx.serial {
		t.saved, t.savedIn = t.topicNumbers, tx.serial
		tx.undo(func() { t.topicNumbers = t.saved })
		tx.topics = append(tx.topics, t)
	}
}

// notify notes a queue that is to be named in a wake-up after the commit.
func (tx *tx) notify(q *queue) { tx.notifications = append(tx.notifications, q) }

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
		if q.throttle != q.saved.throttle {
			if err := tx.Exec(table.UpdateThrottle, q.throttle.Column(tx.now), q.id); err != nil {
				return err
			}
		}
		// A claim changes nothing here: leased jobs are among the waiting.
		if q.waiting+q.running == q.saved.waiting+q.saved.running && q.rows == q.saved.rows {
			continue
		}
		if err := tx.Exec(table.UpdateQueue, q.waiting+q.running, q.rows, q.id); err != nil {
			return err
		}
	}
	for _, t := range tx.topics {
		before := t.saved
		before.waiting, before.ready, before.running = t.waiting, t.ready, t.running
		before.oldestID, before.keptDone.oldest, before.keptDead.oldest = t.oldestID, t.keptDone.oldest, t.keptDead.oldest
		if before.grants != t.grants || before.alarm != t.alarm {
			if err := tx.Exec(table.UpdateGrants, t.grants.Column(tx.now), t.alarm, t.id); err != nil {
				return err
			}
			before.grants, before.alarm = t.grants, t.alarm
		}
		if before == t.topicNumbers {
			continue
		}
		err := tx.Exec(table.UpdateTopic, t.registered, t.delivered, t.dead, t.cancelled, t.keptDone.jobs, t.keptDone.bytes,
			t.keptDead.jobs, t.keptDead.bytes, t.ids, t.id)
		if err != nil {
			return err
		}
	}
	return nil
}

// notifyWhenFree forgets the last wake-up of a queue that is kept back for a while, so that another is sent as soon as that
// ends.
func (tx *tx) notifyWhenFree(q *queue) {
	if q.throttle == nil || q.notifiedAt == clock.Past {
		return
	}
	if free, _ := q.free(tx.now); free > tx.now.Mono {
		tx.touch(q)
		q.notifiedAt = clock.Past
	}
}

// Undo restores memory to what it was when the transaction began. A repetition leaves alone what was found to be damaged.
func (tx *tx) Undo(error) (again bool) {
	for i := len(tx.undos) - 1; i >= 0; i-- {
		tx.undos[i]()
	}
	// A carry has planned queues already, and taken out leases that were over.
	a := &tx.mem.agenda
	for _, list := range [][]*queue{tx.queues, tx.toPlan} {
		for _, q := range list {
			if tx.mem.byID[q.id] == q {
				a.plan(q, tx.now)
			}
		}
	}
	for _, h := range tx.endedLeases {
		if h.slot.lease != nil {
			a.leases.set(&h.slot, h.deadline, h.n)
		}
	}
	return tx.mem.damages != tx.damages
}

// Apply brings the agenda and the wake-ups up to what was committed.
func (tx *tx) Apply() {
	a := &tx.mem.agenda
	for _, h := range tx.endedLeases {
		a.leases.drop(&h.slot)
	}
	for _, h := range tx.newLeases {
		h.slot = slot{pos: -1, lease: h}
		a.leases.set(&h.slot, h.deadline, h.n)
	}
	rung := tx.notifications[:0]
	for _, q := range tx.notifications {
		if q.due(tx.now) && !q.blocked(tx.now) {
			q.notifiedAt = tx.now.Mono
			rung = append(rung, q)
			a.dues.drop(&q.dueSlot)
			a.plan(q, tx.now)
		}
	}
	// In the order of their first jobs, as the lanes will take turns: then what is claimed and settled together lies in few
	// pages, wherever the order came from (policies walk a map).
	slices.SortFunc(rung, func(a, b *queue) int {
		return cmp.Or(cmp.Compare(a.head.Due, b.head.Due), cmp.Compare(a.head.N, b.head.N))
	})
	wake := tx.wake
	for _, list := range [][]*queue{tx.queues, tx.toPlan} {
		for _, q := range list {
			before := a.next(tx.now, true)
			a.plan(q, tx.now)
			wake = wake || (tx.mayBeNewHead && a.next(tx.now, true) < before)
		}
	}
	for _, q := range tx.queues {
		setMember(tx.mem.unused, q, q.rows == 0)
		if q.throttle != q.saved.throttle {
			tx.mem.index(q)
		}
	}
	if len(rung) > 0 || wake {
		tx.store.wakeups.notify(rung, wake)
	}
}
