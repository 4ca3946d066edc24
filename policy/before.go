package policy

import (
	"math"
	"time"
)

// Preflight describes what a process finds out right before an attempt. The zero value allows the request.
type Preflight struct {
	SettingsUnreadable bool // the settings of the topic or the lane cannot be read
	LaneStopped        bool // the lane is paused or in cooldown since the claim
	PolicyStale        bool // the topic's policy may be older than the store's
	NoURL              bool // neither the job, its lane nor its topic has a URL: the attempt fails without a request
	LeaseTooShort      bool // the lease may end before the attempt
	// WrongOriginHeader is a secret header of the job that was set for another origin than that of the URL; empty:
	// none.
	WrongOriginHeader string
	SecretsUnreadable bool // a signing secret, the client certificate or a header cannot be opened
	RateChanged       bool // the topic has another rate than at the claim
	Late              bool // a rate no longer allows the start that was granted
	Uncounted         bool // a rate applies that did not count the start
	SharedLane        bool // the lane is shared by callbacks of several topics
}

const (
	// recheckWait is the wait of a job that cannot be judged yet, or whose lease is too short.
	recheckWait = time.Second
	// UnreadableWait is the wait of a job, and the cooldown of its lane, while settings or secrets cannot be read.
	UnreadableWait = 10 * time.Second
)

// CheckBefore decides about a claimed job before its attempt. The zero Verdict allows the attempt. A released job costs
// no retry.
//
//	first that applies                               verdict
//	settings unreadable                              released for 10 s; so is its lane, unless it is shared
//	lane stopped                                     released at once, if the policy is stale for 1 s
//	policy stale, and the job would be dead by it,
//	or has failed more often than its retries allow   released for 1 s
//	past its expiry                                  dead: expired
//	past MaxAge, a derived one after a failed one    dead: max_age
//	its lost attempts have used up its retries       dead: exhausted
//	no URL                                           allowed
//	lease too short                                  released for 1 s
//	wrong-origin header                              dead: invalid
//	secrets unreadable                               as unreadable settings
//	rate changed, late                               released at once
//	start not counted                                released for 1 s
func CheckBefore(terms Terms, progress Progress, p Preflight) Verdict {
	reason := progress.EndReason(terms)
	unreadable := Verdict{Kind: Released, Wait: UnreadableWait, LaneWait: UnreadableWait}
	if p.SharedLane {
		unreadable.LaneWait = 0
	}
	switch {
	case p.SettingsUnreadable:
		return unreadable
	// The store does not know of a pause in an old policy: released at once, the job would be claimed again at once. A
	// cooldown, which the store knows, is not told apart: the wait is short.
	case p.LaneStopped && p.PolicyStale:
		return Verdict{Kind: Released, Wait: recheckWait}
	case p.LaneStopped:
		return Verdict{Kind: Released}
	case p.PolicyStale && (reason != "" || progress.FailedAttempts > *terms.Retries || p.NoURL ||
		p.WrongOriginHeader != ""):
		return Verdict{Kind: Released, Wait: recheckWait, Note: "the topic's policy could not be read"}
	case reason != "":
		return Verdict{Kind: Dead, Reason: reason}
	case p.NoURL:
		return Verdict{}
	case p.LeaseTooShort:
		return Verdict{Kind: Released, Wait: recheckWait, Note: "the lease would have ended before the attempt"}
	case p.WrongOriginHeader != "":
		return Verdict{Kind: Dead, Reason: ReasonInvalid, Note: "the secret header " + p.WrongOriginHeader +
			" was set for another origin than that of the URL"}
	case p.SecretsUnreadable:
		return unreadable
	case p.RateChanged, p.Late:
		return Verdict{Kind: Released}
	case p.Uncounted:
		return Verdict{Kind: Released, Wait: recheckWait}
	}
	return Verdict{}
}

// CheckExpired decides about a job that waited beyond the time to live it was stored with. If its terms now allow a
// longer life, it is released until its due time, in dueIn.
func CheckExpired(terms Terms, progress Progress, dueIn time.Duration) Verdict {
	if reason := progress.EndReason(terms); reason != "" {
		return Verdict{Kind: Dead, Reason: reason}
	}
	return Verdict{Kind: Released, Wait: max(0, dueIn)}
}

// EndReason returns why a job may not be attempted; empty: it may. Judge has decided on an attempt that failed, so a
// job that waits for its retry is attempted even if it has fewer retries by now. A lost attempt has had no verdict.
func (p Progress) EndReason(terms Terms) Reason {
	if reason := p.deadReason(terms, 0); reason != "" {
		return reason
	}
	if p.ConsecutiveLost > FreeLosses && p.FailedAttempts > *terms.Retries {
		return ReasonExhausted
	}
	return ""
}

// Unlimited returns t without a limit of retries and age, for verdicts under a policy that may be out of date.
func (t Terms) Unlimited() Terms {
	t.Retries, t.MaxAge = new(math.MaxInt), math.MaxInt64
	return t
}
