package job

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/policy"
)

// printed is what a fingerprint is taken of, as JSON. What is unset is left out, so that a field which is added later
// changes no fingerprint of requests that do not use it. Names and forms stay as they are: fingerprints are stored, and a
// repeated request must match that of a version before. Callbacks are printed in their stored form, for which the same
// holds. The body follows it.
type printed struct {
	ID          string              `json:"id,omitempty"`
	Namespace   string              `json:"namespace,omitempty"`
	Topic       string              `json:"topic,omitempty"`
	Lane        string              `json:"lane,omitempty"`
	URL         string              `json:"url,omitempty"`
	Method      string              `json:"method,omitempty"`
	Headers     map[string][]string `json:"headers,omitempty"`
	ContentType string              `json:"content_type,omitempty"`
	BodyKind    BodyKind            `json:"body_kind,omitempty"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Ladder      policy.Ladder       `json:"ladder,omitempty"`
	Retries     *int                `json:"retries,omitempty"`
	Timeout     time.Duration       `json:"timeout,omitempty"` // in nanoseconds, like all durations
	OnDelivered *policy.Callback    `json:"on_delivered,omitempty"`
	OnDead      *policy.Callback    `json:"on_dead,omitempty"`
	Kind        string              `json:"kind,omitempty"`
	Origin      string              `json:"origin,omitempty"`
	Delay       time.Duration       `json:"delay,omitempty"`
	RunAt       time.Time           `json:"run_at,omitzero"` // whole milliseconds, UTC
	ExpiresIn   time.Duration       `json:"expires_in,omitempty"`
	ExpiresAt   time.Time           `json:"expires_at,omitzero"`
}

// Fingerprint condenses a registration as it was sent, a relative delay unresolved, so that the same request under a
// client's id is told from another one. It is 16 bytes of a SHA-256.
func (n New) Fingerprint() []byte {
	// encoding/json writes maps in the order of their keys, so equal registrations give equal bytes.
	text, err := json.Marshal(printed{
		ID: n.ID, Namespace: n.Namespace, Topic: n.Topic, Lane: n.Lane, URL: n.URL, Method: n.Method, Headers: n.Header,
		ContentType: n.ContentType, BodyKind: n.BodyKind, Labels: n.Labels, Ladder: n.Ladder, Retries: n.Retries,
		Timeout: n.Timeout, OnDelivered: n.OnDelivered, OnDead: n.OnDead, Kind: n.Kind, Origin: n.Origin, Delay: n.Delay,
		RunAt: Millis(n.RunAt), ExpiresIn: n.ExpiresIn, ExpiresAt: Millis(n.ExpiresAt),
	})
	if err != nil {
		panic(fmt.Sprintf("job: a registration always has a JSON form: %v", err))
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	h.Write(text)
	h.Write(n.Body)
	return h.Sum(nil)[:16]
}
