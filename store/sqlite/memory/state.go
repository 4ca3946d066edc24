package memory

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store/sqlite/clock"
)

// IsLeased reports whether a job is leased. A claim passes over it in the index of waiting jobs, where a clock that was
// set back may have put others before it.
func (m *State) IsLeased(n int64) bool { return m.LeaseByNumber[n] != nil }

// Numbers are the counters of the whole store, which each transaction saves.
type Numbers struct {
	LastN, LastQ, LastT int64
	LastBatch           int64
	LastFirstAttempt    int64
	Outbox, Ids         int64
	// StepsAhead is Steps.Ahead as the database has it.
	StepsAhead    int64
	StoredReplies StoredReplies
	// NextTTL is not later than the first end of a time to live among unfinished jobs; 0: it is not known.
	NextTTL int64
}

// State is what the writer knows without asking the database.
type State struct {
	Numbers
	Topics map[TopicName]*Topic
	Queues map[job.Queue]*Queue
	ByID   map[int64]*Queue
	Leases map[job.Ref]*Lease
	// LeaseByNumber has the same leases by the number of their job.
	LeaseByNumber map[int64]*Lease
	// Unused are lanes that no job refers to, Throttled those with a throttle, Unhealthy those with health.
	Unused, Throttled, Unhealthy map[*Queue]struct{}

	Agenda        Agenda
	Steps         clock.Steps
	IdleLooked    int64 // when idle lanes were last looked for, monotonic
	HistoryLooked int64 // when old rows of the history were
	Replies       *Replies
	SharedReplies *Replies         // to shared tokens, which are in the table replies, too
	Revisions     map[string]int64 // the newest of settings, by kind
}

// New returns an empty state.
func New() *State {
	return &State{
		Revisions:     make(map[string]int64),
		Topics:        make(map[TopicName]*Topic),
		Queues:        make(map[job.Queue]*Queue),
		ByID:          make(map[int64]*Queue),
		Leases:        make(map[job.Ref]*Lease),
		LeaseByNumber: make(map[int64]*Lease),
		Unused:        make(map[*Queue]struct{}),
		Throttled:     make(map[*Queue]struct{}),
		Unhealthy:     make(map[*Queue]struct{}),
		Replies:       NewReplies(),
		SharedReplies: NewReplies(),
	}
}

// AddQueue adds a queue.
func (m *State) AddQueue(q *Queue) {
	q.NotifiedAt = clock.Past
	q.DueSlot, q.RenotifySlot = Slot{Pos: -1, Queue: q}, Slot{Pos: -1, Queue: q}
	m.Queues[q.Name], m.ByID[q.Id] = q, q
	q.Topic.Queues[q] = struct{}{}
	m.Index(q)
}

// Index puts a queue into the sets that its throttle and its health belong to, or removes it.
func (m *State) Index(q *Queue) {
	SetMember(m.Throttled, q, q.Throttle != nil)
	SetMember(m.Unhealthy, q, q.Health != nil)
	open := q.Throttle != nil && q.Throttle.Open
	if open && q.Topic.OpenBreakers == nil {
		q.Topic.OpenBreakers = make(map[*Queue]struct{})
	}
	SetMember(q.Topic.OpenBreakers, q, open)
}

// SetMember adds a queue to a set, or removes it.
func SetMember(set map[*Queue]struct{}, q *Queue, is bool) {
	if is {
		set[q] = struct{}{}
	} else {
		delete(set, q)
	}
}

// RemoveQueue removes a queue.
func (m *State) RemoveQueue(q *Queue) {
	m.Agenda.Dues.Drop(&q.DueSlot)
	m.Agenda.Renotifications.Drop(&q.RenotifySlot)
	delete(m.Unused, q)
	delete(m.Throttled, q)
	delete(m.Unhealthy, q)
	delete(q.Topic.OpenBreakers, q)
	delete(m.Queues, q.Name)
	delete(m.ByID, q.Id)
	delete(q.Topic.Queues, q)
}

// NoteTTL notes the end of a time to live; 0: it has no end.
func (m *State) NoteTTL(ttlEnd int64) {
	if ttlEnd != 0 {
		m.NextTTL = min(m.NextTTL, ttlEnd)
	}
}
