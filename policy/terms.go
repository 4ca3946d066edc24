package policy

import (
	"cmp"
	"time"
)

// Terms are the settings of one job's attempts. A job carries those it was registered with (Ladder, Retries, Timeout,
// OnDelivered, OnDead; the rest stay zero), and Topic.Terms resolves them against the topic's policy.
type Terms struct {
	// Ladder is the waits after the first, second, … failed attempt, such as `["15s", "3m", "10m"]`. Past the end the
	// last one repeats. Default: the topic's.
	Ladder Ladder `json:"ladder,omitempty" api:"ladder,nullable" validate:"omitnil,rungs,dive,rung"`
	// Retries is the number of attempts after the first. With fewer than its failed attempts, a waiting job has one
	// attempt left. Default: the length of the job's own ladder, else the topic's.
	Retries *int `json:"retries,omitempty" api:"retries,editable" validate:"omitnil,retries"`
	// Timeout is the limit of a whole attempt, from name look-up to the last byte of the answer. Default: the topic's.
	Timeout time.Duration `json:"timeout,omitempty" api:"timeout,nullable" validate:"omitempty,timeout"`

	// OnDelivered is the callback that is sent when the job is delivered, with the type `job.delivered`. Send null for
	// no callback at all, not even the topic's. Answers show that as a callback whose `url` is null. Default: the
	// topic's.
	OnDelivered *Callback `json:"on_delivered,omitempty" api:"on_delivered"`
	// OnDead is the callback that is sent when the job dies, with the type `job.dead`. Send null for no callback at
	// all, not even the topic's. Answers show that as a callback whose `url` is null. Default: the topic's.
	OnDead *Callback `json:"on_dead,omitempty" api:"on_dead"`

	// Jitter lengthens each wait by up to this share of it, 0 to 1. Set by Topic.Terms.
	Jitter float64 `json:"-"`
	// MaxAge is the time after a generation's first due time after which the job is dead; zero: none. Set by
	// Topic.Terms.
	MaxAge time.Duration `json:"-"`
	// MaxAgeDerived is set if MaxAge is derived from the ladder: it ends no job before its first failed attempt,
	// however long that had to wait, and none that has more failed attempts than Retries. Set by Topic.Terms.
	MaxAgeDerived bool `json:"-"`
	// GiveUpOn lists statuses ("410") and classes ("4xx") after which the job is dead. Set by Topic.Terms.
	GiveUpOn []string `json:"-"`
	// Success defines which responses are a success. Set by Topic.Terms.
	Success Success `json:"-"`
}

// maxAgeMargin is added to the ladder's span for the default MaxAge of topics that are pushed. Others have none, since
// their consumers may ask for waits that are longer than the ladder's.
const maxAgeMargin = 24 * time.Hour

// Terms resolves a job's terms against the policy t, which must be complete: Builtin, or a policy with its defaults.
func (t Topic) Terms(own Terms) Terms {
	terms := own
	if terms.Retries == nil {
		if len(own.Ladder) > 0 {
			terms.Retries = new(len(own.Ladder))
		} else {
			terms.Retries = t.Retries
		}
	}
	if len(terms.Ladder) == 0 {
		terms.Ladder = t.Ladder
	}
	terms.Timeout = cmp.Or(terms.Timeout, t.Timeout)
	terms.Jitter = *t.Jitter
	terms.GiveUpOn = t.GiveUpOn
	terms.Success = t.Success
	terms.OnDelivered = own.OnDelivered.Or(t.OnDelivered)
	terms.OnDead = own.OnDead.Or(t.OnDead)
	terms.MaxAge = t.MaxAge
	if terms.MaxAge == 0 && t.Deliver.Pushes() {
		terms.MaxAge, terms.MaxAgeDerived = terms.Ladder.Span(*terms.Retries)+maxAgeMargin, true
	}
	return terms
}
