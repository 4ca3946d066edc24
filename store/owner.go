package store

import (
	"errors"
	"time"
)

// An SecretOwner is who has secrets: a topic, or one of its lanes.
type SecretOwner struct {
	Namespace string
	Topic     string
	Lane      string // empty: the topic itself
}

// PublicKey verifies what one of an owner's secrets has signed.
type PublicKey struct {
	ID        string
	CreatedAt time.Time
	Key       string // whpk_…
}

// ErrContended: settings are changed by others all the time.
var ErrContended = errors.New("too many concurrent updates, retry")
