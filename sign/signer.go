package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"strconv"
	"sync"
	"time"
)

// maxKept bounds the buffer, in bytes, that a Signer keeps for the next request that an ed25519 key signs.
const maxKept = 64 << 10

// A Signer signs requests with one or several secrets. Make one for a set of secrets and keep it: what it prepares for
// each secret is used again.
type Signer struct {
	secrets []Secret
	pool    sync.Pool // of *bench
}

// A bench is what one signing works with.
type bench struct {
	macs    []hash.Hash // one a secret; nil for an ed25519 key
	prefix  []byte      // id.timestamp.
	message []byte      // the whole of what an ed25519 key signs
	sum     [sha256.Size]byte
	out     []byte // the header's value
}

// NewSigner makes a Signer of secrets, in the order in which they shall sign. Without any it signs nothing. It refuses
// the zero Secret, and more than MaxSignatures.
func NewSigner(secrets ...Secret) (*Signer, error) {
	if len(secrets) > MaxSignatures {
		return nil, fmt.Errorf("a request is signed with at most %d secrets, these are %d", MaxSignatures, len(secrets))
	}
	for i, s := range secrets {
		if s.IsZero() {
			return nil, fmt.Errorf("secret %d of %d is the zero Secret: get one from ParseSecret, NewSecret or NewKey", i+1, len(secrets))
		}
	}
	return &Signer{secrets: append([]Secret(nil), secrets...)}, nil
}

// Sign gives the value of the header webhook-signature for a request whose webhook-id is id, whose webhook-timestamp is
// at.Unix() and whose body is body: a signature of each secret, in order, divided by spaces. It is empty when the Signer
// has no secrets, or is nil.
//
// The id must have no full stop, which divides the parts of what is signed: a Verifier refuses such an id, since the
// same text could be read as another id, time and body.
func (s *Signer) Sign(id string, at time.Time, body []byte) string {
	if s == nil || len(s.secrets) == 0 {
		return ""
	}
	b, ok := s.pool.Get().(*bench)
	if !ok {
		b = s.newBench()
	}
	value := b.value(s.secrets, id, at.Unix(), body)
	if cap(b.message) > maxKept {
		b.message = nil
	}
	s.pool.Put(b)
	return value
}

func (s *Signer) newBench() *bench {
	b := &bench{macs: make([]hash.Hash, len(s.secrets))}
	for i, secret := range s.secrets {
		if shared := secret.vault.open().shared; shared != nil {
			b.macs[i] = hmac.New(sha256.New, shared)
		}
	}
	return b
}

// value makes the header's value.
func (b *bench) value(secrets []Secret, id string, timestamp int64, body []byte) string {
	b.prefix = append(b.prefix[:0], id...)
	b.prefix = append(b.prefix, '.')
	b.prefix = strconv.AppendInt(b.prefix, timestamp, 10)
	b.prefix = append(b.prefix, '.')
	b.message, b.out = b.message[:0], b.out[:0]
	for i, secret := range secrets {
		if i > 0 {
			b.out = append(b.out, ' ')
		}
		if mac := b.macs[i]; mac != nil {
			b.authenticate(mac, body)
		} else {
			b.sign(secret.vault.open().private, body)
		}
	}
	return string(b.out)
}

// authenticate appends a v1 signature.
func (b *bench) authenticate(mac hash.Hash, body []byte) {
	mac.Reset()
	mac.Write(b.prefix)
	mac.Write(body)
	b.out = append(b.out, versionSymmetric...)
	b.out = base64.StdEncoding.AppendEncode(b.out, mac.Sum(b.sum[:0]))
}

// sign appends a v1a signature. The key signs one piece of memory, which is put together for the first such key.
func (b *bench) sign(key ed25519.PrivateKey, body []byte) {
	if len(b.message) == 0 {
		b.message = append(append(b.message, b.prefix...), body...)
	}
	b.out = append(b.out, versionAsymmetric...)
	b.out = base64.StdEncoding.AppendEncode(b.out, ed25519.Sign(key, b.message))
}
