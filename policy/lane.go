package policy

import "time"

// Lane holds the settings of one lane. Each overrides its topic's; zero fields are not set.
type Lane struct {
	// URL is where jobs without a URL are sent. Default: the topic's.
	URL string `json:"url,omitempty" api:"url,empty" validate:"omitempty,target"`
	// Headers are sent with every attempt. They replace the topic's headers of the same name; the job's replace both.
	// Default: none.
	//
	// Names are canonical.
	Headers map[string][]string `json:"headers,omitempty" api:"headers"`
	Subscription
	// Secrets sign the lane's attempts instead of the topic's.
	Secrets []Secret `json:"secrets,omitempty"`
	// LaneConcurrency is the number of attempts in flight, all processes together. Default: the topic's.
	LaneConcurrency int `json:"lane_concurrency,omitempty" api:"lane_concurrency" validate:"omitempty,share"`
	// LaneRate limits the starts of attempts. Null or empty: the topic's.
	LaneRate Rate `json:"lane_rate,omitzero" api:"lane_rate"`
	// Ordered is whether the lane's own settings have it deliver its jobs one at a time. If the topic is ordered, all
	// its lanes are, whatever they set. Default: false.
	Ordered bool `json:"ordered,omitempty" api:"ordered,always"`
	// ManagedBy is the name of the set of files that manages these settings; `ringback apply` sets it. The next apply
	// undoes changes made in other ways. A PUT without it keeps it. Null: no files.
	ManagedBy string `json:"managed_by,omitempty" api:"managed_by" validate:"omitempty,mark"`
	// Paused is whether it is paused: jobs are still accepted, but not attempted. A paused topic pauses all its lanes.
	// `POST …/pause` and `POST …/resume` change it: a pause is state, not policy.
	Paused bool  `json:"paused,omitempty" api:"paused,answer,always"`
	Pause  Pause `json:"pause,omitzero" api:",inline"`
}

// Pause describes the pause of a topic or a lane. It is zero without one, and for one of which nothing is known.
type Pause struct {
	// At is since when it is paused.
	At time.Time `json:"at,omitzero" api:"paused_at,answer"`
	// By is the token that paused it; of a schedule also `schedule:NAME`, if `pause_after_dead` did. Null: not paused,
	// or no token was needed.
	By string `json:"by,omitempty" api:"paused_by,answer"`
	// Note is the note that was sent with the pause.
	Note string `json:"note,omitempty" api:"pause_note,answer"` // at most MaxPauseNote characters
}

// Update is the last change of settings by a client. It is zero for settings that were stored without it.
type Update struct {
	// At is when a client last changed it, also with a pause or a secret. Null: not stored, or by an older version.
	At time.Time `json:"updated_at,omitzero" api:"updated_at"`
	// By is the token that last changed it. Null: unknown, or no token was needed.
	By string `json:"updated_by,omitempty" api:"updated_by"`
}

// MaxPauseNote is the maximum length of a pause's note, in characters.
const MaxPauseNote = 500

// IsZero reports whether no setting is set.
func (l Lane) IsZero() bool {
	return l.URL == "" && len(l.Headers) == 0 && len(l.Secrets) == 0 && l.LaneConcurrency == 0 &&
		l.LaneRate == Rate{} && !l.Ordered &&
		!l.Paused && l.ManagedBy == "" && l.Subscription.IsZero()
}

// Secret is a signing secret. Its value is in its stored form: encrypted if the installation has a secret key.
type Secret struct {
	ID        string    `json:"id" api:"id,always"`
	CreatedAt time.Time `json:"created_at" api:"created_at,always"`
	// CreatedBy is the token that added it. Null: unknown, or no token was needed.
	CreatedBy string `json:"created_by,omitempty" api:"created_by"`
	Value     Sealed `json:"value"`
}

// MaxSecrets is the largest number of secrets of a topic or a lane. Each signs every attempt.
const MaxSecrets = 8
