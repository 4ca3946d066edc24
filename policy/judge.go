package policy

import (
	"strconv"
	"time"
)

// MaxRetryAfter is how long a receiver can put a job off: a longer Retry-After counts as this.
const MaxRetryAfter = 24 * time.Hour

// MaxLaneWait is for how long a receiver's Retry-After holds back the other jobs of its lane.
const MaxLaneWait = time.Minute

// Progress is how far a job has come in its round, and how long it still has, when a decision is made.
type Progress struct {
	// FailedAttempts counts the round's attempts that cost a retry (attempts lost with their process count from the third in a row
	// on).
	Tries int
	// Age is the time since the round's first due moment.
	Age time.Duration
	// ExpiresIn is the time until the job's own expiry, negative once it has passed. It holds where Expires is set.
	ExpiresIn time.Duration
	Expires   bool
}

// reason is why a job must not be attempted after a wait; empty: it may be.
func (p Progress) reason(terms Terms, wait time.Duration) Reason {
	switch {
	case p.Expires && p.ExpiresIn < wait:
		return ReasonExpired
	case p.Age > terms.MaxAge-wait:
		return ReasonMaxAge
	}
	return ""
}

// Judge decides what follows an attempt.
//
// terms are resolved (Topic.Terms). progress is that at the end of the attempt, which its FailedAttempts include. random is in
// [0, 1) and spreads the wait upwards. The wait is counted from the end of the failed attempt, is never shorter than the
// rung, and never shorter than what the receiver asked for; a receiver that asked for a wait of 408, 425, 429 or 5xx gets
// up to MaxLaneWait of it from the whole lane. A retry that would come after the job's expiry, or when it is older than
// its MaxAge, is not scheduled: the job is dead at once.
//
//	result                                    verdict
//	a success as the policy says, or 2xx      delivered
//	class shutdown                            released at once, uncounted
//	class local_resources                     released for 1 s to 2 s, uncounted
//	class blocked                             dead: blocked
//	class invalid                             dead: invalid
//	status in give_up_on, and no success      dead: gave_up
//	4xx and "do not retry"                    dead: nonretryable
//	tries > retries                           dead: exhausted
//	the retry would come after the expiry     dead: expired
//	the retry would come after MaxAge         dead: max_age
//	anything else                             again after max(rung × (1 + jitter × random), Retry-After)
func Judge(terms Terms, result Result, progress Progress, random float64) Verdict {
	answered, note := result.Class == ClassNone, ""
	if answered {
		var ok bool
		if ok, note = terms.Success.judge(result.Status, result.Body); ok {
			return Verdict{Kind: Delivered}
		}
	}
	asked := min(max(result.RetryAfter, 0), MaxRetryAfter)
	v := Verdict{Note: note}
	if answered && ofReceiver(result.Status) {
		v.LaneWait = min(asked, MaxLaneWait)
	}
	dead := func(reason Reason) Verdict {
		v.Kind, v.Reason = Dead, reason
		return v
	}
	switch {
	case result.Class == ClassShutdown:
		return Verdict{Kind: Released}
	case result.Class == ClassLocalResources:
		return release(terms, progress, random)
	case result.Class == ClassBlocked:
		return dead(ReasonBlocked)
	case result.Class == ClassInvalid:
		return dead(ReasonInvalid)
	case answered && matches(terms.GiveUpOn, result.Status):
		return dead(ReasonGaveUp)
	case answered && result.NonRetryable && result.Status >= 400 && result.Status <= 499:
		return dead(ReasonNonRetryable)
	case progress.Tries > *terms.Retries:
		return dead(ReasonExhausted)
	}
	wait := max(stretch(terms.Ladder.Rung(progress.Tries), terms.Jitter, random), asked)
	if reason := progress.reason(terms, wait); reason != "" {
		return dead(reason)
	}
	v.Kind, v.Wait = Again, wait
	return v
}

// The wait after an attempt that was not made for want of local resources: at least shortageWait, at most twice that; and
// where the job may not be attempted any more by then, soonShortageWait.
const (
	shortageWait     = time.Second
	soonShortageWait = 100 * time.Millisecond
)

// release puts an attempt off that was not made for want of local resources. It costs no retry, but the job still becomes too
// old meanwhile.
func release(terms Terms, progress Progress, random float64) Verdict {
	wait := stretch(shortageWait, 1, random)
	if progress.reason(terms, wait) != "" {
		wait = soonShortageWait
	}
	if reason := progress.reason(terms, wait); reason != "" {
		return Verdict{Kind: Dead, Reason: reason}
	}
	return Verdict{Kind: Released, Wait: wait}
}

// ofReceiver reports whether a status tells of the receiver's state rather than of the one request.
func ofReceiver(status int) bool {
	return status == 408 || status == 425 || status == 429 || status >= 500 && status <= 599
}

// CheckBefore decides whether an attempt may be made at all, given the progress so far. ok means: go on.
func CheckBefore(terms Terms, progress Progress) (v Verdict, ok bool) {
	reason := progress.reason(terms, 0)
	if reason == "" && progress.Tries > *terms.Retries {
		reason = ReasonExhausted
	}
	if reason != "" {
		return Verdict{Kind: Dead, Reason: reason}, false
	}
	return Verdict{}, true
}

// stretch adds up to jitter × wait, in whole milliseconds and never downwards.
func stretch(wait time.Duration, jitter, random float64) time.Duration {
	longer := wait + time.Duration(float64(wait)*jitter*random)
	if rest := longer % time.Millisecond; rest > 0 {
		longer += time.Millisecond - rest
	}
	return longer
}

// matches reports whether a status, which has three digits, is named by one of the patterns: "410", or "4xx" for a class.
func matches(patterns []string, status int) bool {
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
