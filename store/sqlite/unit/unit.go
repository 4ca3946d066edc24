package unit

import (
	"cmp"
	"slices"
	"time"

	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/memory"
	"github.com/ringback/ringback/store/sqlite/table"
)

// A Unit is the unit of work of one transaction. Each change that it makes in memory leaves an undo; the agenda and the
// wake-ups follow after the commit.
type Unit struct {
	*db.Tx
	Env    *Env
	Mem    *memory.State
	Now    clock.Instant
	Serial uint64
	// MayBeNewHead is set when something came that may head the agenda.
	MayBeNewHead bool

	undos          []func()
	queues         []*memory.Queue // touched
	topics         []*memory.Topic // touched
	notifications  []*memory.Queue // to be named in a wake-up when they have something to claim
	toPlan         []*memory.Queue // to be planned again
	newLeases      []*memory.Lease
	endedLeases    []*memory.Lease
	extendedLeases []*memory.Lease
	batches        []*memory.Batch // of either
	open           *memory.Batch   // that has room
	history        map[memory.TopicName]*store.HistoryCounts
	replies        []byte // to store, as in the table replies
	wake           bool   // wake WaitAgenda whatever the agenda has
}

// OnUndo adds a function that undoes a change of memory.
func (u *Unit) OnUndo(f func()) { u.undos = append(u.undos, f) }

// Save saves a value before it changes.
func Save[T any](u *Unit, value *T) {
	before := *value
	u.OnUndo(func() { *value = before })
}

// Touch saves a queue's and its topic's numbers before they change.
func (u *Unit) Touch(q *memory.Queue) {
	if q.SavedIn != u.Serial {
		q.Saved, q.SavedIn = q.QueueNumbers, u.Serial
		u.OnUndo(func() { q.QueueNumbers = q.Saved })
		u.queues = append(u.queues, q)
	}
	u.TouchTopic(q.Topic)
}

// TouchTopic saves a topic's numbers before they change.
func (u *Unit) TouchTopic(t *memory.Topic) {
	if t.SavedIn != u.Serial {
		t.Saved, t.SavedIn = t.TopicNumbers, u.Serial
		u.OnUndo(func() { t.TopicNumbers = t.Saved })
		u.topics = append(u.topics, t)
	}
}

// Notify has a queue named in a wake-up after the commit, if it has jobs to claim then.
func (u *Unit) Notify(q *memory.Queue) { u.notifications = append(u.notifications, q) }

// Plan has a queue planned after the commit, even if nothing of it is touched.
func (u *Unit) Plan(q *memory.Queue) { u.toPlan = append(u.toPlan, q) }

// NextMoment returns the time until the agenda's head as it will be once the unit is applied, negative if the agenda is
// empty. expired is whether leases that have expired count.
func (u *Unit) NextMoment(expired bool) (time.Duration, error) {
	a := &u.Mem.Agenda
	for _, list := range [][]*memory.Queue{u.toPlan, u.queues} {
		for _, q := range list {
			if err := u.LoadHead(q); err != nil {
				return 0, err
			}
			a.Plan(q, u.Now)
		}
	}
	if wait := a.Next(u.Now, expired); wait != memory.Never {
		return wait, nil
	}
	return -1, nil
}

