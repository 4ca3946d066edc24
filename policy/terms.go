package policy

import (
	"cmp"
	"time"
)

// Terms are the settings that decide over one job's attempts. A job carries the ones it was registered with (Ladder,
// Retries, Timeout, OnDelivered, OnDead; the rest stay zero), and Topic.Terms resolves them against the topic's policy.
type Terms struct {
	// Ladder is the job's own ladder; nil takes the topic's.
	Ladder Ladder `json:"ladder,omitempty"`
	// Retries is the number of requests after the first, 0 to 1000; nil takes the length of the job's own ladder,
	// else the topic's retries.
	Retries *int `json:"retries,omitempty"`
	// Timeout limits a whole attempt, from name look-up to the last byte of the answer: 100 ms to 10 m; zero takes
	// the topic's.
	Timeout time.Duration `json:"timeout,omitempty"`

	// OnDelivered and OnDead are told of the job's end; nil takes the topic's.
	OnDelivered *Callback `json:"on_delivered,omitempty"`
	OnDead      *Callback `json:"on_dead,omitempty"`

	// Jitter stretches each wait by up to this share of itself, 0 to 1; never shortens it. Set by Topic.Terms.
	Jitter float64 `json:"-"`
	// MaxAge is the time after a round's first due moment at which a job dies whatever its ladder says. Set by
	// Topic.Terms.
	MaxAge time.Duration `json:"-"`
	// GiveUpOn holds statuses ("410") and classes ("4xx") that end a job at once. Set by Topic.Terms.
	GiveUpOn []string `json:"-"`
	// Success says which answers are one. Set by Topic.Terms.
	Success Success `json:"-"`
}

// Topic is the policy of a topic. The zero value says nothing and takes every built-in default.
type Topic struct {
	Ladder  Ladder   `json:"ladder,omitempty"`
	Retries *int     `json:"retries,omitempty"` // nil: the ladder's length
	Jitter  *float64 `json:"jitter,omitempty"`  // nil: 0.1
	// Timeout of an attempt, 100 ms to 10 m; zero: 10 s.
	Timeout time.Duration `json:"timeout,omitempty"`
	// MaxAge ends a job, see Terms.MaxAge; zero: the span of the job's ladder + 24 h.
	MaxAge time.Duration `json:"max_age,omitempty"`
	// Workers is the number of attempts in flight of this topic in each process, 1 to 10,000; zero: 256.
	Workers int `json:"workers,omitempty"`
	// LaneConcurrency is the number of attempts in flight to one lane, all processes together, 1 to 10,000; zero: 32.
	LaneConcurrency int `json:"lane_concurrency,omitempty"`
	// Rate bounds the starts of the topic's attempts, LaneRate those of each of its lanes, all processes together; zero:
	// nothing does.
	Rate     Rate `json:"rate,omitzero"`
	LaneRate Rate `json:"lane_rate,omitzero"`
	// URL serves jobs that name none.
	URL string `json:"url,omitempty"`
	// Headers are sent with every attempt; a job's own header of the same name replaces them. Names are canonical.
	Headers map[string][]string `json:"headers,omitempty"`
	// GiveUpOn lists statuses after which a job is dead at once; nil: ["410"], empty: none.
	GiveUpOn []string `json:"give_up_on,omitzero"`
	// Success says which answers are one; zero: 2xx.
	Success Success `json:"success,omitzero"`
	// Breaker guards each lane; zero: opens for 30 s after 10 failures in a row.
	Breaker Breaker `json:"breaker,omitzero"`
	// OnDelivered and OnDead are told of the end of jobs that name nobody themselves; nil: nobody is.
	OnDelivered *Callback `json:"on_delivered,omitempty"`
	OnDead      *Callback `json:"on_dead,omitempty"`
	// OnBacklog is told when the topic has a backlog, and when it is over; nil: nobody is.
	OnBacklog *Backlog `json:"on_backlog,omitempty"`
	// Secrets sign every attempt, the newest first; none: attempts are not signed.
	Secrets []Secret `json:"secrets,omitempty"`
	// ClientCert proves to receivers who we are; nil: nothing does.
	ClientCert *ClientCert `json:"client_cert,omitempty"`
	// KeepDelivered and KeepDead say what is kept of ended jobs; cancelled ones are kept like delivered ones.
	KeepDelivered Retention `json:"keep_delivered,omitzero"`
	KeepDead      Retention `json:"keep_dead,omitzero"`
	// IDWindow is how long after its job's end an id chosen by a client is remembered; nil: 1 h.
	IDWindow *time.Duration `json:"id_window,omitempty"`
	// Paused topics accept jobs and attempt none.
	Paused bool `json:"paused,omitempty"`
}

