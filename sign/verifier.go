package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// DefaultTolerance is the largest difference of a request's timestamp to the receiver's clock.
const DefaultTolerance = 5 * time.Minute

// Bounds of a request's headers, in bytes and digits.
const (
	maxID              = 256
	maxTimestamp       = 12
	maxSignatureHeader = 8 << 10 // of webhook-signature; the rest is ignored
)

// The errors of Verify. ErrTooOld and ErrTooNew wrap ErrTimestamp.
var (
	// ErrMissing: webhook-id, webhook-timestamp or webhook-signature is missing, empty or malformed.
	ErrMissing = errors.New("the request is not signed")
	// ErrTimestamp: webhook-timestamp is not a Unix time in seconds, or not within the tolerance.
	ErrTimestamp = errors.New("invalid webhook-timestamp")
	// ErrTooOld: webhook-timestamp is before the tolerance.
	ErrTooOld = fmt.Errorf("%w: it is too old", ErrTimestamp)
	// ErrTooNew: webhook-timestamp is after the tolerance.
	ErrTooNew = fmt.Errorf("%w: it is in the future", ErrTimestamp)
	// ErrSignature: no signature matches any key.
	ErrSignature = errors.New("no signature matches")
)

// Verifier verifies that requests were signed with one of its keys.
type Verifier struct {
	// Tolerance is the largest difference of webhook-timestamp to now, in whole seconds; zero or less:
	// DefaultTolerance. It must not be changed while requests are verified.
	Tolerance time.Duration

	shared, public []redactedMaterial
}

// NewVerifier returns a Verifier of keys, each the text of a whsec_ secret, a whpk_ public key or a whsk_ key: see
// ParseSecret. Errors contain the number of the invalid key, not its text.
func NewVerifier(keys ...string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, errors.New("a Verifier requires at least one whsec_ secret or whpk_ key")
	}
	if len(keys) > MaxSignatures {
		return nil, fmt.Errorf("a Verifier can have at most %d keys, not %d", MaxSignatures, len(keys))
	}
	v := &Verifier{}
	for i, text := range keys {
		m, err := parse(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("key %d of %d: %w", i+1, len(keys), err)
		case m.shared != nil:
			v.shared = append(v.shared, hideMaterial(m))
		default:
			v.public = append(v.public, hideMaterial(m))
		}
	}
	return v, nil
}

// Verify returns nil if the request was signed with one of the keys at a time within the tolerance of now, else
// ErrMissing, ErrTimestamp (ErrTooOld, ErrTooNew) or ErrSignature. Header names may be in any case.
//
// The body must be the received bytes, not re-encoded JSON. The first MaxSignatures signatures in the first 8 KiB are
// checked; those of unknown versions are ignored.
func (v *Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	c, err := v.read(header, now)
	if err != nil {
		return err
	}
	return v.match(c, body)
}

// signedHeaders are a request's headers before they are verified.
type signedHeaders struct {
	prefix     string   // id.timestamp.
	signatures []string // v1,…
}

// read parses the headers and checks the timestamp.
func (v *Verifier) read(header http.Header, now time.Time) (signedHeaders, error) {
	id, err := singleValue(header, HeaderID, maxID)
	if err != nil {
		return signedHeaders{}, err
	}
	if strings.Contains(id, ".") {
		return signedHeaders{}, fmt.Errorf("%w: webhook-id contains a full stop", ErrMissing)
	}
	timestamp, err := singleValue(header, HeaderTimestamp, maxID)
	if err != nil {
		return signedHeaders{}, err
	}
	signatures := splitSignatures(headerValues(header, HeaderSignature))
	if len(signatures) == 0 {
		return signedHeaders{}, fmt.Errorf("%w: webhook-signature is missing", ErrMissing)
	}
	if err := v.check(timestamp, now); err != nil {
		return signedHeaders{}, err
	}
	return signedHeaders{prefix: id + "." + timestamp + ".", signatures: signatures}, nil
}

// check checks a timestamp against now. It must be digits only, as it is signed as text.
func (v *Verifier) check(timestamp string, now time.Time) error {
	if len(timestamp) > maxTimestamp || strings.Trim(timestamp, "0123456789") != "" {
		return fmt.Errorf("%w: it is not a number of seconds", ErrTimestamp)
	}
	at, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: it is not a number of seconds", ErrTimestamp)
	}
	tolerance := v.Tolerance
	if tolerance <= 0 {
		tolerance = DefaultTolerance
	}
	switch age := now.Unix() - at; {
	case age > int64(tolerance/time.Second):
		return ErrTooOld
	case -age > int64(tolerance/time.Second):
		return ErrTooNew
	}
	return nil
}

// match checks whether a signature matches a key.
func (v *Verifier) match(c signedHeaders, body []byte) error {
	var macs [][]byte    // of each shared secret, computed once
	var message []byte   // id.timestamp.body for ed25519 keys, built once
	var raw [96]byte     // one signature decoded
	var encoded [96]byte // and before that
	for _, text := range c.signatures {
		symmetric, ok := strings.CutPrefix(text, versionSymmetric)
		if ok {
			signature := decode(raw[:], encoded[:], symmetric, sha256.Size)
			if signature == nil {
				continue
			}
			if macs == nil {
				macs = v.authenticate(c.prefix, body)
			}
			for _, mac := range macs {
				if hmac.Equal(mac, signature) { // in constant time
					return nil
				}
			}
			continue
		}
		asymmetric, ok := strings.CutPrefix(text, versionAsymmetric)
		if !ok || len(v.public) == 0 {
			continue
		}
		signature := decode(raw[:], encoded[:], asymmetric, ed25519.SignatureSize)
		if signature == nil {
			continue
		}
		if message == nil {
			message = append(append(make([]byte, 0, len(c.prefix)+len(body)), c.prefix...), body...)
		}
		for _, key := range v.public {
			if ed25519.Verify(key.open().public, message, signature) {
				return nil
			}
		}
	}
	return ErrSignature
}

// authenticate returns the MAC of each shared secret; never nil.
func (v *Verifier) authenticate(prefix string, body []byte) [][]byte {
	macs := make([][]byte, 0, len(v.shared))
	for _, key := range v.shared {
		mac := hmac.New(sha256.New, key.open().shared)
		mac.Write([]byte(prefix))
		mac.Write(body)
		macs = append(macs, mac.Sum(nil))
	}
	return macs
}

// decode decodes canonical base64 of n bytes; nil: it is not.
func decode(dst, src []byte, text string, n int) []byte {
	if len(text) != base64.StdEncoding.EncodedLen(n) {
		return nil
	}
	// The decoder ignores line breaks; then it returns fewer than n bytes.
	if got, err := base64.StdEncoding.Strict().Decode(dst, src[:copy(src, text)]); err != nil || got != n {
		return nil
	}
	return dst[:n]
}
