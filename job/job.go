// Package job holds what Ringback is about: a Job as it is registered, how far it has come, the record of its attempts,
// its id, and the rules by which a registration is accepted.
//
// Job values are data. Nothing here reads a clock, talks to a store or starts anything; values are safe for concurrent
// use as long as nobody writes to them.
package job

import (
	"time"

	"github.com/ringback/ringback/policy"
)

// DefaultNamespace is the tenant of every job until tokens bring others; DefaultTopic and DefaultLane are taken when a
// job names none (a job with a URL takes the URL's host:port as its lane).
const (
	DefaultNamespace = "default"
	DefaultTopic     = "default"
	DefaultLane      = "default"
)

// CallbackTopic is the topic of the jobs that Ringback makes to tell of others. Topics that begin with _ are its own:
// nobody registers jobs of them, but their policies can be put like any.
const CallbackTopic = "_callbacks"

// The kinds of jobs that Ringback makes itself.
const (
	KindCallback = "callback" // tells of the end of the job that Origin names
	KindAlarm    = "alarm"    // tells of a topic's backlog
)

// LabelTopic is the label of a job of Ringback's own that names the topic it tells of, whose secrets sign it.
const LabelTopic = "rb.topic"

// A Ref names a job: ids are unique within a namespace.
type Ref struct {
	Namespace string
	ID        string
}

// A Queue is what has due, ready and held sets of its own. No part contains a slash.
type Queue struct {
	Namespace string
	Topic     string
	Lane      string
}

// String is the queue's name in keys and logs: namespace/topic/lane.
func (q Queue) String() string { return q.Namespace + "/" + q.Topic + "/" + q.Lane }

// BodyKind says how a body was sent, so that it is shown as it came.
type BodyKind uint8

// The kinds of bodies. The zero value is no body at all.
const (
	BodyNone   BodyKind = iota
	BodyJSON            // any JSON, kept byte for byte
	BodyText            // body_text
	BodyBase64          // body_base64
)

// Spec is what a job asks for. Ladder, Retries and Timeout come with the embedded Terms.
type Spec struct {
	ID    string
	Queue // topic and lane never change after registration

	URL         string // empty: the topic's
	Method      string // POST, PUT, PATCH, GET or DELETE
	Header      map[string][]string
	ContentType string
	BodyKind    BodyKind
	Body        []byte
	Labels      map[string]string

	policy.Terms

	// Kind and Origin tell jobs that Ringback makes itself (callbacks, later schedules and fan-out) from registered
	// ones: Kind is empty for those, Origin is the id of the job that gave birth to this one.
	Kind   string
	Origin string

	// Unknown holds the stored fields that a newer version has written and this one does not know; a rewrite keeps them.
	Unknown []byte
}

// Ref is the job's name.
func (s Spec) Ref() Ref { return Ref{s.Namespace, s.ID} }

// State is where a job stands. More may come: clients must bear unknown ones.
type State string

// The states of a job. Scheduled and Ready differ by the clock alone: a job that nobody holds is ready once it is due.
const (
	Scheduled State = "scheduled" // waits for its due time, also between attempts
	Ready     State = "ready"     // due, and not yet claimed
	Running   State = "running"   // held under a lease
	Delivered State = "delivered"
	Dead      State = "dead"
	Cancelled State = "cancelled"
)

// Ended reports whether a job in this state is finished.
func (s State) Ended() bool { return s == Delivered || s == Dead || s == Cancelled }

// ReasonCancelled is the reason that a cancelled job shows.
const ReasonCancelled policy.Reason = "cancelled"

