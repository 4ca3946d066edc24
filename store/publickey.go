package store

import "time"

// PublicKey verifies the signatures of an asymmetric secret.
type PublicKey struct {
	ID        string    `api:"id"`
	CreatedAt time.Time `api:"created_at"`
	Key       string    `api:"public_key"` // whpk_…
}