// Retention bounds what is kept of ended jobs: whichever bound is reached first removes the oldest. A nil field takes the
// default, zero keeps none.
type Retention struct {
	For      *time.Duration `json:"for,omitempty"`
	Max      *int64         `json:"max,omitempty"`
	MaxBytes *int64         `json:"max_bytes,omitempty"`
}

// ClientCert is a certificate for TLS with its key.
type ClientCert struct {
	Chain string `json:"chain"` // PEM, the certificate first
	Key   Sealed `json:"key"`   // PEM, in the form in which it is kept
}

// Builtin is the policy under every topic's, with every field set but those that are empty by default (URL, Headers,
// rates, callbacks, secrets; MaxAge and Retries, which follow the ladder).
func Builtin() Topic {
	return Topic{
		Ladder:          DefaultLadder(),
		Jitter:          new(0.1),
		Timeout:         10 * time.Second,
		Workers:         256,
		LaneConcurrency: 32,
		GiveUpOn:        []string{"410"},
		Breaker:         Breaker{Failures: new(10), Open: 30 * time.Second},
		KeepDelivered:   Retention{For: new(24 * time.Hour), Max: new(int64(100_000)), MaxBytes: new(int64(256 << 20))},
		KeepDead:        Retention{For: new(30 * 24 * time.Hour), Max: new(int64(100_000)), MaxBytes: new(int64(1 << 30))},
		IDWindow:        new(time.Hour),
	}
}

// WithDefaults fills every field that t does not say with base's, and returns the result.
func (t Topic) WithDefaults(base Topic) Topic {
	if t.Ladder == nil {
		t.Ladder = base.Ladder
		if t.Retries == nil {
			t.Retries = base.Retries
		}
	}
	if t.Retries == nil {
		t.Retries = new(len(t.Ladder))
	}
	if t.Jitter == nil {
		t.Jitter = base.Jitter
	}
	if t.Timeout == 0 {
		t.Timeout = base.Timeout
	}
	if t.MaxAge == 0 {
		t.MaxAge = base.MaxAge
	}
	if t.Workers == 0 {
		t.Workers = base.Workers
	}
	if t.LaneConcurrency == 0 {
		t.LaneConcurrency = base.LaneConcurrency
	}
	if !t.Rate.Limited() {
		t.Rate = base.Rate
	}
	if !t.LaneRate.Limited() {
		t.LaneRate = base.LaneRate
	}
	if t.URL == "" {
		t.URL = base.URL
	}
	if t.Headers == nil {
		t.Headers = base.Headers
	}
	if t.GiveUpOn == nil {
		t.GiveUpOn = base.GiveUpOn
	}
	if t.Success.IsZero() {
		t.Success = base.Success
	}
	t.Breaker = t.Breaker.withDefaults(base.Breaker)
	t.OnDelivered = cmp.Or(t.OnDelivered, base.OnDelivered)
	t.OnDead = cmp.Or(t.OnDead, base.OnDead)
	t.OnBacklog = cmp.Or(t.OnBacklog, base.OnBacklog)
	if t.Secrets == nil {
		t.Secrets = base.Secrets
	}
	t.ClientCert = cmp.Or(t.ClientCert, base.ClientCert)
	t.KeepDelivered = t.KeepDelivered.withDefaults(base.KeepDelivered)
	t.KeepDead = t.KeepDead.withDefaults(base.KeepDead)
	if t.IDWindow == nil {
		t.IDWindow = base.IDWindow
	}
	return t
}

func (k Retention) withDefaults(base Retention) Retention {
	if k.For == nil {
		k.For = base.For
	}
	if k.Max == nil {
		k.Max = base.Max
	}
	if k.MaxBytes == nil {
		k.MaxBytes = base.MaxBytes
	}
	return k
}

// graceAfterLadder is added to the ladder's span for the default MaxAge.
const graceAfterLadder = 24 * time.Hour

// Terms resolves what a job asked for against the policy t, which must be complete (the result of Over).
func (t Topic) Terms(asked Terms) Terms {
	terms := asked
	if terms.Retries == nil {
		if len(asked.Ladder) > 0 {
			terms.Retries = new(len(asked.Ladder))
		} else {
			terms.Retries = t.Retries
		}
	}
	if len(terms.Ladder) == 0 {
		terms.Ladder = t.Ladder
	}
	if terms.Timeout == 0 {
		terms.Timeout = t.Timeout
	}
	terms.Jitter = *t.Jitter
	terms.GiveUpOn = t.GiveUpOn
	terms.Success = t.Success
	terms.OnDelivered = cmp.Or(terms.OnDelivered, t.OnDelivered)
	terms.OnDead = cmp.Or(terms.OnDead, t.OnDead)
	terms.MaxAge = t.MaxAge
	if terms.MaxAge == 0 {
		terms.MaxAge = terms.Ladder.Span(*terms.Retries) + graceAfterLadder
	}
	return terms
}
