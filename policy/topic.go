package policy

import (
	"cmp"
	"time"
)

// Topic is the policy of a topic. Zero fields take their built-in default.
type Topic struct {
	Ladder Ladder `json:"ladder,omitempty" api:"ladder" validate:"omitnil,rungs,dive,rung"`
	// Retries is nil for the ladder's length.
	Retries *int `json:"retries,omitempty" api:"retries" validate:"omitnil,retries"`
	// Jitter is Terms.Jitter; nil: 0.1.
	Jitter *float64 `json:"jitter,omitempty" api:"jitter" validate:"omitnil,min=0,max=1"`
	// Timeout of an attempt, 100 ms to 10 m; zero: 10 s.
	Timeout time.Duration `json:"timeout,omitempty" api:"timeout" validate:"omitempty,timeout"`
	// MaxAge is Terms.MaxAge; zero: the span of the job's ladder + 24 h.
	MaxAge time.Duration `json:"max_age,omitempty" api:"max_age" validate:"omitempty,age"`
	// Workers is the largest number of attempts in flight of the topic per process, 1 to 10,000; zero: 256.
	Workers int `json:"workers,omitempty" api:"workers" validate:"omitempty,share"`
	// LaneConcurrency is the largest number of attempts in flight per lane, over all processes, 1 to 10,000; zero: 32.
	LaneConcurrency int `json:"lane_concurrency,omitempty" api:"lane_concurrency" validate:"omitempty,share"`
	// Rate limits the attempts of the topic, LaneRate those of each lane, over all processes; zero: no limit.
	Rate     Rate `json:"rate,omitzero" api:"rate"`
	LaneRate Rate `json:"lane_rate,omitzero" api:"lane_rate"`
	// Deliver is how jobs are delivered; empty: DeliverPush. Only pushed jobs need a URL.
	Deliver Deliver `json:"deliver,omitempty" api:"deliver" validate:"omitempty,oneof=push pull handler"`
	// Ordered delivers the jobs of each lane one after the other, in the order of their registration.
	Ordered bool `json:"ordered,omitempty" api:"ordered,always"`
	// URL is the target of jobs without a URL.
	URL string `json:"url,omitempty" api:"url,empty" validate:"omitempty,target"`
	// Headers are sent with every attempt. A job's header of the same name overrides. Names are canonical.
	Headers map[string][]string `json:"headers,omitempty" api:"headers"`
	// Success defines which responses are a success; zero: 2xx.
	Success Success `json:"success,omitzero" api:"success"`
	// GiveUpOn lists statuses and classes after which a job is dead; nil: ["410"], empty: none.
	GiveUpOn []string `json:"give_up_on,omitzero" api:"give_up_on" validate:"omitnil,max=100,dive,status"`
	// Breaker configures the breaker of each lane; zero: opens for 30 s after 10 consecutive failures.
	Breaker Breaker `json:"breaker,omitzero" api:"breaker"`
	// OnDelivered and OnDead are sent at the end of jobs without their own; nil: none.
	OnDelivered *Callback `json:"on_delivered,omitempty" api:"on_delivered"`
	OnDead      *Callback `json:"on_dead,omitempty" api:"on_dead"`
	// OnBacklog configures the callback about the topic's backlog; nil: none.
	OnBacklog *Backlog `json:"on_backlog,omitempty" api:"on_backlog"`
	// Secrets sign every attempt, newest first; none: attempts are not signed.
	Secrets []Secret `json:"secrets,omitempty"`
	// ClientCert is the TLS client certificate; nil: none.
	ClientCert *ClientCert `json:"client_cert,omitempty" api:"client_cert"`
	// KeepDelivered and KeepDead are the retention of ended jobs. Cancelled jobs are kept like delivered ones.
	KeepDelivered Retention `json:"keep_delivered,omitzero" api:"keep_delivered"`
	KeepDead      Retention `json:"keep_dead,omitzero" api:"keep_dead"`
	// IDWindow is how long an id chosen by a client stays reserved after its job's end; nil: 1 h.
	IDWindow *time.Duration `json:"id_window,omitempty" api:"id_window" validate:"omitnil,window"`
	// ManagedBy names the files that set the policy; empty: none.
	ManagedBy string `json:"managed_by,omitempty" api:"managed_by" validate:"omitempty,mark"`
	// Paused stops attempts; jobs are still accepted. Pause describes the pause.
	Paused bool  `json:"paused,omitempty" api:"paused,answer,always"`
	Pause  Pause `json:"pause,omitzero" api:",inline"`
}

// Retention bounds the ended jobs that are kept. The oldest are removed when any bound is exceeded. A nil field takes
// the default; zero keeps none.
type Retention struct {
	For      *time.Duration `json:"for,omitempty" api:"for" validate:"omitnil,ahead"`
	Max      *int64         `json:"max,omitempty" api:"max" validate:"omitnil,min=0,max=1000000000"`
	MaxBytes *int64         `json:"max_bytes,omitempty" api:"max_bytes,size" validate:"omitnil,min=0"`
}

// ClientCert is a TLS client certificate with its key.
type ClientCert struct {
	Chain string `json:"chain" api:"chain"` // PEM, leaf certificate first
	Key   Sealed `json:"key" api:"key"`     // PEM, in its stored form
}

// Builtin returns the default policy. It has no URL, headers, rates, callbacks and secrets, and derives MaxAge from the
// ladder.
func Builtin() Topic {
	ladder := DefaultLadder()
	return Topic{
		Ladder:          ladder,
		Retries:         new(len(ladder)),
		Jitter:          new(0.1),
		Timeout:         10 * time.Second,
		Workers:         256,
		LaneConcurrency: 32,
		Deliver:         DeliverPush,
		GiveUpOn:        []string{"410"},
		Breaker:         Breaker{Failures: new(10), Open: 30 * time.Second},
		KeepDelivered:   Retention{For: new(24 * time.Hour), Max: new(int64(100_000)), MaxBytes: new(int64(256 << 20))},
		KeepDead: Retention{
			For: new(30 * 24 * time.Hour), Max: new(int64(100_000)),
			MaxBytes: new(int64(1 << 30)),
		},
		IDWindow: new(time.Hour),
	}
}

// WithDefaults returns t with every unset field taken from base.
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
	t.Jitter = cmp.Or(t.Jitter, base.Jitter)
	t.Timeout = cmp.Or(t.Timeout, base.Timeout)
	t.MaxAge = cmp.Or(t.MaxAge, base.MaxAge)
	t.Workers = cmp.Or(t.Workers, base.Workers)
	t.LaneConcurrency = cmp.Or(t.LaneConcurrency, base.LaneConcurrency)
	t.Ordered = t.Ordered || base.Ordered
	t.Rate = t.Rate.or(base.Rate)
	t.LaneRate = t.LaneRate.or(base.LaneRate)
	t.Deliver = cmp.Or(t.Deliver, base.Deliver)
	t.URL = cmp.Or(t.URL, base.URL)
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
	t.IDWindow = cmp.Or(t.IDWindow, base.IDWindow)
	return t
}

func (k Retention) withDefaults(base Retention) Retention {
	return Retention{
		For: cmp.Or(k.For, base.For), Max: cmp.Or(k.Max, base.Max), MaxBytes: cmp.Or(k.MaxBytes, base.MaxBytes),
	}
}
