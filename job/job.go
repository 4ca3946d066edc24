// Package job defines jobs: the specification, the progress, the history of attempts, ids, and the validation of
// registrations and settings.
//
// Values are plain data. The package reads no clock and does no I/O. Values are safe for concurrent use as long as no
// goroutine writes to them.
package job

import (
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/policy"
)

// DefaultNamespace is the namespace of every job. DefaultTopic and DefaultLane are those of a job without one (the
// default lane of a job with a URL is the URL's host:port).
const (
	DefaultNamespace = "default"
	DefaultTopic     = "default"
	DefaultLane      = "default"
)

// MainStore is the name of the store that a process always has. Tokens and namespaces are stored on it, and so is the
// content of namespaces that name no other.
const MainStore = "main"

// CallbackTopic is the topic of callbacks, WorkTopic that of the jobs that do bulk work, ScheduleTopic that of the jobs
// that make the ticks of schedules, EventTopic that of events. All are reserved.
const (
	CallbackTopic = "_callbacks"
	WorkTopic     = "_work"
	ScheduleTopic = "_schedules"
	EventTopic    = "_events"
)

// IsReserved reports whether a topic is reserved for jobs that Ringback creates, as those with the prefix _ are:
// clients cannot register jobs in it, but can set its policy.
func IsReserved(topic string) bool { return strings.HasPrefix(topic, "_") }

// KindRegistered is the kind of jobs that clients registered, in filters. Their Spec.Kind is empty.
const KindRegistered = "registered"

// The kinds of jobs that Ringback creates.
const (
	KindCallback = "callback" // callback at the end of the job with the id Origin
	KindBacklog  = "backlog"  // callback about a topic's backlog
	KindWork     = "work"     // bulk work
	KindSchedule = "schedule" // makes the ticks of a schedule
)

// Kinds returns the kinds of jobs that Ringback creates.
func Kinds() []string { return []string{KindCallback, KindBacklog, KindWork, KindSchedule} }

// LabelEvent is the label of an event and its jobs with the type.
const LabelEvent = "rb.event"

// LabelTopic is the label of a callback with the name of its subject's topic, whose secrets sign it.
const LabelTopic = "rb.topic"

// Ref identifies a job: ids are unique within a namespace.
type Ref struct {
	Namespace string
	ID        string
}

// Queue identifies a queue, which has its own due, ready and claimed sets. No part contains a slash.
type Queue struct {
	Namespace string `json:"namespace,omitzero"`
	// Topic is the class of the job, whose policy applies. Default: `default`.
	Topic string `json:"topic,omitzero" api:"topic,always" validate:"omitempty,topic"`
	// Lane isolates the job's receiver from others of the topic. An internationalised host is written in ASCII
	// (`xn--…`). Default: the URL's `host:port`.
	Lane string `json:"lane,omitzero" api:"lane,always" validate:"omitempty,lane"`
}

// String returns the queue's name in keys and logs: namespace/topic/lane.
func (q Queue) String() string { return q.Namespace + "/" + q.Topic + "/" + q.Lane }

// State is a job's state. Clients must accept unknown ones.
type State string

