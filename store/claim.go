package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// QueueClaim asks for jobs of one queue.
type QueueClaim struct {
	Queue   job.Queue
	Max     int           // jobs to claim at most
	Timeout time.Duration // of an attempt, for jobs that set none
	// LaneRevision is that of the lane's settings that the caller has; 0: none.
	LaneRevision int64
	// Deliver is how the caller delivers the jobs. A queue whose topic's policy differs returns none. Internal topics
	// are pushed.
	Deliver policy.Deliver
	// Ahead is how many jobs the caller may hold beyond the lane's concurrency while it holds all claimed jobs of the
	// queue.
	Ahead int
}

// ClaimRequest asks for jobs of several queues of a shard, in order.
type ClaimRequest struct {
	Queues []QueueClaim // at most MaxBatch
	// Max bounds the jobs of the result, and MaxBytes the size of their bodies; the first job always fits. Max is at
	// most MaxBatch.
	Max      int
	MaxBytes int
	// Margin is added to a job's timeout to give the length of its lease.
	Margin time.Duration
	// Slack is how long after the claim the attempts of a queue with a rate may begin. It extends the time for which a
	// start counts. Attempts that would begin later must be released.
	Slack time.Duration
	// Token of a claim that Settle makes replaces the settlement's, so that a repeat of the settlement may make another
	// claim; empty: the same. Claim does not use it.
	Token Token
}

// ClaimExpiredRequest asks for jobs whose time to live is over.
type ClaimExpiredRequest struct {
	Max      int // at most MaxBatch
	MaxBytes int // of bodies; the first job always fits
	// Lease is the length of the leases.
	Lease time.Duration
}

// ClaimedJob is a job with its lease, without its history. The number of the next attempt is Attempts + 1.
type ClaimedJob struct {
	job.Job
	// Lease is the token that the settlement must carry.
	Lease Token
	// LeaseFor is the length of the lease, from the start of the call or later; in a repeated claim, the remaining
	// length.
	LeaseFor time.Duration
	// Age is the time from FirstDueAt to the claim, by the store's clock.
	Age time.Duration
	// Late is the time from DueAt to the claim, by the store's clock.
	Late time.Duration
	// Rated is set when the claim counted as a start of the lane's rate. The attempt must then begin within Slack of
	// the start of the call. Under a rate it is not set when the job's time to live is over: no request may be made
	// then.
	Rated bool
	// Probe is set when the lane's breaker is open and this attempt decides whether it closes.
	Probe bool
}

// Now returns the store's clock at the claim.
func (j *ClaimedJob) Now() time.Time { return j.FirstDueAt.Add(j.Age) }

// QueueStatus is the state of a queue after a claim.
type QueueStatus struct {
	Queue job.Queue
	// More is set when the bounds of the request left claimable jobs in the queue. Where they left no room at all for
	// an ordered one, it may be set although the next job has not its turn yet.
	More bool
	// Blocked is set while the queue is paused, in a cooldown, or at its lane's concurrency or rate. The queue is
	// notified when that ends.
	Blocked bool
	// BreakerOpen is set while the lane's breaker is open, also while it waits for its probe.
	BreakerOpen bool
	// LaneDocument is the document of the lane's settings if its revision differs from that of the QueueClaim, else
	// nil.
	LaneDocument *Document
}

// ClaimResult is the result of a claim: the jobs, and a status for each QueueClaim, in order.
type ClaimResult struct {
	Jobs   []ClaimedJob
	Queues []QueueStatus
	// Revision is that of the topics' documents. When it differs from the one that ListChanges returned, list the
	// changes.
	Revision int64
	// Health is the change of each lane that had or has health, by the settlements before the claim.
	Health []HealthChange
}
