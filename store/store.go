package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Store is an engine. Methods with a shard argument work on that shard alone; Router finds the shard for a queue or a
// job. A shard outside [0, Shards()) panics.
type Store interface {
	// Shards is the number of independent parts, fixed for the life of the data; 1 to job.MaxShards.
	Shards() int

	// Insert registers jobs, all of one shard, at most MaxBatch of them, and answers one result for each, in order. A
	// job whose id is known changes nothing: its result says Existing when the entry's Print equals the one the id was
	// registered with and the job is not cancelled, else Conflict. Two entries of one call are taken in order. A job due now goes straight
	// to ready, and the bell rings, when nothing of its queue is due before it. When the queue's next look comes before
	// everything else on the shard's agenda, Await with Wake returns.
	Insert(ctx context.Context, shard int, token Token, entries []Entry) ([]Inserted, error)

	// Lead takes the shard's carrier lock for LeadTime. ErrNotLeader: another has it. The lock is an optimisation:
	// every move is atomic by itself.
	Lead(ctx context.Context, shard int) (Lead, error)

	// Carry makes one bounded round of moves: it removes outbox entries that the caller has brought home, looks at the
	// agenda's queues whose moment has come, sends lapsed jobs back to due, moves due jobs to ready, rings the bell,
	// and notes for each queue the next moment at which someone must look. It answers what is left to do.
	Carry(ctx context.Context, shard int, token Token, round Round) (Carried, error)

	// Await blocks until the bell of the group rings, or (with Wake) something came before the agenda's head, or Wait
	// has passed; the last gives an empty Rung and no error. It returns soon after ctx ends. A token that is lost with
	// its taker is rung again within a second by Carry. At most one Await a shard and process is under way at a time;
	// those of several processes are served in the order in which they began to wait.
	Await(ctx context.Context, shard int, watch Watch) (Rung, error)

	// Ring puts queues on the bell for others to serve, at most MaxBatch. Queues with nothing to claim may be dropped.
	Ring(ctx context.Context, shard int, queues []job.Queue) error

	// Claim takes ready (and due) jobs of the wanted queues, in due order within a queue, and holds them for the caller
	// under token. A job's lease lasts its own Timeout, else the Want's, plus Margin. Repeated with its token it
	// answers the jobs that are still held under it. What it leaves in a queue can come before everything else on the
	// agenda: then Await with Wake returns.
	Claim(ctx context.Context, shard int, token Token, request ClaimRequest) (Claimed, error)

	// Settle ends attempts, at most MaxBatch, and answers one error for each: nil, or ErrLeaseLost when the job is not
	// held under the settlement's lease. With next, it claims in the same trip, after the settlements, under the same
	// token (the answer's Claimed is then what Claim would have answered). Settlements are recorded even if ctx ends
	// once they were sent.
	Settle(ctx context.Context, shard int, token Token, items []Settlement, next *ClaimRequest) ([]error, Claimed, error)

	// Cancel ends an unfinished job: the answer is the job as it then stands. A running one is marked instead
	// (CancelRequested): a settlement that says Delivered still delivers it, anything else, and a lapse, cancels it.
	// Cancelling a cancelled or marked job changes nothing. ErrNotFound; a StateError when it is delivered or dead.
	Cancel(ctx context.Context, shard int, token Token, ref job.Ref) (job.Job, error)

	// Edit changes a scheduled or ready job and adds to its record. ErrNotFound; ErrVersion when IfVersion does not
	// hold; a StateError in any other state.
	Edit(ctx context.Context, shard int, token Token, ref job.Ref, edit Edit) (job.Job, error)

	// Revive sends an ended job on another round, due after delay, with a fresh budget (Tries and Lost start again,
	// Made goes on, an expiry that has passed is dropped). ErrNotFound; a StateError when it is unfinished.
	Revive(ctx context.Context, shard int, token Token, ref job.Ref, delay time.Duration) (job.Job, error)

	// Get reads a job with its record. ErrNotFound.
	Get(ctx context.Context, shard int, ref job.Ref) (job.Job, error)

	// Known answers for each id, at most MaxBatch, whether an Insert of it on this shard would find it known.
	Known(ctx context.Context, shard int, refs []job.Ref) ([]bool, error)

	// List reads one page of a topic's jobs in one state, without bodies and records, ordered by the time of the state
	// within a lane. A page may be short, even empty, while its Cursor is set.
	List(ctx context.Context, shard int, filter Filter) (Page, error)

	// Stats counts, for one topic, or (an empty topic) for every topic that the shard has seen, in order of name.
	Stats(ctx context.Context, shard int, namespace, topic string) ([]TopicStats, error)

	// Lanes counts the unfinished jobs of a topic's lanes, in order of name, at most limit, beginning after a name.
	Lanes(ctx context.Context, shard int, namespace, topic, after string, limit int) ([]LaneStats, error)

	// Sweep removes what retention no longer keeps, at most limit ended jobs and as many remembered ids.
	Sweep(ctx context.Context, shard int, token Token, limit int) (Swept, error)

	// PutTopic writes a topic's policy, for all shards. A revision other than 0 must be the stored one, else
	// ErrVersion. The answer holds the new revision. It holds for claims, carries and sweeps that begin once it has
	// returned; a topic that is resumed rings for what is due within a second.
	PutTopic(ctx context.Context, topic Topic) (Topic, error)
	// Topics reads every topic's policy that was put, in order of namespace and name, and the revision that Claimed
	// reports until something changes.
	Topics(ctx context.Context) (topics []Topic, revision int64, err error)

	// Ping reports whether the store takes writes now; the error says why not.
	Ping(ctx context.Context) error
	// Close ends the use of the store. Calls under way may fail with ErrUnavailable.
	Close() error
}

