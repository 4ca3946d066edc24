package policy

import (
	"strconv"
	"time"
)

// MaxRetryAfter is how long a receiver can put a job off: a longer Retry-After counts as this.
const MaxRetryAfter = 24 * time.Hour

// Judge decides what follows an attempt.
//
// terms are resolved (Topic.Terms). tries counts this round's attempts that cost a retry, this one included. random is
// in [0, 1) and spreads the wait upwards. The wait is counted from the end of the failed attempt, is never shorter than
// the rung, and never shorter than what the receiver asked for.
//
//	result                        verdict
//	2xx                           delivered
//	class shutdown                released at once, uncounted
//	class blocked                 dead: blocked
//	class invalid                 dead: invalid
//	status in give_up_on          dead: gave_up
//	tries > retries               dead: exhausted
//	anything else                 again after max(rung × (1 + jitter × random), Retry-After)
func Judge(terms Terms, result Result, tries int, random float64) Verdict {
	switch {
	case result.Class == ClassNone && result.Status >= 200 && result.Status < 300:
		return Verdict{Kind: Delivered}
	case result.Class == ClassShutdown:
		return Verdict{Kind: Released}
	case result.Class == ClassBlocked:
		return Verdict{Kind: Dead, Reason: ReasonBlocked}
	case result.Class == ClassInvalid:
		return Verdict{Kind: Dead, Reason: ReasonInvalid}
	case result.Class == ClassNone && matches(terms.GiveUpOn, result.Status):
		return Verdict{Kind: Dead, Reason: ReasonGaveUp}
	case tries > *terms.Retries:
		return Verdict{Kind: Dead, Reason: ReasonExhausted}
	}
	wait := stretch(terms.Ladder.Rung(tries), terms.Jitter, random)
	return Verdict{Kind: Again, Wait: max(wait, min(result.RetryAfter, MaxRetryAfter))}
}

// Before decides whether an attempt may be made at all. tries counts this round's attempts that cost a retry so far
// (attempts lost with their process count from the third in a row on); age is the time since the round's first due
// moment; expired says that the job's own expiry has passed. ok means: go on.
func Before(terms Terms, tries int, age time.Duration, expired bool) (v Verdict, ok bool) {
	switch {
	case expired:
		return Verdict{Kind: Dead, Reason: ReasonExpired}, false
	case age > terms.MaxAge:
		return Verdict{Kind: Dead, Reason: ReasonMaxAge}, false
	case tries > *terms.Retries:
		return Verdict{Kind: Dead, Reason: ReasonExhausted}, false
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

// matches reports whether a status is named by one of the patterns: "410", or "4xx" for a class.
func matches(patterns []string, status int) bool {
	code := strconv.Itoa(status)
	for _, p := range patterns {
		if p == code || (len(p) == 3 && p[1:] == "xx" && p[0] == code[0]) {
			return true
		}
	}
	return false
}
