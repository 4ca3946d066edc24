package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Settlement ends one attempt.
type Settlement struct {
	Ref     job.Ref
	Queue   job.Queue
	Lease   Token
	Verdict policy.Verdict
	// Attempt is added to the record; its N is set by the caller (Attempts + 1). With job.KindAttempt Attempts grows, and with
	// a verdict other than Delivered FailedAttempts grows too, and Lost starts again from 0. With job.KindReleased (the verdict
	// Released) none of them changes. An empty Kind (a job that dies without a request) records and counts nothing.
	Attempt job.Attempt
	// Outbox are jobs that this end gives birth to, written to the outbox in the same step. They are dropped when the
	// settlement is refused, and when a cancel mark ends the job otherwise than the verdict says.
	Outbox []NewJob
	// Lane is what the attempt showed of its lane's receiver.
	Lane LaneChange
}

// LaneChange is what becomes of a whole lane after an attempt.
type LaneChange struct {
	// Hold keeps every job of the lane back for so long; it never shortens a hold. Whole milliseconds, rounded up.
	Cooldown time.Duration
	// Breaker opens or closes the lane's breaker. An open one outlasts its Hold: then probes are claimed, until one closes
	// it, or the lane has had no job for a while.
	Breaker BreakerChange
	// StartUnused says that the claim led to no attempt, nor will: the start that it took of the lane's rate is given back,
	// unless it counts no more, and the lane rings at once when that lets it go on. Where the claim was under no rate
	// (Held.Rated) it changes nothing.
	StartUnused bool
	// Slack is the claim's (ClaimRequest), where StartUnused: with its moment, which the store knows, it says until when the
	// start counts.
	Slack time.Duration
}

// BreakerChange says what becomes of a lane's breaker.
type BreakerChange uint8

// The changes of a breaker.
const (
	KeepBreaker BreakerChange = iota
	OpenBreaker
	CloseBreaker
)
