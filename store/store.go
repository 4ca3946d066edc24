package store

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// Store is an engine: the settings of topics, which hold for all shards, and the shards themselves. Router finds the shard
// of a queue or of a job.
type Store interface {
	// Shards are the independent parts of the data, in order; 1 to job.MaxShards. Their number is fixed for the life of the
	// data. The slice is the same at each call and must not be changed.
	Shards() []Shard

	// PutTopic writes a topic's policy, for all shards. A revision other than 0 must be the stored one (MustNotExist:
	// there is none), else ErrVersion. The answer holds the new revision. It holds for claims, carries and sweeps that begin once it has
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

// Shard is one independent part of a store. Each caller takes the smallest of its interfaces that it can work with.
type Shard interface {
	Queue
	Jobs
	Keeper
	Counts
	LaneSettings
}

// Queue is what a claim loop needs: it waits for due jobs, claims them and settles their attempts.
type Queue interface {
	// Claim takes ready (and due) jobs of the wanted queues, in due order within a queue, and holds them for the caller
	// under token. A job's lease lasts its own Timeout, else the Want's, plus Margin. Repeated with its token it
	// answers the jobs that are still held under it. What it leaves in a queue can come before everything else on the
	// agenda: then Wait with Wake returns.
	//
	// A queue gives nothing while it is paused, at its lane's concurrency, held back (LaneChange), or at its lane's rate:
	// no more jobs are claimed from it in any window of the rate's length than the rate allows, whoever claims, counted
	// as if each attempt began as late as it may (Slack). Up to 64 starts a window are counted one by one; of larger
	// rates a start may count for a 64th of the window longer. A queue whose breaker is open gives, after its hold, one
	// job while nothing of it is held: a probe. The bell rings when a hold or a rate lets it go on, without delay.
	Claim(ctx context.Context, token Token, request ClaimRequest) (ClaimResult, error)

	// ClaimExpired holds jobs that wait though their time to live is over, that of the oldest first, under token, for the
	// caller to end them: Claim does not reach those of queues that are kept back. A job's time to live ends with the
	// earlier of its expiry and of Since + MaxAge, the MaxAge being that of its Entry. Whether they are due does not matter,
	// nor do pauses, holds, breakers, rates and limits; nor do they count as starts or probes. For its MaxAge a job is
	// handed out once, unless it is edited or revived, since the policy may have become another. Repeated with its token it
	// answers the jobs that are still held under it.
	ClaimExpired(ctx context.Context, token Token, request ClaimExpiredRequest) ([]ClaimedJob, error)

	// Settle ends attempts, at most MaxBatch, and answers one error for each: nil, or ErrLeaseLost when the job is not
	// held under the settlement's lease: then nothing of the settlement takes effect. With next, it claims in the same trip, after the settlements, under the same
	// token (the answer's Claimed is then what Claim would have answered). Settlements are recorded even if ctx ends
	// once they were sent.
	Settle(ctx context.Context, token Token, items []Settlement, next *ClaimRequest) ([]error, ClaimResult, error)

	// Wait blocks until the bell of the group rings, or (with Wake) something came before the agenda's head, or Wait
	// has passed; the last gives an empty Rung and no error. It returns soon after ctx ends. A token that is lost with
	// its taker is rung again within a second by Carry. At most one Wait a shard and process is under way at a time;
	// those of several processes are served in the order in which they began to wait.
	Wait(ctx context.Context, watch WaitOptions) (Wakeup, error)

	// Ring puts queues on the bell for others to serve, at most MaxBatch. Queues with nothing to claim may be dropped.
	Notify(ctx context.Context, queues []job.Queue) error

	// Permit grants starts to topics with a rate, at most MaxBatch, on the topics' own shard (Router.ShardOfTopic), and
	// answers each ask, in order: no more starts in any window of the rate's length than the rate allows, whoever asks,
	// counted as in Claim. What is given back counts no more. It is for the caller to claim no more than was granted,
	// and to begin no attempt later than its Slack allows.
	Permit(ctx context.Context, token Token, asks []PermitRequest) ([]Permit, error)
}

// Jobs registers, reads and changes jobs on request.
type Jobs interface {
	// Insert registers jobs, all of one shard, at most MaxBatch of them, and answers one result for each, in order. A
	// job whose id is known changes nothing: its result says Existing when the entry's Print equals the one the id was
	// registered with and the job is not cancelled, else Conflict. Two entries of one call are taken in order. A job due now goes straight
	// to ready, and the bell rings, when nothing of its queue is due before it. When the queue's next look comes before
	// everything else on the shard's agenda, Wait with Wake returns.
	Insert(ctx context.Context, token Token, entries []NewJob) ([]InsertResult, error)

	// Get reads a job with its record. ErrNotFound.
	Get(ctx context.Context, ref job.Ref) (job.Job, error)

	// Known answers for each id, at most MaxBatch, whether an Insert of it on this shard would find it known.
	Known(ctx context.Context, refs []job.Ref) ([]bool, error)

	// List reads one page of a topic's jobs in one state, without bodies and records, ordered by the time of the state
	// within a lane. A page may be short, even empty, while its Cursor is set.
	List(ctx context.Context, filter Filter) (Page, error)

	// Edit changes a scheduled or ready job and adds to its record. ErrNotFound; ErrVersion when IfVersion does not
	// hold; a StateError in any other state; ErrExpired when it moves the due time or the expiry so that the expiry comes
	// first.
	Edit(ctx context.Context, token Token, ref job.Ref, edit Edit) (job.Job, error)

	// Cancel ends an unfinished job: the answer is the job as it then stands. A running one is marked instead
	// (CancelRequested): a settlement that says Delivered still delivers it, anything else, and a lapse, cancels it.
	// Cancelling a cancelled or marked job changes nothing. ErrNotFound; a StateError when it is delivered or dead.
	Cancel(ctx context.Context, token Token, ref job.Ref) (job.Job, error)

	// Revive sends ended jobs on another round, at most MaxBatch, and answers a result for each, in order: the job as it
	// then stands, with a fresh budget (FailedAttempts and Lost start again, Attempts goes on), or ErrNotFound, or a StateError when it
	// is unfinished or not in the state that the revival names, or ErrExpired when its expiry would come before it is due
	// again. Two revivals of one job in a call are taken in order.
	Revive(ctx context.Context, token Token, items []Revival) ([]ReviveResult, error)

	// Purge removes dead jobs for good, at most MaxBatch, and answers one error for each: nil, ErrNotFound, or a
	// StateError when it is not dead. An id chosen by a client stays known as long as it would have.
	Purge(ctx context.Context, token Token, refs []job.Ref) ([]error, error)
}

// Keeper is what the carrier of a shard needs: it moves due jobs, applies retention and repairs the data.
type Keeper interface {
	// Leadership takes the shard's carrier lock for LeadershipTTL. ErrNotLeader: another has it. The lock is an optimisation:
	// every move is atomic by itself.
	Lead(ctx context.Context) (Leadership, error)

	// Carry makes one bounded round of moves: it removes outbox entries that the caller has brought home, looks at the
	// agenda's queues whose moment has come, sends lapsed jobs back to due, moves due jobs to ready, rings the bell,
	// and notes for each queue the next moment at which someone must look. It answers what is left to do.
	Carry(ctx context.Context, token Token, round CarryOptions) (CarryResult, error)

	// Sweep removes what retention no longer keeps, at most limit ended jobs and as many remembered ids. In its own time it
	// also forgets topics and lanes that nothing refers to any more: no job, kept or not, no policy or settings, no hold,
	// breaker, counted start or alarm; and not before Repair has done what it has to. Totals keep the counts of forgotten
	// topics.
	Sweep(ctx context.Context, token Token, limit int) (SweepResult, error)

	// Repair checks a bounded part of the shard's data for what must not be: a job that is in no place or in two, an entry
	// without a job, a counter that does not agree with the jobs. It repairs what it finds, each in one atomic step. An
	// engine whose data may have lost their last writes checks the whole shard after that, within a minute for a million jobs; the shard's
	// carrier calls it again whenever Wait has passed. A job that is repaired may be attempted once more.
	Repair(ctx context.Context) (RepairResult, error)

	// Alarm notes whether a topic's alarm is raised, on the topic's own shard, and tells whether that changed anything.
	// Only then the births are written to the outbox, in the same step.
	Alarm(ctx context.Context, token Token, alarm Alarm) (changed bool, err error)
}

// Counts reads the numbers of jobs.
type Counts interface {
	// TopicStats counts the topics that the filter selects, in order of name. Topics that the shard does not know have no
	// row.
	TopicStats(ctx context.Context, filter StatsFilter) ([]TopicStats, error)

	// Totals adds up the counts of all topics of a namespace, those that Sweep has forgotten among them. Its Topic is empty.
	Totals(ctx context.Context, namespace string) (TopicStats, error)

	// Lanes counts the unfinished jobs of a topic's lanes, in order of name, at most limit, beginning after a name.
	LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]LaneStats, error)
}

