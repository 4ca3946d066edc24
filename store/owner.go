package store

import "time"

// SecretOwner is an owner of signing secrets: a topic or a lane.
type SecretOwner struct {
	Namespace string
	Topic     string
	Lane      string // empty: the topic itself
}

// PublicKey verifies the signatures of one of an owner's secrets.
type PublicKey struct {
	ID        string
	CreatedAt time.Time
	Key       string // whpk_…
}