// Bounds of the contract.
const (
	// MaxBatch is the most entries, settlements or rung queues of one call.
	MaxBatch = 512
	// TokenMemory is how long a token is remembered after its call.
	TokenMemory = time.Minute
	// LeadTime is how long a carrier lock holds without being extended.
	LeadTime = 3 * time.Second
	// RingAgain is how long after a ring a queue that still has claimable work rings again.
	RingAgain = time.Second
	// GroupPush is the bell of the pools that POST to URLs.
	GroupPush = "push"
)

// A Lead is a carrier lock held.
type Lead interface {
	// Extend holds it for another LeadTime; ErrNotLeader when it was lost.
	Extend(ctx context.Context) error
	// Release gives it up, so that another need not wait.
	Release(ctx context.Context) error
}

// Entry is a job to insert.
type Entry struct {
	job.New
	// Print is the registration's fingerprint when the id must stay known for its topic's id_window after the job's
	// end (ids chosen by clients, and jobs born in an outbox); nil for an id the server made.
	Print []byte
}

// Outcome says what an insertion came to.
type Outcome uint8

// The outcomes of an insertion.
const (
	Created Outcome = iota + 1
	Existing
	Conflict
)

// Inserted is the result of one entry. Job is as it stands now, without its record; when only its id is remembered it
// has the entry's Spec and the remembered State, FinishedAt and Reason.
type Inserted struct {
	Outcome Outcome
	Job     job.Job
}

// Round bounds one Carry.
type Round struct {
	// Queues is how many of the agenda's queues are looked at, and Jobs how many jobs are moved; Ready bounds a ready
	// list. Zero: 128, 1024 and 1024.
	Queues int
	Jobs   int
	Ready  int
	// HoldLapses leaves lapsed leases alone for this round, so that settlements held up by a fault come first.
	HoldLapses bool
	// LapseBefore, unless zero, is the instant of the store's clock that the caller expects it to show by now: leases
	// whose deadline is later stay, so that a clock that jumped ahead takes no job from a healthy worker.
	LapseBefore time.Time
	// Home names outbox entries that now stand in their own queue.
	Home []job.Ref
}

// Carried is what came of a Carry.
type Carried struct {
	// Moved and Lapsed count jobs that went to ready, and jobs that came back from a lapsed lease.
	Moved  int
	Lapsed int
	// Outbox holds jobs to be inserted at their own queue and then named in Home, at most MaxBatch.
	Outbox []Entry
	// Next is the time until the agenda's head; zero when more can be done at once; negative when the agenda is empty.
	Next time.Duration
	// Now is the store's clock at the move.
	Now time.Time
}

// Watch says what Await waits for.
type Watch struct {
	Group string        // the bell, GroupPush
	Wake  bool          // also return when something came before the agenda's head
	Max   int           // tokens to take at most; zero: MaxBatch
	Wait  time.Duration // at most; zero: 5 s
}

// Rung is what Await came back with. A queue may be named though it has nothing to claim.
type Rung struct {
	Queues []job.Queue
	Wake   bool
}

// Want asks for jobs of one queue.
type Want struct {
	Queue   job.Queue
	Max     int           // jobs at most
	Timeout time.Duration // of an attempt, for jobs without one of their own
}

// ClaimRequest asks for jobs of several queues, all on one shard, served in order.
type ClaimRequest struct {
	Wants []Want // at most MaxBatch
	// Max and MaxBytes bound the whole answer; bytes are those of bodies, and the first job always fits. Max is at most
	// MaxBatch.
	Max      int
	MaxBytes int
	// Margin is added to a job's timeout for its lease.
	Margin time.Duration
}

// Held is a claimed job. Its record (Attempts) is not filled. The attempt's number is Made + 1.
type Held struct {
	job.Job
	// Lease is the fence for the settlement.
	Lease Token
	// LeaseFor is how long the lease lasts, from no earlier than the start of the call; of a repeated claim, what is
	// left of it.
	LeaseFor time.Duration
	// Expired and Age are the store's clock against the job's expiry and against Since, at the claim.
	Expired bool
	Age     time.Duration
}