// Progress is how far a job has come. Only a store writes it. Times are in whole milliseconds, UTC, by the store's
// clock.
type Progress struct {
	State     State
	CreatedAt time.Time
	// DueAt is when the next attempt is due; of a running job, when the attempt under way was; of an ended one, when
	// the last was.
	DueAt time.Time
	// Since is the first due moment of this round: the age of a job counts from it.
	FirstDueAt time.Time
	// ExpiresAt ends the job before any attempt later than it; zero: never.
	ExpiresAt time.Time
	// FinishedAt is zero for an unfinished job.
	FinishedAt time.Time
	Reason     policy.Reason // of a dead or cancelled job
	// Version counts from 1 and grows with every accepted edit, run, revival and cancel (also a requested one).
	Version int64
	// Round counts revivals, from 0.
	Generation int
	// Attempts counts all attempts that ended, those lost with their process too; released ones not.
	Attempts int
	// FailedAttempts counts this round's attempts that cost a retry: ended ones, and lost ones from the third in a row on.
	FailedAttempts int
	// Lost counts the attempts lost in a row.
	ConsecutiveLost int
	// Status is what the last attempt that ended was answered with (a lost one did not end); zero: it had no answer.
	Status int
	// CancelRequested marks a running job that is to be cancelled unless the attempt under way succeeds.
	CancelRequested bool
}

// A Job is a registered job.
type Job struct {
	Spec
	Progress
	// Attempts is the record, oldest first, at most MaxAttempts and MaxEvents of the newest; filled only where a call says so.
	History []Attempt
	// CallbackID is the id of the callback that is sent at this job's end; empty: none is. Package dispatcher fills it in;
	// engines do not know it.
	CallbackID string
	// Reached is how durable the change was when it was answered; only in answers to changes (registered, edited,
	// cancelled, revived), and only where the store was told to wait for more than its own answer.
	Durability *Durability
}

// Durability is how far a change had come when it was answered.
type Durability struct {
	// Replicas is how many replicas had it: in their memory, or (with Synced asked for) on their disks.
	Replicas int
	// Synced says that it was on the disk of the server that answered; false too where nobody asked.
	Synced bool
}

// Bounds of a job's record. Each kind of entry displaces its own only: no edit displaces an attempt.
const (
	MaxAttempts = 20 // the newest attempts, see AttemptKind.IsAttempt
	MaxEvents   = 20 // the newest of everything else
)

// AttemptKind says what an entry of the record tells of.
type AttemptKind string

// The kinds of record entries.
const (
	KindAttempt   AttemptKind = "attempt"   // a request, and what came of it
	KindLost      AttemptKind = "lost"      // its lease lapsed: the process died, or could not tell
	KindReleased  AttemptKind = "released"  // given back without counting
	KindEdited    AttemptKind = "edited"    // changed by a client
	KindRun       AttemptKind = "run"       // made due at once by a client
	KindRevived   AttemptKind = "revived"   // sent on another round by a client
	KindCancelled AttemptKind = "cancelled" // a client's wish, fulfilled or (while running) noted
)

// IsAttempt reports whether the entry is an attempt that was counted, and not another event of the job.
func (k AttemptKind) IsAttempt() bool { return k == KindAttempt || k == KindLost }

// Attempt is one entry of a job's record. Its JSON form is what stores keep; short names, because there are many.
type Attempt struct {
	// N is the attempt's number over all rounds, from 1; for the other kinds, the number of attempts made so far.
	N         int         `json:"n"`
	Kind      AttemptKind `json:"k"`
	StartedAt time.Time   `json:"t"`
	// Duration is in nanoseconds; the API shows milliseconds.
	Duration   time.Duration       `json:"d,omitempty"`
	Status     int                 `json:"s,omitempty"`
	Verdict    string              `json:"v,omitempty"` // policy.Kind.String()
	Reason     policy.Reason       `json:"r,omitempty"` // of a dead verdict
	Error      string              `json:"e,omitempty"`
	ErrorClass policy.ErrorClass   `json:"c,omitempty"`
	Header     map[string][]string `json:"h,omitempty"`
	Body       []byte              `json:"b,omitempty"` // capped at MaxAttemptBody
}

// Bounds of what an attempt keeps of an answer.
const (
	MaxAttemptBody   = 1 << 10
	MaxAttemptHeader = 4 << 10
)

// New is a job to be registered: what it asks for and when.
type New struct {
	Spec
	// Delay is added to the store's clock; RunAt is taken when it is set, and means now when it is in the past.
	Delay time.Duration
	RunAt time.Time
	// ExpiresIn is counted from registration; ExpiresAt is taken when it is set; both zero: never.
	ExpiresIn time.Duration
	ExpiresAt time.Time
}

// Millis cuts a time to whole milliseconds, UTC; the zero time stays zero.
func Millis(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}
