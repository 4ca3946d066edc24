package codec

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/ringback/ringback/job"
)

// FingerprintSize is the length of a Fingerprint in bytes.
const FingerprintSize = 16

// Fingerprint identifies a registration as it was sent, with a relative delay unresolved: two requests under one id are
// equal if their fingerprints are. Fingerprints are stored, so that of a given registration never changes.
func Fingerprint(n *job.New) []byte {
	fields := *n
	fields.Body = nil // hashed after the rest, which spares a copy
	b := AppendNew(nil, &fields)
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
	h.Write(b)
	h.Write(n.Body)
	return h.Sum(nil)[:FingerprintSize]
}
