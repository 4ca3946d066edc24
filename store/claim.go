package store

import (
	"time"

	"github.com/ringback/ringback/job"
)

// QueueClaim asks for jobs of one queue.
type QueueClaim struct {
	Queue   job.Queue
	Max     int           // jobs at most
	Timeout time.Duration // of an attempt, for jobs without one of their own
	// Lane is the revision of the lane's settings that the caller knows; 0: none.
	Lane int64
}

// ClaimRequest asks for jobs of several queues, all on one shard, served in order.
type ClaimRequest struct {
	Queues []QueueClaim // at most MaxBatch
	// Max and MaxBytes bound the whole answer; bytes are those of bodies, and the first job always fits. Max is at most
	// MaxBatch.
	Max      int
	MaxBytes int
	// Margin is added to a job's timeout for its lease.
	Margin time.Duration
	// Slack is how long after the claim the attempts of a queue with a rate may begin. It counts into the rate's window,
	// so it costs speed; attempts that would begin later must be released.
	Slack time.Duration
}

// ClaimExpiredRequest asks for jobs whose time to live is over.
type ClaimExpiredRequest struct {
	Max      int // at most MaxBatch
	MaxBytes int // of bodies; the first job always fits
	// Lease is for how long the jobs are held.
	Lease time.Duration
}

// ClaimedJob is a claimed job. Its record (Attempts) is not filled. The attempt's number is Attempts + 1.
type ClaimedJob struct {
	job.Job
	// Lease is the fence for the settlement.
	Lease Token
	// LeaseFor is how long the lease lasts, from no earlier than the start of the call; of a repeated claim, what is
	// left of it.
	LeaseFor time.Duration
	// Age is the store's clock against Since, at the claim.
	Age time.Duration
	// Late is the store's clock against DueAt at the claim.
	Late time.Duration
	// Rated: the lane has a rate, so the attempt must begin within the request's Slack of the call's start.
	Rated bool
	// Probe: the lane's breaker is open, and this attempt decides whether it closes.
	Probe bool
}

// Now is the store's clock at the claim.
func (h *ClaimedJob) Now() time.Time { return h.FirstDueAt.Add(h.Age) }

// QueueStatus says how a queue stands after a claim.
type QueueStatus struct {
	Queue job.Queue
	// More: it has claimable jobs left, which only the request's bounds kept back.
	More bool
	// Blocked: it is paused, held back, or at its lane's limit or rate; it rings when that ends.
	Blocked bool
	// Open: the lane's breaker is open, or waits for its probe.
	BreakerOpen bool
	// Lane holds the lane's settings when their revision is not the one that the Want names.
	Lane *Lane
}

// ClaimResult is the answer to a claim: the jobs, and a line for each Want, in order.
type ClaimResult struct {
	Jobs   []ClaimedJob
	Queues []QueueStatus
	// Revision is that of the topics' policies: when it differs from the one Topics gave, read them again.
	Revision int64
}
