package codec

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ringback/ringback/job"
)

// fingerprintSize is the length of a fingerprint in bytes.
const fingerprintSize = 16

// Fingerprint returns a hash of a registration as it was sent, with relative times unresolved, and without the client's
// name. Two requests with one id are equal if their fingerprints are. Fingerprints are stored, so they never change.
func Fingerprint(n *job.New) []byte {
	fields := *n
	fields.Body = nil // hashed last, without a copy
	fields.CreatedBy = ""
	const prefix = 8 // bytes of the length
	b := AppendNew(make([]byte, prefix, 512), &fields)
	binary.BigEndian.PutUint64(b, uint64(len(b)-prefix))
	h := sha256.New()
	h.Write(b)
	h.Write(n.Body)
	return h.Sum(nil)[:fingerprintSize]
}
