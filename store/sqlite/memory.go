package sqlite

import (
	"database/sql/driver"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
	"github.com/ringback/ringback/store/sqlite/table"
	"github.com/ringback/ringback/store/sqlite/throttle"
)

// A queue is one lane in memory. Only the writer touches it.
type queue struct {
	id         int64
	name       job.Queue
	topic      *topic
	laneConfig *laneConfig // the lane's own settings; nil: it has none
	owners     leaseOwners
	queueNumbers
	saved            queueNumbers // as at the beginning of transaction savedIn
	savedIn          uint64
	idleIn           uint64 // savedIn when it was last seen idle; 0: it was not
	damaged          bool   // its jobs cannot be found: it gives none until the store is opened again
	partlyUnreadable bool   // some of its jobs cannot be read
	dueSlot          slot
	renotifySlot     slot
	notified         bool // is in wakeups, whose lock guards it
}

// queueNumbers is what a transaction changes of a queue.
type queueNumbers struct {
	waiting, running, rows int64
	// ready counts the waiting jobs up to mark: what was moved to ready, or was due when it came, or was counted when it was
	// due; silent says that no wake-up was sent for the first of them.
	ready  int64
	mark   table.Key
	silent bool
	// head is the first waiting job, where headKnown.
	head       table.Key
	headKnown  bool
	notifiedAt int64              // when it last rang, monotonic; past: never
	throttle   *throttle.Throttle // nil: nothing keeps it back
}

type topicName struct{ namespace, name string }

// A topic is one topic in memory. Only the writer touches it.
type topic struct {
	id   int64
	name topicName
	topicNumbers
	saved   topicNumbers
	savedIn uint64
	topicPolicy
	// queues of the topic that have waiting or running jobs or a throttle, and maybe others.
	queues map[*queue]struct{}
	// open are those whose breaker is, or was when they were last looked at; nil: none is.
	open map[*queue]struct{}
	// noRetention says that a damaged page keeps its ended jobs from being removed.
	noRetention bool
	// inUseUntil is until when a topic that could not be forgotten is not tried again, monotonic.
	inUseUntil int64
}

// topicPolicy is what is applied of a topic's document.
type topicPolicy struct {
	limits   *policy.Limits // over the defaults; of a topic without a document the shared defaults, to save memory
	revision int64          // of the document; 0: there is none
}

// topicNumbers is what a transaction changes of a topic. keptDone counts delivered and cancelled jobs.
type topicNumbers struct {
	registered, delivered, dead, cancelled int64
	waiting, ready, running                int64
	keptDone, keptDead                     retained
	ids                                    int64
	oldestID                               int64 // not later than the oldest remembered end
	grants                                 *throttle.Grants
	alarm                                  bool
}

// A retained counts the ended jobs that are kept.
type retained struct {
	jobs, bytes int64
	oldest      int64 // not later than the first end
}

// A lease is that of one claimed job, with what a settlement needs to know of the job.
type lease struct {
	ref          job.Ref
	n            int64
	queue        *queue
	token        store.Token
	claimed      int64 // by the wall clock
	begun        int64 // the same, monotonic
	deadline     int64 // monotonic
	rated, probe bool  // as in store.ClaimedJob
	slot         slot
	batch        *batch
	index        int // in the batch
	table.Progress
}

// numbers are the engine's own.
type numbers struct {
	lastN, lastQ, lastT int64
	lastBatch           int64
	lastFirstAttempt    int64
	outbox, ids         int64
	// nextTTL is not later than the first end of a time to live among unfinished jobs; 0: it is not known.
	nextTTL int64
}

// memory is what the writer knows without asking the database.
type memory struct {
	numbers
	topics map[topicName]*topic
	queues map[job.Queue]*queue
	byID   map[int64]*queue
	leases map[job.Ref]*lease
	// leaseByNumber is leases by number.
	leaseByNumber map[int64]*lease
	// unreadable are the jobs, by number, whose rows lie on a damaged page.
	unreadable map[int64]bool
	damages    int // how many parts of the database were found to be damaged
	// noTTL, noSteps, noOutbox and noRemoval say that a damaged page keeps the carrier from ending jobs whose time to live is
	// over, moving jobs after a step of the clock, relaying the outbox, and removing what nothing refers to.
	noTTL, noSteps, noOutbox, noRemoval bool
	// unused are lanes that no job refers to, throttled those with a throttle.
	unused, throttled map[*queue]struct{}
	agenda            agenda
	steps             clock.Steps
	idleLooked        int64 // when idle lanes were last looked for, monotonic
	replies           *replyCache
	revisions         map[string]int64 // the newest of settings, by kind
}

