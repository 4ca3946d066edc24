package store

import "time"

// PublicKey verifies the signatures of an asymmetric secret.
type PublicKey struct {
	ID        string
	CreatedAt time.Time
	Key       string // whpk_…
}