// Flush writes the touched numbers.
func (u *Unit) Flush() error {
	if err := u.flushLeases(); err != nil {
		return err
	}
	if err := u.flushHistory(); err != nil {
		return err
	}
	if ahead := u.Mem.Steps.Ahead; ahead != u.Mem.StepsAhead {
		if err := u.Exec(table.UpdateMeta, table.StepsAhead, ahead); err != nil {
			return err
		}
		u.Mem.StepsAhead = ahead
	}
	if len(u.replies) > 0 { // one row for all: each row costs as much as several settlements
		u.Mem.StoredReplies.Last++
		if err := u.Exec(table.InsertReplies, u.Mem.StoredReplies.Last, string(u.replies)); err != nil {
			return err
		}
	}
	stored := u.Mem.Steps.Stored(u.Now)
	for _, q := range u.toPlan {
		if err := u.LoadHead(q); err != nil {
			return err
		}
		u.notifyWhenFree(q)
	}
	for i := 0; i < len(u.queues); i++ { // LoadHead may add
		q := u.queues[i]
		if err := u.LoadHead(q); err != nil {
			return err
		}
		u.notifyWhenFree(q)
		if q.Throttle != q.Saved.Throttle {
			if err := u.Exec(table.UpdateThrottle, q.Throttle.Column(stored), q.Id); err != nil {
				return err
			}
		}
		if q.Health != q.Saved.Health {
			if err := u.Exec(table.UpdateHealth, healthColumn(q.Health), q.Id); err != nil {
				return err
			}
		}
		// A claim changes nothing here: leased jobs are unfinished, too.
		if q.Waiting+q.Running == q.Saved.Waiting+q.Saved.Running && q.Rows == q.Saved.Rows {
			continue
		}
		if err := u.Exec(table.UpdateQueue, q.Waiting+q.Running, q.Rows, q.Id); err != nil {
			return err
		}
	}
	for _, t := range u.topics {
		before := t.Saved
		before.Waiting, before.Ready, before.Running = t.Waiting, t.Ready, t.Running
		before.OldestID, before.KeptDone.Oldest, before.KeptDead.Oldest = t.OldestID, t.KeptDone.Oldest,
			t.KeptDead.Oldest
		if before.Grants != t.Grants || before.Alarm != t.Alarm {
			if err := u.Exec(table.UpdateGrants, t.Grants.Column(stored), t.Alarm, t.Id); err != nil {
				return err
			}
			before.Grants, before.Alarm = t.Grants, t.Alarm
		}
		if before == t.TopicNumbers {
			continue
		}
		err := u.Exec(table.UpdateTopic, t.Registered, t.Delivered, t.Dead, t.Cancelled, t.Bytes,
			t.KeptDone.Jobs, t.KeptDone.Bytes, t.KeptDead.Jobs, t.KeptDead.Bytes, t.Ids, t.Id)
		if err != nil {
			return err
		}
	}
	return nil
}

// notifyWhenFree forgets the last wake-up of a throttled queue, so that another is sent as soon as the throttle ends.
func (u *Unit) notifyWhenFree(q *memory.Queue) {
	if q.Throttle == nil || q.NotifiedAt == clock.Past {
		return
	}
	if free, _ := q.FreeAt(u.Now); free > u.Now.Mono {
		u.Touch(q)
		q.NotifiedAt = clock.Past
	}
}

// Undo restores memory to what it was when the transaction began.
func (u *Unit) Undo() {
	for _, undo := range slices.Backward(u.undos) {
		undo()
	}
	// A carry has planned queues already, and taken out leases that were over.
	a := &u.Mem.Agenda
	for _, list := range [][]*memory.Queue{u.queues, u.toPlan} {
		for _, q := range list {
			if u.Mem.ByID[q.Id] == q {
				a.Plan(q, u.Now)
			}
		}
	}
	for _, h := range u.endedLeases {
		if h.Slot.Lease != nil {
			a.Leases.Set(&h.Slot, h.Deadline, h.N)
		}
	}
}

// Apply updates the agenda and sends wake-ups after the commit.
func (u *Unit) Apply() {
	a := &u.Mem.Agenda
	for _, h := range u.endedLeases {
		a.Leases.Drop(&h.Slot)
	}
	for _, h := range u.newLeases {
		h.Slot = memory.Slot{Pos: -1, Lease: h}
		a.Leases.Set(&h.Slot, h.Deadline, h.N)
	}
	for _, h := range u.extendedLeases {
		if u.Mem.Leases[h.Ref] == h {
			a.Leases.Set(&h.Slot, h.Deadline, h.N)
		}
	}
	notified := u.notifications[:0]
	for _, q := range u.notifications {
		if q.Due(u.Now) && !q.Blocked(u.Now) {
			q.NotifiedAt = u.Now.Mono
			notified = append(notified, q)
			a.Dues.Drop(&q.DueSlot)
			a.Plan(q, u.Now)
		}
	}
	// In the order of their first jobs, as the lanes will take turns, so that jobs that are claimed and settled
	// together lie in few pages. The order of the notifications may be that of a map.
	slices.SortFunc(notified, func(a, b *memory.Queue) int {
		return cmp.Or(cmp.Compare(a.Head.Due, b.Head.Due), cmp.Compare(a.Head.N, b.Head.N))
	})
	wake := u.wake
	for _, list := range [][]*memory.Queue{u.queues, u.toPlan} {
		for _, q := range list {
			before := a.Next(u.Now, true)
			a.Plan(q, u.Now)
			wake = wake || (u.MayBeNewHead && a.Next(u.Now, true) < before)
		}
	}
	for _, q := range u.queues {
		memory.SetMember(u.Mem.Unused, q, q.Rows == 0)
		if q.Throttle != q.Saved.Throttle || q.Health != q.Saved.Health {
			u.Mem.Index(q)
		}
	}
	if len(notified) > 0 || wake {
		u.Env.Wakeups.Notify(notified, wake)
	}
}
