package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"slices"
	"strconv"
	"sync"
	"time"
)

// maxKeptBuffer bounds the buffer for ed25519 messages that a Signer reuses, in bytes.
const maxKeptBuffer = 64 << 10

// Signer signs requests with one or several secrets. Reuse it: it caches a state per secret.
type Signer struct {
	secrets []Secret
	pool    sync.Pool // of *signState
}

// signState holds the buffers and MACs of one call of Sign.
type signState struct {
	macs    []hash.Hash // one per secret; nil for an ed25519 key
	prefix  []byte      // id.timestamp.
	message []byte      // id.timestamp.body, for ed25519 keys
	sum     [sha256.Size]byte
	out     []byte // the header's value
}

// NewSigner returns a Signer of secrets, in the order of their signatures. Without secrets it signs nothing. The zero
// Secret and more than MaxSignatures secrets are an error.
func NewSigner(secrets ...Secret) (*Signer, error) {
	if len(secrets) > MaxSignatures {
		return nil, fmt.Errorf("a request can be signed with at most %d secrets, not %d", MaxSignatures, len(secrets))
	}
	for i, s := range secrets {
		if s.IsZero() {
			return nil, fmt.Errorf("secret %d of %d is the zero Secret: use ParseSecret, NewSecret or NewKey", i+1,
				len(secrets))
		}
	}
	return &Signer{secrets: slices.Clone(secrets)}, nil
}

// Sign returns the value of the header webhook-signature for a request with the webhook-id id, the webhook-timestamp
// at.Unix() and the body: a signature per secret, in order, separated by spaces. It is empty if the Signer is nil or
// has no secrets.
//
// The id must not contain a full stop, the separator of the signed parts. A Verifier rejects such an id as ambiguous.
func (s *Signer) Sign(id string, at time.Time, body []byte) string {
	if s == nil || len(s.secrets) == 0 {
		return ""
	}
	b, ok := s.pool.Get().(*signState)
	if !ok {
		b = s.newState()
	}
	value := b.value(s.secrets, id, at.Unix(), body)
	if cap(b.message) > maxKeptBuffer {
		b.message = nil
	}
	s.pool.Put(b)
	return value
}

func (s *Signer) newState() *signState {
	b := &signState{macs: make([]hash.Hash, len(s.secrets))}
	for i, secret := range s.secrets {
		if shared := secret.material.open().shared; shared != nil {
			b.macs[i] = hmac.New(sha256.New, shared)
		}
	}
	return b
}

// value returns the header's value.
func (b *signState) value(secrets []Secret, id string, timestamp int64, body []byte) string {
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
			b.sign(secret.material.open().private, body)
		}
	}
	return string(b.out)
}

// authenticate appends a v1 signature.
func (b *signState) authenticate(mac hash.Hash, body []byte) {
	mac.Reset()
	mac.Write(b.prefix)
	mac.Write(body)
	b.out = append(b.out, versionSymmetric...)
	b.out = base64.StdEncoding.AppendEncode(b.out, mac.Sum(b.sum[:0]))
}

// sign appends a v1a signature. The message is built once, for the first ed25519 key.
func (b *signState) sign(key ed25519.PrivateKey, body []byte) {
	if len(b.message) == 0 {
		b.message = append(append(b.message, b.prefix...), body...)
	}
	b.out = append(b.out, versionAsymmetric...)
	b.out = base64.StdEncoding.AppendEncode(b.out, ed25519.Sign(key, b.message))
}
