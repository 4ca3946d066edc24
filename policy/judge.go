package policy

import (
	"strconv"
	"time"
)

// MaxRetryAfter is the longest Retry-After that is honoured. A longer one counts as this.
const MaxRetryAfter = 24 * time.Hour

// MaxLaneWait is the longest cooldown that a receiver's Retry-After puts on its lane.
const MaxLaneWait = time.Minute

// FreeLosses is the number of consecutive lost attempts of a job that do not count as failed. An attempt is lost when
// its lease expires: its process died, or could not report the result. Engines apply the rule, since they expire
// leases.
const FreeLosses = 2

// Progress is the state of a job at a decision. A revival starts a new generation of attempts.
type Progress struct {
	// FailedAttempts counts the generation's attempts that cost a retry: failed ones, and lost ones from the third in a
	// row on.
	FailedAttempts int
	// ConsecutiveLost counts the attempts lost in a row before this decision.
	ConsecutiveLost int
	// Age is the time since the generation's first due time.
	Age time.Duration
	// ExpiresIn is the time until the job's expiry, negative once it has passed. It is valid if Expires is set.
	ExpiresIn time.Duration
	Expires   bool
}

// deadReason returns why a job may not be attempted after wait; empty: it may.
func (p Progress) deadReason(terms Terms, wait time.Duration) Reason {
	switch {
	case p.Expires && p.ExpiresIn < wait:
		return ReasonExpired
	case terms.MaxAgeDerived && (p.FailedAttempts <= 0 || p.FailedAttempts > *terms.Retries):
		// the age is that of the retries: it ends no attempt before them, nor the one that fewer retries leave
		return ""
	case terms.MaxAge > 0 && p.Age > terms.MaxAge-wait:
		return ReasonMaxAge
	}
	return ""
}

// Judge returns the verdict on an attempt.
//
// terms are resolved (Topic.Terms). progress is the job's state at the end of the attempt, which FailedAttempts
// includes. random is in [0, 1). The wait counts from the end of the attempt and is never shorter than the rung or a
// receiver's Retry-After. A Retry-After on 408, 425, 429 or 5xx also puts a cooldown of up to MaxLaneWait on the lane.
// A job whose retry would come after its expiry or its MaxAge is dead at once. A consumer is a client that pulled the
// job, or a function.
//
//	result                                    verdict
//	accepted by a consumer                    delivered
//	matches the policy's success (2xx)        delivered
//	class shutdown                            released at once, uncounted
//	class local_resources                     released for 1 s to 2 s, uncounted
//	class blocked                             dead: blocked
//	class invalid                             dead: invalid
//	status in give_up_on                      dead: gave_up
//	4xx or consumer, and "do not retry"       dead: nonretryable
//	failed attempts > retries                 dead: exhausted
//	retry after the expiry                    dead: expired
//	retry after MaxAge                        dead: max_age
//	consumer with a RetryAfter                again after that, up to MaxRung
//	anything else                             again after max(rung × (1 + jitter × random), Retry-After)
func Judge(terms Terms, result Result, progress Progress, random float64) Verdict {
	if result.Accepted {
		return Verdict{Kind: Delivered}
	}
	responded, consumer, note := result.Class == ClassNone, result.Class == ClassConsumer, ""
	if responded {
		var ok bool
		if ok, note = terms.Success.check(result.Status, result.received()); ok {
			return Verdict{Kind: Delivered}
		}
	}
	retryAfter := min(max(result.RetryAfter, 0), MaxRetryAfter)
	v := Verdict{Note: note}
	if responded && isReceiverStatus(result.Status) {
		v.LaneWait = min(retryAfter, MaxLaneWait)
	}
	dead := func(reason Reason) Verdict {
		v.Kind, v.Reason = Dead, reason
		return v
	}
	switch {
	case result.Class == ClassShutdown:
		return Verdict{Kind: Released}
	case result.Class == ClassLocalResources:
		return releaseForShortage(terms, progress, random)
	case result.Class == ClassBlocked:
		return dead(ReasonBlocked)
	case result.Class == ClassInvalid:
		return dead(ReasonInvalid)
	case responded && matchesStatus(terms.GiveUpOn, result.Status):
		return dead(ReasonGaveUp)
	case result.NonRetryable && (consumer || responded && result.Status >= 400 && result.Status <= 499):
		return dead(ReasonNonRetryable)
	case progress.FailedAttempts > *terms.Retries:
		return dead(ReasonExhausted)
	}
	wait := max(addJitter(terms.Ladder.Rung(progress.FailedAttempts), terms.Jitter, random), retryAfter)
	if consumer && result.RetryAfter > 0 {
		wait = min(result.RetryAfter, MaxRung)
	}
	if reason := progress.deadReason(terms, wait); reason != "" {
		return dead(reason)
	}
	v.Kind, v.Wait = Again, wait
	return v
}

// The wait after an attempt that failed for lack of local resources: shortageWait to twice that, or minShortageWait if
// the job would be too old by then.
const (
	shortageWait    = time.Second
	minShortageWait = 100 * time.Millisecond
)

// releaseForShortage returns the verdict on an attempt that failed for lack of local resources. It costs no retry, but
// the job can become too old.
func releaseForShortage(terms Terms, progress Progress, random float64) Verdict {
	progress.FailedAttempts-- // this one does not count
	wait := addJitter(shortageWait, 1, random)
	if progress.deadReason(terms, wait) != "" {
		wait = minShortageWait
	}
	if reason := progress.deadReason(terms, wait); reason != "" {
		return Verdict{Kind: Dead, Reason: reason}
	}
	return Verdict{Kind: Released, Wait: wait}
}

// isReceiverStatus reports whether a status concerns the receiver as a whole rather than one request.
func isReceiverStatus(status int) bool {
	return status == 408 || status == 425 || status == 429 || status >= 500 && status <= 599
}

// addJitter returns wait × (1 + jitter × random), rounded up to whole milliseconds.
func addJitter(wait time.Duration, jitter, random float64) time.Duration {
	longer := wait + time.Duration(float64(wait)*jitter*random)
	if rest := longer % time.Millisecond; rest > 0 {
		longer += time.Millisecond - rest
	}
	return longer
}

// matchesStatus reports whether a three-digit status matches one of the patterns: "410", or "4xx" for a class.
func matchesStatus(patterns []string, status int) bool {
	if status < 100 || status > 999 {
		return false
	}
	code := strconv.Itoa(status)
	for _, p := range patterns {
		if p == code || (len(p) == 3 && p[1:] == "xx" && p[0] == code[0]) {
			return true
		}
	}
	return false
}