func newMemory() *memory {
	return &memory{
		revisions:     make(map[string]int64),
		topics:        make(map[topicName]*topic),
		queues:        make(map[job.Queue]*queue),
		byID:          make(map[int64]*queue),
		leases:        make(map[job.Ref]*lease),
		leaseByNumber: make(map[int64]*lease),

		unreadable: make(map[int64]bool),

		unused:    make(map[*queue]struct{}),
		throttled: make(map[*queue]struct{}),
		replies:   newReplyCache(),
	}
}

// queue finds a lane, and makes it when it is new.
func (tx *tx) queue(name job.Queue) (*queue, error) {
	if q := tx.mem.queues[name]; q != nil {
		return q, nil
	}
	q, err := tx.loadQueue(name)
	if err != nil || q != nil {
		return q, err
	}
	t, err := tx.topic(topicName{name.Namespace, name.Topic})
	if err != nil {
		return nil, err
	}
	tx.mem.lastQ++
	q = &queue{id: tx.mem.lastQ, name: name, topic: t}
	if err := tx.Exec(table.InsertQueue, q.id, name.Namespace, name.Topic, name.Lane); err != nil {
		return nil, err
	}
	q.headKnown = true
	if q.laneConfig, err = tx.loadLaneConfig(q); err != nil {
		return nil, err
	}
	tx.remember(q)
	return q, nil
}

// loadQueue reads a lane that was unloaded; nil when there is none.
func (tx *tx) loadQueue(name job.Queue) (*queue, error) {
	if q := tx.mem.queues[name]; q != nil {
		return q, nil
	}
	var q *queue
	err := tx.Query(table.FindQueue, func(v []driver.Value) error {
		q = &queue{id: db.Int(v[0]), name: name}
		q.waiting, q.rows = db.Int(v[1]), db.Int(v[2])
		q.throttle = tx.store.parseThrottle(name, v[3], tx.now)
		return nil
	}, name.Namespace, name.Topic, name.Lane)
	if err != nil || q == nil {
		return nil, err
	}
	if q.topic, err = tx.topic(topicName{name.Namespace, name.Topic}); err != nil {
		return nil, err
	}
	q.headKnown = q.waiting == 0
	if q.laneConfig, err = tx.loadLaneConfig(q); err != nil {
		return nil, err
	}
	tx.remember(q)
	return q, nil
}

// remember adds a queue to memory.
func (tx *tx) remember(q *queue) {
	m := tx.mem
	m.add(q)
	tx.undo(func() { m.forget(q) })
}

func (m *memory) add(q *queue) {
	q.notifiedAt = clock.Past
	q.dueSlot, q.renotifySlot = slot{pos: -1, queue: q}, slot{pos: -1, queue: q}
	m.queues[q.name], m.byID[q.id] = q, q
	q.topic.queues[q] = struct{}{}
	m.index(q)
}

// index puts a queue among those that it belongs to, or takes it out.
func (m *memory) index(q *queue) {
	setMember(m.throttled, q, q.throttle != nil)
	open := q.throttle != nil && q.throttle.Open
	if open && q.topic.open == nil {
		q.topic.open = make(map[*queue]struct{})
	}
	setMember(q.topic.open, q, open)
}

func setMember(set map[*queue]struct{}, q *queue, is bool) {
	if is {
		set[q] = struct{}{}
	} else {
		delete(set, q)
	}
}

func (m *memory) forget(q *queue) {
	m.agenda.dues.drop(&q.dueSlot)
	m.agenda.renotifications.drop(&q.renotifySlot)
	delete(m.unused, q)
	delete(m.throttled, q)
	delete(q.topic.open, q)
	delete(m.queues, q.name)
	delete(m.byID, q.id)
	delete(q.topic.queues, q)
}

// topic finds a topic, and makes it when it is new.
func (tx *tx) topic(name topicName) (*topic, error) {
	if t := tx.mem.topics[name]; t != nil {
		return t, nil
	}
	tx.mem.lastT++
	t := newTopic(tx.mem.lastT, name, &tx.store.defaults)
	if err := tx.Exec(table.InsertTopic, t.id, name.namespace, name.name); err != nil {
		return nil, err
	}
	tx.mem.topics[name] = t
	tx.undo(func() { delete(tx.mem.topics, name) })
	return t, nil
}

func newTopic(id int64, name topicName, defaults *policy.Limits) *topic {
	return &topic{id: id, name: name, queues: make(map[*queue]struct{}, 1), topicPolicy: topicPolicy{limits: defaults}}
}
