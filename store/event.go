package store

import (
	"time"

	"github.com/ringback/ringback/job"
)

// Bounds of events.
const (
	// MaxEventLanes is up to how many lanes the answer to an event names.
	MaxEventLanes = 1000
	// MaxEventBytes bounds the bodies of an event's jobs together.
	MaxEventBytes = 64 << 20
)

// An EventSpec is an event that a client sends.
type EventSpec struct {
	// ID makes sending safe to repeat: the same id is one event of the namespace. You can send it as the header
	// `Idempotency-Key` instead. Default: a generated one.
	ID string `json:"id" api:"id,always" validate:"omitempty,event_id"`
	// Type is what happened, such as `order.paid`: lanes subscribe to types.
	Type string `json:"type" api:"type,always" validate:"event_type"`
	// Job is what each lane gets, with the event's labels and its due time, and without an id and a lane.
	Job job.New `json:"job" validate:"-"`
}

// An Event is an event as it is shown.
type Event struct {
	Namespace string
	ID        string `api:"id,always"`
	Topic     string `api:"topic,always"`
	// Type is what happened.
	Type string `api:"type,always"`
	// Labels are names and values to find the event and its jobs by.
	Labels map[string]string `api:"labels"`
	// DueAt is when its jobs are due.
	DueAt     time.Time `api:"due_at,always"`
	CreatedAt time.Time `api:"created_at,always"`
	// CreatedBy is the token that sent it. Null: unknown, or no token was needed.
	CreatedBy string `api:"created_by"`
	// Expanded is whether all its jobs are registered, or will be in a moment. Otherwise it is not due yet, or has
	// lanes that were not treated yet.
	Expanded bool `api:"expanded,always"`
	// WaitingFor is why the rest of its jobs wait, such as a full quota. Null: for nothing but its due time or its
	// turn.
	WaitingFor string `api:"waiting_for"`
	// Jobs is the number of its jobs so far.
	Jobs int64 `api:"jobs,always"`
	// Lanes are the lanes that get a job, up to 1,000, in order of name. Lists of events leave them out.
	Lanes []EventLane `api:"lanes,always"`
	// Refused are the first lanes whose job was refused, with the reason. Lists of events leave them out.
	Refused []EventRefusal `api:"refused,always"`
	// Counts are the states of its jobs. Null: not asked for.
	Counts *EventCounts `api:"counts"`

	BodyKind job.BodyKind
	Body     []byte
	// Chosen is set if its lanes were chosen when it was sent.
	Chosen bool
	// Known is set in the answer to a repeated event.
	Known bool
}

// A SentEvent is an event that was sent, or why it was not.
type SentEvent struct {
	Event Event
	Err   error
}

// A ReplayPart is the next lanes to which a replay sends an event.
type ReplayPart struct {
	Topic string
	Lanes []string // in order of name
	// Last is the last lane that was looked at; empty: no more are left.
	Last string
	// Bytes is the size of the event's body.
	Bytes int
}

// An EventLane is a lane with its job.
type EventLane struct {
	Lane string `api:"lane,always"`
	// JobID is the id of the lane's job.
	JobID string `api:"job_id,always"`
}

// An EventRefusal is a lane without a job, with the reason.
type EventRefusal struct {
	Lane   string `json:"lane" api:"lane,always"`
	Reason string `json:"reason" api:"reason,always"`
}

// EventCounts are the jobs of an event by state.
type EventCounts struct {
	Delivered int64 `api:"delivered,always"`
	Dead      int64 `api:"dead,always"`
	Cancelled int64 `api:"cancelled,always"`
	// Waiting is the number of jobs that have not ended.
	Waiting int64 `api:"waiting,always"`
	// Forgotten is the number of jobs of which nothing is known any more.
	Forgotten int64 `api:"forgotten,always"`
	// Exact is false if the event has more than 1,000 jobs: then those of the first 1,000 lanes are counted.
	Exact bool `api:"exact,always"`
}