// The states of a job. Scheduled and Ready differ by the clock alone: an unclaimed job is ready once it is due.
const (
	Scheduled State = "scheduled" // waits for its due time, also between attempts
	Ready     State = "ready"     // due, and not yet claimed
	Running   State = "running"   // claimed under a lease
	Delivered State = "delivered"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// Ended reports whether the state is final.
func (s State) Ended() bool { return s == Delivered || s == Dead || s == Cancelled }

// ReasonCancelled is the reason of a cancelled job.
const ReasonCancelled policy.Reason = "cancelled"

// Progress is a job's progress, written by the store only. Times are in whole milliseconds, UTC, by the store's clock.
type Progress struct {
	// State is `scheduled`, `ready` or `running`, and in the end `delivered`, `dead` or `cancelled`.
	State State `json:"state" api:"state,always"`
	// Reason is why the job ended. Of a dead job it is `exhausted`, `expired`, `max_age`, `gave_up`, `nonretryable`,
	// `blocked` or `invalid`, of a cancelled one `cancelled`.
	Reason policy.Reason `json:"reason,omitzero" api:"reason"`
	// Attempts is the number of ended attempts over all revivals, without released ones.
	Attempts int `json:"attempts,omitzero" api:"attempts_made,always"`
	// Status is the status of the last attempt that was not lost. Null: it got no complete answer.
	Status int `json:"status,omitzero" api:"last_status"`
	// ErrorClass is why that attempt got no complete answer, as in attempts. Null: it got one.
	ErrorClass policy.ErrorClass `json:"error_class,omitzero" api:"last_error_class"`
	// CreatedAt is when the job was registered.
	CreatedAt time.Time `json:"created_at" api:"created_at,always"`
	// DueAt is when the next attempt is due; of a running job, when the current one was; of an ended job, the last.
	DueAt time.Time `json:"due_at"`
	// FirstDueAt is the first due time of this generation. MaxAge counts from it.
	FirstDueAt time.Time `json:"first_due_at"`
	// ExpiresAt is the expiry: no attempt starts later. Null: never.
	ExpiresAt time.Time `json:"expires_at,omitzero" api:"expires_at"`
	// FinishedAt is when the job was delivered, died or was cancelled.
	FinishedAt time.Time `json:"finished_at,omitzero" api:"ended_at"`
	// Version grows with every change by a client; also the `ETag`.
	//
	// It starts at 1. The changes are accepted edits, runs, revivals and cancellations (also requested ones).
	Version int64 `json:"version" api:"revision,always"`
	// Generation is the number of revivals.
	Generation int `json:"generation,omitzero" api:"generation,always"`
	// FailedAttempts counts this generation's attempts that cost a retry: failed ones, and lost ones from the third in
	// a row.
	FailedAttempts int `json:"failed_attempts,omitzero"`
	// ConsecutiveLost counts the attempts lost in a row.
	ConsecutiveLost int `json:"consecutive_lost,omitzero"`
	// CancelRequested is set when the job was cancelled while it was running.
	//
	// It is cancelled unless its attempt succeeds.
	CancelRequested bool `json:"cancel_requested,omitzero" api:"cancel_requested,always"`
}

// SetAnswer sets what Attempt.Answer returned of the last attempt that was not lost.
func (p *Progress) SetAnswer(text string) {
	var err error
	if p.Status, err = strconv.Atoi(text); err != nil {
		p.ErrorClass = policy.ErrorClass(text)
	} else {
		p.ErrorClass = policy.ClassNone
	}
}

// Answer returns the job's Status or ErrorClass as one word; empty: it has neither.
func (p *Progress) Answer() string { return answer(p.Status, p.ErrorClass) }

// Job is a registered job.
type Job struct {
	Spec
	Progress
	// History is the newest attempts, at most MaxAttempts that count (AttemptKind.Counts) and MaxAttempts releases,
	// oldest first. Events is the newest MaxEvents changes by clients, oldest first, without the registration; see
	// Created. Only calls that document it fill them.
	History []Attempt
	Events  []Event
	// CallbackID is the id of the callback for the end of a delivered or dead job. Null: neither the job nor its
	// topic's current policy has one.
	//
	// Package dispatcher sets it, not the engines.
	CallbackID string `api:"callback_id"`
	// Durability is set in the result of a change (register, edit, cancel, revive) if the store waits for durability.
	Durability *Durability
}

// Durability is what a change had reached when it was acknowledged.
type Durability struct {
	// Replicas is the number of replicas that had the change: on disk if the server waits for that, else in memory.
	Replicas int `api:"replicas,always"`
	// Synced is whether the change was on the disk of the store that answered; also false if the server does not wait
	// for that.
	Synced bool `api:"synced,always"`
}

// Bounds of a job's history. Attempts that count, releases and events have separate bounds, so that none of them
// displaces another's entries.
const (
	MaxAttempts = 20
	MaxEvents   = 20
)

// AttemptKind is the kind of an attempt.
type AttemptKind string

// The kinds of attempts.
const (
	KindAttempt  AttemptKind = "attempt"  // a request and its result
	KindLost     AttemptKind = "lost"     // its lease expired without a settlement
	KindReleased AttemptKind = "released" // costs no retry: released, or dead without a request
)

// Counts reports whether the attempt counts as one of Progress.Attempts.
func (k AttemptKind) Counts() bool { return k == KindAttempt || k == KindLost }

// Attempt is one attempt of a job. JSON returns its stored form.
type Attempt struct {
	// N is the attempt's number over all generations, from 1. A released attempt has the number of the next one that
	// counts.
	N         int
	Kind      AttemptKind
	StartedAt time.Time // in whole milliseconds
	// Duration and Phases are multiples of policy.DurationUnit.
	Duration time.Duration
	Phases   policy.Phases
	// URL is the URL of the request if it is not Spec.AttemptURL; empty: it is, or there was no request.
	URL string
	// RemoteAddr is the address and port that were dialled: the receiver's, or the forward proxy's. Empty: none was.
	RemoteAddr string
	// Process is the name of the process that made the attempt (pool.Pool.Process). Of a lost attempt it is the lease
	// owner that the name ends with. Empty: unknown.
	Process    string
	Status     int
	Verdict    string        // policy.Kind.String(); Cancelled if the job was cancelled while the attempt failed
	Reason     policy.Reason // of a dead verdict
	Error      string
	ErrorClass policy.ErrorClass
	Header     map[string][]string
	Body       []byte // truncated to MaxAttemptBody
}

// Answer returns the status of a complete answer, or else the error class, as one word; empty: there is neither.
func (a *Attempt) Answer() string { return answer(a.Status, a.ErrorClass) }

func answer(status int, class policy.ErrorClass) string {
	if class == policy.ClassNone && status > 0 {
		return strconv.Itoa(status)
	}
	return string(class)
}

// EventKind is the kind of an event.
type EventKind string

// The kinds of events.
const (
	EventCreated   EventKind = "created"   // registered; never stored, see Job.Created
	EventEdited    EventKind = "edited"    // changed by a client
	EventRun       EventKind = "run"       // made due at once by a client
	EventRevived   EventKind = "revived"   // revived by a client
	EventCancelled EventKind = "cancelled" // cancelled by a client, or requested while running
)

// Bounds of an event.
const (
	MaxActor  = 64 // bytes of an actor's name
	MaxFields = 16 // names of changed fields
)

// Event is a change of a job by a client. JSON returns its stored form.
type Event struct {
	At time.Time `api:"at,always"` // in whole milliseconds
	// Kind is what the client did. `cancelled`: also requested while the job was running.
	Kind EventKind `api:"kind,always"`
	// Fields are the fields that an edit changed. A new body is `body`, in any form; a new due time is `run_at`, a new
	// expiry `expires_at`. Null: it is not an edit.
	Fields []string `api:"fields"` // at most MaxFields
	// Actor is who made the change. Null if unknown.
	Actor string `api:"actor"` // at most MaxActor bytes
}

// Created returns the event of the job's registration, which is derived from the job and not part of Events.
func (j *Job) Created() Event { return Event{At: j.CreatedAt, Kind: EventCreated, Actor: j.CreatedBy} }

// Bounds of the part of a response that is kept, in bytes.
const (
	MaxAttemptBody   = 1 << 10
	MaxAttemptHeader = 4 << 10
)

// TimeLayout is the form of times in answers and texts, in UTC: Millis, and always its three digits.
const TimeLayout = "2006-01-02T15:04:05.000Z07:00"

// Millis truncates a time to whole milliseconds, UTC. The zero time stays zero.
func Millis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
