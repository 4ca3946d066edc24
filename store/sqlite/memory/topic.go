package memory

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A TopicName names a topic.
type TopicName struct{ Namespace, Name string }

// A Topic is one topic in memory. Only the writer touches it.
type Topic struct {
	Id   int64
	Name TopicName
	TopicNumbers
	Saved   TopicNumbers
	SavedIn uint64
	TopicPolicy
	// Queues of the topic that have waiting or running jobs or a throttle, and maybe others.
	Queues map[*Queue]struct{}
	// OpenBreakers are the queues whose breaker is open, or was open when they changed last; may be nil.
	OpenBreakers map[*Queue]struct{}
	// LanePlaces are the lanes that have a history; nil: none since Open.
	LanePlaces store.LanePlaces
	// InUseUntil is the monotonic time before which Sweep does not try again to remove the topic.
	InUseUntil int64
}

// TopicPolicy is the part of a topic's document that the engine applies.
type TopicPolicy struct {
	Limits   *policy.Limits // over the defaults; of a topic without a document the shared defaults, to save memory
	revision int64          // of the document; 0: no document
}

// TopicNumbers is what a transaction changes of a topic. KeptDone counts delivered and cancelled jobs.
type TopicNumbers struct {
	Registered, Delivered, Dead, Cancelled int64
	Waiting, Ready, Running                int64
	Bytes                                  int64 // of unfinished jobs
	KeptDone, KeptDead                     Retained
	Ids                                    int64
	OldestID                               int64 // not later than the oldest remembered end
	Grants                                 *Grants
	Alarm                                  bool
}

// A Retained counts the ended jobs that are kept.
type Retained struct {
	Jobs, Bytes int64
	Oldest      int64 // not later than the first end
}

// NewTopic returns a topic without settings.
func NewTopic(id int64, name TopicName, defaults *policy.Limits) *Topic {
	return &Topic{Id: id, Name: name, Queues: make(map[*Queue]struct{}, 1), TopicPolicy: TopicPolicy{Limits: defaults}}
}

// SetLimits sets the limits of a topic; with revision 0 the defaults apply.
func (t *Topic) SetLimits(revision int64, limits policy.Limits, defaults *policy.Limits) {
	t.revision, t.Limits = revision, defaults
	if revision != 0 {
		t.Limits = new(limits.Over(*defaults))
	}
}

// Count counts an end, or with -1 takes it back.
func (t *Topic) Count(state job.State, by int64) {
	switch state {
	case job.Delivered:
		t.Delivered += by
	case job.Dead:
		t.Dead += by
	default:
		t.Cancelled += by
	}
}

// Retained returns the counters and the retention of ended jobs in a state.
func (t *Topic) Retained(state job.State) (*Retained, policy.Retention) {
	if state == job.Dead {
		return &t.KeptDead, t.Limits.KeepDead
	}
	return &t.KeptDone, t.Limits.KeepDelivered
}

// Unused reports whether nothing in memory refers to the topic. One of store.GroupInternal is kept, with its counts.
func (t *Topic) Unused() bool {
	return !store.IsInternal(t.Name.Name) && t.revision == 0 && len(t.Queues) == 0 && t.Waiting == 0 &&
		t.Running == 0 && t.KeptDone.Jobs == 0 && t.KeptDead.Jobs == 0 &&
		t.Ids == 0 && t.Grants == nil && !t.Alarm
}
