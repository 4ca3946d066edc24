package policy

import (
	"cmp"
	"time"
)

// Topic is the policy of a topic. Zero fields take their built-in default.
type Topic struct {
	// Ladder is the waits after the first, second, … failed attempt. Past the end the last one repeats.
	Ladder Ladder `json:"ladder,omitempty" api:"ladder" validate:"omitnil,rungs,dive,rung"`
	// Retries is the number of attempts after the first. With fewer than its failed attempts, a waiting job has one
	// attempt left. Default: the length of the ladder.
	Retries *int `json:"retries,omitempty" api:"retries" validate:"omitnil,retries"`
	// Jitter lengthens each wait by a random share of up to this much. It never shortens one.
	Jitter *float64 `json:"jitter,omitempty" api:"jitter" validate:"omitnil,min=0,max=1"`
	// Timeout is the limit of a whole attempt.
	Timeout time.Duration `json:"timeout,omitempty" api:"timeout" validate:"omitempty,timeout"`
	// MaxAge is the maximum age of a job, counted from when it was first due. Default: the span of the ladder + 24h;
	// none for `pull` and `handler`.
	MaxAge time.Duration `json:"max_age,omitempty" api:"max_age" validate:"omitempty,age"`
	// Workers is the number of attempts in flight in each process.
	Workers int `json:"workers,omitempty" api:"workers" validate:"omitempty,share"`
	// LaneConcurrency is the number of attempts in flight to one lane, all processes together. Each process starts with
	// 2; an answer doubles that number, a timeout, 429 or 503 halves it.
	LaneConcurrency int `json:"lane_concurrency,omitempty" api:"lane_concurrency" validate:"omitempty,share"`
	// Rate limits the starts of the topic's attempts. Null: no limit.
	Rate Rate `json:"rate,omitzero" api:"rate"`
	// LaneRate limits the starts of the attempts of each lane. Null: no limit.
	LaneRate Rate `json:"lane_rate,omitzero" api:"lane_rate"`
	// Deliver is what an attempt is. `push`: an HTTP request to the job's URL. `pull`: a lease for a client that asks
	// for jobs. `handler`: a function of a Go program that embeds Ringback. Only pushed jobs need a URL. A change
	// applies to jobs that wait already; attempts in flight end as they began. The topic `_callbacks` is always `push`.
	Deliver Deliver `json:"deliver,omitempty" api:"deliver" validate:"omitempty,oneof=push pull handler"`
	// Ordered is whether each lane delivers its jobs one at a time, in the order of their registration: the next one
	// follows when a job is delivered, dead or cancelled. `lane_concurrency` does not apply then. Default: false.
	Ordered bool `json:"ordered,omitempty" api:"ordered,always"`
	// URL is where jobs without a URL are sent. Default: none.
	URL string `json:"url,omitempty" api:"url,empty" validate:"omitempty,target"`
	// Headers are sent with every attempt. A lane's header replaces the topic's of the same name; a job's replaces
	// both. Default: none.
	//
	// Names are canonical.
	Headers map[string][]string `json:"headers,omitempty" api:"headers"`
	// Success is which answers count as delivered, such as `{"status": ["200"], "body_equals": "success"}`; or with
	// `body_contains`. Default: 2xx.
	Success Success `json:"success,omitzero" api:"success"`
	// GiveUpOn is the statuses after which a job is dead at once.
	GiveUpOn []string `json:"give_up_on,omitzero" api:"give_up_on" validate:"omitnil,max=100,dive,status"`
	// Breaker is after how many failures in a row the breaker of a lane opens, and for how long (1s to 1h). With 0
	// failures it never opens.
	Breaker Breaker `json:"breaker,omitzero" api:"breaker"`
	// OnDelivered is the callback that is sent when a job without one is delivered. Default: none.
	OnDelivered *Callback `json:"on_delivered,omitempty" api:"on_delivered"`
	// OnDead is the callback that is sent when a job without one dies. Default: none.
	OnDead *Callback `json:"on_dead,omitempty" api:"on_dead"`
	// OnBacklog is the callback about a backlog: with a URL, and `older_than` (from 1s) or `more_than`. Default: none.
	OnBacklog *Backlog `json:"on_backlog,omitempty" api:"on_backlog"`
	// Secrets sign every attempt, newest first; none: attempts are not signed.
	Secrets []Secret `json:"secrets,omitempty"`
	// ClientCert is the client certificate for TLS, in PEM: `{"chain": "…", "key": "…"}`. Default: none.
	ClientCert *ClientCert `json:"client_cert,omitempty" api:"client_cert"`
	// KeepDelivered is the retention of delivered and cancelled jobs, such as `{"for": "24h", "max": 100000,
	// "max_bytes": "256MiB"}`. The first limit that is reached removes the oldest. Default: that of the store.
	KeepDelivered Retention `json:"keep_delivered,omitzero" api:"keep_delivered"`
	// KeepDead is the retention of dead jobs, as `keep_delivered`. Default: that of the store.
	KeepDead Retention `json:"keep_dead,omitzero" api:"keep_dead"`
	// IDWindow is how long the ids of ended jobs are remembered.
	IDWindow *time.Duration `json:"id_window,omitempty" api:"id_window" validate:"omitnil,window"`
	// ManagedBy is the name of the set of files that manages these settings; `ringback apply` sets it. The next apply
	// undoes changes made in other ways. A PUT without it keeps it. Null: no files.
	ManagedBy string `json:"managed_by,omitempty" api:"managed_by" validate:"omitempty,mark"`
	// Paused is whether it is paused: jobs are still accepted, but not attempted. `POST …/pause` and `POST …/resume`
	// change it: a pause is state, not policy.
	Paused bool  `json:"paused,omitempty" api:"paused,answer,always"`
	Pause  Pause `json:"pause,omitzero" api:",inline"`
}

// Retention bounds the ended jobs that are kept. The oldest are removed when any bound is exceeded. A nil field takes
// the default; zero keeps none.
type Retention struct {
	// For is how long a job is kept after its end.
	For *time.Duration `json:"for,omitempty" api:"for" validate:"omitnil,ahead"`
	// Max is the number of jobs that are kept.
	Max *int64 `json:"max,omitempty" api:"max" validate:"omitnil,min=0,max=1000000000"`
	// MaxBytes is the size of the jobs that are kept.
	MaxBytes *int64 `json:"max_bytes,omitempty" api:"max_bytes,size" validate:"omitnil,min=0"`
}

// ClientCert is a TLS client certificate with its key.
type ClientCert struct {
	// Chain is certificates in PEM, the client's own first.
	Chain string `json:"chain" api:"chain,always"`
	// Key is the private key of the first certificate, in PEM, without a password. Answers show `[redacted]`; sent
	// back, or left out, it is the stored key.
	Key Sealed `json:"key" api:"key,always"` // in its stored form
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
