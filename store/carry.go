package store

import (
	"time"

	"github.com/ringback/ringback/job"
)

// CarryOptions bounds one Carry.
type CarryOptions struct {
	// Queues is how many of the agenda's queues are looked at, and Jobs how many jobs are moved; Ready bounds a ready
	// list. Zero: 128, 1024 and 1024.
	Queues int
	Jobs   int
	Ready  int
	// KeepLeases leaves lapsed leases alone for this round, so that settlements held up by a fault come first.
	KeepLeases bool
	// ExpireLeasesBefore, unless zero, is the instant of the store's clock that the caller expects it to show by now: leases
	// whose deadline is later stay, so that a clock that jumped ahead takes no job from a healthy worker.
	ExpireLeasesBefore time.Time
	// Home names outbox entries that now stand in their own queue.
	Relayed []job.Ref
	// Skip is how many of the outbox's oldest entries, after those of Home are gone, are passed over: their queues are
	// out of reach, and nothing is gained by reading them again.
	SkipOutbox int
	// Bytes bounds what is handed out of the outbox, about; the first entry always fits. Zero: OutboxBytes.
	OutboxBytes int
}

// OutboxBytes is how much one Carry hands out of the outbox where its round does not say.
const OutboxBytes = 8 << 20

// CarryResult is what came of a Carry.
type CarryResult struct {
	// Moved and Lapsed count jobs that went to ready, and jobs that came back from a lapsed lease.
	Moved         int
	ExpiredLeases int
	// Outbox holds jobs to be inserted at their own queue and then named in Home, the oldest first, at most MaxBatch.
	Outbox []NewJob
	// Looked is how many entries of the outbox were looked at: those handed out, and those that cannot be read.
	OutboxRead int
	// Expired says that the time to live of unfinished jobs is over, which ClaimExpired hands out if they wait.
	HasExpiredJobs bool
	// Next is the time until the agenda's head; zero when more can be done at once; negative when the agenda is empty.
	Next time.Duration
	// Now is the store's clock at the move.
	Now time.Time
	// ClockStep is how far the store's clock was found to have been set ahead, or (negative) back, since the last round;
	// zero: not at all. An engine that follows that clock with more than due times rescores the rest: lease deadlines,
	// repeated rings, holds and rate windows are moved by the step, in this round and those that follow at once.
	// Due times stay what they are, unless the engine knows by a monotonic clock how long their jobs have waited.
	ClockStep time.Duration
}

// WaitOptions says what Wait waits for.
type WaitOptions struct {
	Group   string        // the bell, GroupPush
	Agenda  bool          // also return when something came before the agenda's head
	Max     int           // tokens to take at most; zero: MaxBatch
	Timeout time.Duration // at most; zero: 5 s
}

// Wakeup is what Wait came back with. A queue may be named though it has nothing to claim.
type Wakeup struct {
	Queues      []job.Queue
	AgendaMoved bool
}

// SweepResult is what came of a Sweep.
type SweepResult struct {
	Jobs int  // removed ended jobs
	IDs  int  // forgotten ids
	More bool // bounded by limit: call again
}
