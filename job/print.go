package job

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
)

// Fingerprint condenses a registration as it was sent, a relative delay unresolved, so that the same request under a
// client's id is told from another one. It is 16 bytes of a SHA-256.
func (n New) Fingerprint() []byte {
	n.RunAt, n.ExpiresAt = Millis(n.RunAt), Millis(n.ExpiresAt)
	body := n.Body
	n.Body = nil
	// encoding/json writes maps in the order of their keys, so equal registrations give equal bytes.
	text, err := json.Marshal(n)
	if err != nil {
		panic(fmt.Sprintf("job: a registration always has a JSON form: %v", err))
	}
	h := sha256.New()
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(text))))
	h.Write(text)
	h.Write(body)
	return h.Sum(nil)[:16]
}
