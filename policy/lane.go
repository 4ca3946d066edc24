package policy

import "time"

// Lane holds the settings of one lane. Each overrides its topic's; zero fields are not set.
type Lane struct {
	// URL is the target of the lane's jobs without a URL.
	URL string `json:"url,omitempty" api:"url,empty" validate:"omitempty,target"`
	// Headers are sent with every attempt. They override the topic's and are overridden by the job's. Names are
	// canonical.
	Headers map[string][]string `json:"headers,omitempty" api:"headers"`
	// Secrets sign the lane's attempts instead of the topic's.
	Secrets []Secret `json:"secrets,omitempty"`
	// LaneConcurrency and LaneRate override the topic's.
	LaneConcurrency int  `json:"lane_concurrency,omitempty" api:"lane_concurrency" validate:"omitempty,share"`
	LaneRate        Rate `json:"lane_rate,omitzero" api:"lane_rate"`
	// Ordered delivers the lane's jobs one after the other, in the order of their registration, also if the topic does
	// not.
	Ordered bool `json:"ordered,omitempty" api:"ordered,always"`
	// ManagedBy names the files that set the settings; empty: none.
	ManagedBy string `json:"managed_by,omitempty" api:"managed_by" validate:"omitempty,mark"`
	// Paused stops attempts; jobs are still accepted. Pause describes the pause.
	Paused bool  `json:"paused,omitempty" api:"paused,answer,always"`
	Pause  Pause `json:"pause,omitzero" api:",inline"`
}

// Pause describes the pause of a topic or a lane. It is zero without one, and for one of which nothing is known.
type Pause struct {
	At   time.Time `json:"at,omitzero" api:"paused_at"`
	By   string    `json:"by,omitempty" api:"paused_by"`    // the client's name
	Note string    `json:"note,omitempty" api:"pause_note"` // at most MaxPauseNote characters
}

// Update is the last change of settings by a client. It is zero for settings that were stored without it.
type Update struct {
	At time.Time `json:"updated_at,omitzero" api:"updated_at"`
	By string    `json:"updated_by,omitempty" api:"updated_by"` // the client's name; empty: unknown, or no token
}

// MaxPauseNote is the maximum length of a pause's note, in characters.
const MaxPauseNote = 500

// IsZero reports whether no setting is set.
func (l Lane) IsZero() bool {
	return l.URL == "" && len(l.Headers) == 0 && len(l.Secrets) == 0 && l.LaneConcurrency == 0 &&
		l.LaneRate == Rate{} && !l.Ordered &&
		!l.Paused && l.ManagedBy == ""
}

// Secret is a signing secret. Its value is in its stored form: encrypted if the installation has a secret key.
type Secret struct {
	ID        string    `json:"id" api:"id"`
	CreatedAt time.Time `json:"created_at" api:"created_at"`
	CreatedBy string    `json:"created_by,omitempty" api:"created_by"` // the client's name; empty: unknown
	Value     Sealed    `json:"value"`
}

// MaxSecrets is the largest number of secrets of a topic or a lane. Each signs every attempt.
const MaxSecrets = 8
