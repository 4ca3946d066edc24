package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// Settlement ends one attempt, or extends its lease.
type Settlement struct {
	Ref   job.Ref
	Queue job.Queue
	Lease Token
	// Extend, if positive, keeps the job claimed: its lease ends this long from now, rounded up to milliseconds, or
	// later if it already would. The fields below are not used then.
	Extend  time.Duration
	Verdict policy.Verdict
	// Attempt is appended to the history. The caller sets its N to Attempts + 1. The kind job.KindAttempt increments
	// Attempts, and, unless the verdict is Delivered, increments FailedAttempts and sets ConsecutiveLost to 0. The kind
	// job.KindReleased (for the verdict Released) changes none of them. An empty Kind, for a job that dies without a
	// request, appends and counts nothing. Of a job that is marked as cancelled, it is CancelledAttempt.
	Attempt job.Attempt
	// Late is the lateness of the attempt, as ClaimedJob.Late says, for the history.
	Late time.Duration
	// Outbox lists jobs to write to the outbox in the same step, such as callbacks. They are dropped when the
	// settlement is refused, and when the job is marked as cancelled and therefore does not end as the verdict says.
	Outbox []NewJob
	// LaneChange is the change to the job's lane that follows from the attempt.
	LaneChange LaneChange
	// Body replaces the job's body, of at most job.MaxBody bytes, in the same step; nil: unchanged. Its kind and the
	// job's version do not change. It is also replaced when the job is marked as cancelled, unless jobs of Outbox are
	// dropped, whose progress it says.
	Body []byte
}

// NewBody is Body for a job that is marked as cancelled, or not; nil: the body stays.
func (s *Settlement) NewBody(marked bool) []byte {
	if marked && s.Verdict.Kind != policy.Delivered && len(s.Outbox) > 0 {
		return nil
	}
	return s.Body
}

// CancelledAttempt returns the attempt to append for a job that is marked as cancelled: there is none after it, so the
// verdict Again becomes job.Cancelled.
func (s *Settlement) CancelledAttempt() job.Attempt {
	a := s.Attempt
	if s.Verdict.Kind == policy.Again && a.Verdict != "" {
		a.Verdict = string(job.Cancelled)
	}
	return a
}

// LaneChange changes the throttle of a lane.
type LaneChange struct {
	// Cooldown stops all claims of the lane for this long. It never shortens a cooldown. Rounded up to milliseconds.
	Cooldown time.Duration
	// Cause is that of Cooldown. It is kept with the cooldown that ends last.
	Cause CooldownCause
	// Breaker opens or closes the lane's breaker. After the cooldown an open breaker allows probes, until one of them
	// closes it or there was none for BreakerRetention.
	Breaker BreakerChange
}

// CooldownCause is why a lane has a cooldown.
type CooldownCause uint8

// The causes of cooldowns.
const (
	CooldownAsked      CooldownCause = iota // the receiver asked for it
	CooldownBreaker                         // the breaker has opened
	CooldownUnreadable                      // settings or secrets of an attempt could not be read
)

// BreakerChange is a change to the breaker of a lane.
type BreakerChange uint8

// The changes of a breaker.
const (
	KeepBreaker BreakerChange = iota
	OpenBreaker
	CloseBreaker
)