// LaneSettings stores the settings of single lanes.
type LaneSettings interface {
	// PutLane writes a lane's own settings, on its queue's shard; zero ones remove them. A revision other than 0 must be
	// the stored one (MustNotExist: there is none), else ErrVersion. The answer holds the new revision. It holds for claims that begin once it has
	// returned, each of which reports the revision; a lane that is resumed rings for what is due.
	PutLane(ctx context.Context, token Token, lane Lane) (Lane, error)

	// GetLanes reads lanes' own settings, at most MaxBatch, all of one shard: one for each queue, in order, with
	// revision 0 where nothing is put.
	GetLanes(ctx context.Context, queues []job.Queue) ([]Lane, error)

	// ListLanes lists the lanes of a topic with settings of their own, in order of name, at most limit (1 to MaxBatch),
	// beginning after a name.
	ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]Lane, error)
}

// Bounds of the contract.
const (
	// MaxBatch is the most entries, settlements or rung queues of one call.
	MaxBatch = 512
	// TokenTTL is how long a token is remembered after its call.
	TokenTTL = time.Minute
	// LeadershipTTL is how long a carrier lock holds without being extended.
	LeadershipTTL = 3 * time.Second
	// RenotifyAfter is how long after a ring a queue that still has claimable work rings again.
	RenotifyAfter = time.Second
	// BreakerRetention is how long after its hold an open breaker stays open with no probe; then it is forgotten.
	BreakerRetention = time.Hour
	// MustNotExist, as the revision of what is put, says that nothing may be stored yet.
	MustNotExist int64 = -1
	// CountedStarts is up to how many starts of a rate are counted one by one.
	CountedStarts = 64
	// GroupPush is the bell of the pools that POST to URLs.
	GroupPush = "push"
)

// A Leadership is a carrier lock held.
type Leadership interface {
	// Extend holds it for another LeadershipTTL; ErrNotLeader when it was lost.
	Extend(ctx context.Context) error
	// Release gives it up, so that another need not wait.
	Release(ctx context.Context) error
}
