package store

import "time"

// PublicKey verifies the signatures of an asymmetric secret.
type PublicKey struct {
	ID        string    `api:"id,always"`
	CreatedAt time.Time `api:"created_at,always"`
	// Key is the key: `whpk_…`
	Key string `api:"public_key,always"`
}
