package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// ModelOptions are the options of NewModel.
type ModelOptions struct {
	// Defaults completes the policies of topics, and policy.Builtin() the Defaults.
	Defaults policy.Topic
	// Shards is the number of shards; zero: 1.
	Shards int
	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// CountRevisions makes revisions of documents 1, 2, 3 … in place of the times of their changes, for tests of texts
	// that show them.
	CountRevisions bool
}

// Model is the reference model: the contract over plain maps and sorted slices, under one mutex.
type Model struct {
	store.LocalTail

	defaults policy.Topic
	now      func() time.Time

	mu sync.Mutex
	settings
	shards []*modelShard
	closed bool
	// rank orders jobs due in the same millisecond, lowest first, to follow the order of an engine; nil: the order in
	// which they were placed.
	rank func(job.Ref) int
}

var _ store.Store = (*Model)(nil)

type topicName struct{ namespace, topic string }

// modelShard is a shard of the model.
type modelShard struct {
	model    *Model
	settings // of lanes
	jobs     map[job.Ref]*record
	ids      map[job.Ref]*knownID
	queues   map[job.Queue]*queue
	topics   map[topicName]*topic
	// forgotten are the counts of topics that were forgotten, by namespace.
	forgotten map[string]store.TopicStats
	// permits and alarms are of topics that this shard keeps.
	permits     map[topicName]window
	history     map[topicName]*store.History
	places      map[topicName]store.LanePlaces
	alarms      map[topicName]bool
	hasTTL      bool // a job has, or had, a time to live
	outbox      []store.NewJob
	agenda      agenda
	wakeups     map[string]*wakeups
	agendaMoved bool
	// changed is closed and replaced when a queue is notified or the agenda moved.
	changed chan struct{}
	replies map[call]reply
	calls   []call // of answers, oldest first
	leader  lead
	stepped time.Duration // by Step since the last round
	seq     uint64
	// registrations counts the jobs that were inserted.
	registrations uint64
}

// topic is a topic's part on one shard.
type topic struct {
	name  topicName
	lanes []*queue // in the order of their first job
	// done has the delivered and cancelled jobs, dead the dead ones, oldest end first.
	done, dead sortedRecords
	registered int64
	delivered  int64
	died       int64
	cancelled  int64
}

// NewModel returns an empty model.
func NewModel(o ModelOptions) *Model {
	m := &Model{defaults: o.Defaults.WithDefaults(policy.Builtin()), now: o.Now}
	m.settings = newSettings(o.CountRevisions)
	if m.now == nil {
		m.now = time.Now
	}
	for range max(o.Shards, 1) {
		m.shards = append(m.shards, &modelShard{
			model:     m,
			jobs:      make(map[job.Ref]*record),
			ids:       make(map[job.Ref]*knownID),
			queues:    make(map[job.Queue]*queue),
			topics:    make(map[topicName]*topic),
			forgotten: make(map[string]store.TopicStats),
			settings:  newSettings(o.CountRevisions),
			permits:   make(map[topicName]window),
			history:   make(map[topicName]*store.History),
			places:    make(map[topicName]store.LanePlaces),
			alarms:    make(map[topicName]bool),
			wakeups:   make(map[string]*wakeups),
			changed:   make(chan struct{}),
			replies:   make(map[call]reply),
		})
	}
	return m
}

// Shards returns the model's shards.
func (m *Model) Shards() []store.Shard {
	shards := make([]store.Shard, len(m.shards))
	for i, s := range m.shards {
		shards[i] = s
	}
	return shards
}

// Ping fails once the model is closed.
func (m *Model) Ping(ctx context.Context) error {
	_, err := m.open(ctx)
	if err != nil {
		return err
	}
	m.mu.Unlock()
	return nil
}

// Close closes the model. Later calls fail with ErrUnavailable.
func (m *Model) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	for _, s := range m.shards {
		s.wakeWaiters()
	}
	return nil
}

// open locks the model for one call and returns the time of the call.
func (m *Model) open(ctx context.Context) (time.Time, error) {
	if err := ctx.Err(); err != nil {
		return time.Time{}, fmt.Errorf("use the model: %w", context.Cause(ctx))
	}
	m.mu.Lock()
	if m.closed {
		m.mu.Unlock()
		return time.Time{}, errClosed()
	}
	return job.Millis(m.now()), nil
}

func errClosed() error { return &store.UnavailableError{Reason: "the model is closed"} }

// limits returns the limits of a topic over the defaults.
func (m *Model) limits(name topicName) policy.Limits {
	return m.documents[topicKey(name)].limits.Over(m.defaults.Limits())
}

func topicKey(name topicName) store.DocumentKey {
	return store.DocumentKey{Kind: store.KindTopic, Namespace: name.namespace, Name: name.topic}
}

func (s *modelShard) topic(name topicName) *topic {
	t := s.topics[name]
	if t == nil {
		t = &topic{name: name, done: sortedRecords{key: finished}, dead: sortedRecords{key: finished}}
		s.topics[name] = t
	}
	return t
}
