package policy

import (
	"cmp"
	"time"
)

// Lane holds the settings of one lane, each over its topic's. The zero value says nothing.
type Lane struct {
	// URL serves the lane's jobs that name none.
	URL string `json:"url,omitempty"`
	// Headers are sent with every attempt, over the topic's of the same name and under the job's. Names are canonical.
	Headers map[string][]string `json:"headers,omitempty"`
	// Secrets sign the lane's attempts instead of the topic's; none: the topic's do.
	Secrets []Secret `json:"secrets,omitempty"`
	// LaneConcurrency and LaneRate stand for the topic's; zero: the topic's hold.
	LaneConcurrency int  `json:"lane_concurrency,omitempty"`
	LaneRate        Rate `json:"lane_rate,omitzero"`
	// Paused lanes accept jobs and attempt none.
	Paused bool `json:"paused,omitempty"`
}

// IsZero reports whether the lane says nothing.
func (l Lane) IsZero() bool {
	return l.URL == "" && len(l.Headers) == 0 && len(l.Secrets) == 0 && l.LaneConcurrency == 0 && l.LaneRate == Rate{} && !l.Paused
}

// Limits are what an engine must know of a queue's policy at a claim.
type Limits struct {
	Paused      bool
	Concurrency int
	Rate        Rate
}

// Limits resolves a lane's against its topic's, which must be complete. A pause of either holds.
func (t Topic) Limits(l Lane) Limits {
	limits := Limits{
		Paused: t.Paused || l.Paused, Concurrency: cmp.Or(l.LaneConcurrency, t.LaneConcurrency), Rate: t.LaneRate,
	}
	if l.LaneRate.Limited() {
		limits.Rate = l.LaneRate
	}
	return limits
}

// A Secret signs requests. Its value is as a store may keep it: sealed, unless the installation has no key to seal with.
type Secret struct {
	ID        string    `json:"id"`
	CreatedAt time.Time `json:"created_at"`
	Value     Sealed    `json:"value"`
}

// MaxSecrets is how many secrets a topic or a lane has at most: each signs every attempt.
const MaxSecrets = 8