// QueueLeft says how a queue stands after a claim.
type QueueLeft struct {
	Queue job.Queue
	// More: it has claimable jobs left, which only the request's bounds kept back.
	More bool
	// Blocked: it is paused or at its lane's limit; it rings when that ends.
	Blocked bool
}

// Claimed is the answer to a claim: the jobs, and a line for each Want, in order.
type Claimed struct {
	Jobs   []Held
	Queues []QueueLeft
	// Revision is that of the topics' policies: when it differs from the one Topics gave, read them again.
	Revision int64
}

// Settlement ends one attempt.
type Settlement struct {
	Ref     job.Ref
	Queue   job.Queue
	Lease   Token
	Verdict policy.Verdict
	// Attempt is added to the record; its N is set by the caller (Made + 1). With job.KindAttempt Made grows, and with
	// a verdict other than Delivered Tries grows too, and Lost starts again from 0. With job.KindReleased (the verdict
	// Released) none of them changes. An empty Kind (a job that dies without a request) records and counts nothing.
	Attempt job.Attempt
	// Births are jobs that this end gives birth to, written to the outbox in the same step. They are dropped when the
	// settlement is refused.
	Births []Entry
}

// Edit is a change to a job. Nil fields stay as they are.
type Edit struct {
	// Kind is what the record says: job.KindEdited or job.KindRun.
	Kind job.AttemptKind
	// IfVersion, unless zero, is the version that the job must have.
	IfVersion int64
	// Delay and RunAt move the due time, as in job.New; at most one of them. Before a round's first attempt, Since moves with it.
	Delay *time.Duration
	RunAt *time.Time
	// ExpiresIn and ExpiresAt move the expiry; a zero ExpiresAt removes it.
	ExpiresIn *time.Duration
	ExpiresAt *time.Time

	URL     *string
	Header  map[string][]string
	Body    *Body
	Labels  map[string]string
	Ladder  policy.Ladder
	Retries *int
	Timeout *time.Duration
}

// Body replaces a job's body.
type Body struct {
	Kind        job.BodyKind
	ContentType string
	Bytes       []byte
}

// Spec changes what the edit says of a job's Spec; due time and expiry are the engine's to change.
func (e Edit) Spec(s *job.Spec) {
	if e.URL != nil {
		s.URL = *e.URL
	}
	if e.Header != nil {
		s.Header = e.Header
	}
	if e.Body != nil {
		s.BodyKind, s.ContentType, s.Body = e.Body.Kind, e.Body.ContentType, e.Body.Bytes
	}
	if e.Labels != nil {
		s.Labels = e.Labels
	}
	if e.Ladder != nil {
		s.Ladder = e.Ladder
	}
	if e.Retries != nil {
		s.Retries = e.Retries
	}
	if e.Timeout != nil {
		s.Timeout = *e.Timeout
	}
}

// Filter selects jobs. Topic and State must be set.
type Filter struct {
	Namespace string
	Topic     string
	State     job.State
	Lane      string // empty: any
	Label     string // "key=value" pair split by the API; empty: any
	Value     string
	// After and Before bound the time of the state (due, or finished), After inclusive, Before exclusive; zero: open.
	After  time.Time
	Before time.Time
	Limit  int // 1 to 500
	Cursor string
}

// Page is a part of a list. An empty Cursor means that it was the last.
type Page struct {
	Jobs   []job.Job
	Cursor string
}

// TopicStats counts one topic's jobs on a shard. Registered = Scheduled + Ready + Running + Delivered + Dead +
// Cancelled: the last three count every job that ended so and was not revived, kept or not. Jobs that are due and not
// held count as Ready or as Scheduled, as the engine has them at the moment.
type TopicStats struct {
	Namespace  string
	Topic      string
	Registered int64
	Scheduled  int64
	Ready      int64
	Running    int64
	Delivered  int64
	Dead       int64
	Cancelled  int64
	// OldestDue is the earliest due moment among the jobs that nobody holds; zero when there is none. Exact for up to
	// 1,000 lanes, else of those looked at.
	OldestDue time.Time
}

// LaneStats counts one lane's unfinished jobs.
type LaneStats struct {
	Lane      string
	Scheduled int64
	Ready     int64
	Running   int64
}

// Swept is what came of a Sweep.
type Swept struct {
	Jobs int  // removed ended jobs
	IDs  int  // forgotten ids
	More bool // bounded by limit: call again
}

// Topic is a stored policy: what was put, without defaults.
type Topic struct {
	Namespace string
	Name      string
	Policy    policy.Topic
	// Revision grows with every change, also after a fault has taken changes back.
	Revision int64
	// Reached is how durable a PutTopic was when it was answered, as in job.Job.
	Reached *job.Durability
}
