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

// DefaultTolerance is how far a request's timestamp may be from the receiver's clock, before or after.
const DefaultTolerance = 5 * time.Minute

// Bounds of what is looked at of a request's headers, in bytes and digits.
const (
	maxID        = 256
	maxTimestamp = 12
	maxHeader    = 8 << 10 // of webhook-signature; what is beyond is passed over
)

// Why Verify refuses a request. ErrTooOld and ErrTooNew are ErrTimestamp as well.
var (
	// ErrMissing: webhook-id, webhook-timestamp or webhook-signature is missing or empty, or cannot be what was signed.
	ErrMissing = errors.New("the request is not signed")
	// ErrTimestamp: webhook-timestamp is no time in Unix seconds, or not within the tolerance.
	ErrTimestamp = errors.New("the webhook-timestamp is not acceptable")
	// ErrTooOld: webhook-timestamp lies before the tolerance.
	ErrTooOld = fmt.Errorf("%w: it is too old", ErrTimestamp)
	// ErrTooNew: webhook-timestamp lies after the tolerance.
	ErrTooNew = fmt.Errorf("%w: it lies in the future", ErrTimestamp)
	// ErrSignature: no signature fits any key.
	ErrSignature = errors.New("no signature fits")
)

// A Verifier tells whether requests were signed with one of its keys.
type Verifier struct {
	// Tolerance is how far webhook-timestamp may be from now, before or after, in whole seconds; zero or less:
	// DefaultTolerance. It must not be changed while requests are verified.
	Tolerance time.Duration

	shared, public []vault
}

// NewVerifier makes a Verifier of keys, each a whsec_ secret, a whpk_ public key or a whsk_ key, as texts: see
// ParseSecret. An error says which is wrong and never repeats it.
func NewVerifier(keys ...string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, errors.New("nothing to verify with: give at least one whsec_ secret or whpk_ key")
	}
	if len(keys) > MaxSignatures {
		return nil, fmt.Errorf("at most %d keys verify, these are %d", MaxSignatures, len(keys))
	}
	v := &Verifier{}
	for i, text := range keys {
		m, err := parse(text)
		switch {
		case err != nil:
			return nil, fmt.Errorf("key %d of %d: %w", i+1, len(keys), err)
		case m.shared != nil:
			v.shared = append(v.shared, lock(m))
		default:
			v.public = append(v.public, lock(m))
		}
	}
	return v, nil
}

// Verify reports whether a request with this header and these bytes as its body was signed with one of the keys, at a
// time within the tolerance of now: nil, or ErrMissing, ErrTimestamp (ErrTooOld, ErrTooNew) or ErrSignature. The names
// of headers may be in any case.
//
// The body must be the bytes that came, not JSON that was read and written anew. Of the signatures the first
// MaxSignatures are looked at, as far as they lie in the first 8 KiB; those of unknown versions are passed over.
func (v *Verifier) Verify(header http.Header, body []byte, now time.Time) error {
	c, err := v.read(header, now)
	if err != nil {
		return err
	}
	return v.match(c, body)
}

// A claim is what a request's headers say, before anything of it is known to be true.
type claim struct {
	prefix     string   // id.timestamp.
	signatures []string // v1,…
}

// read reads the headers and compares the timestamp with now.
func (v *Verifier) read(header http.Header, now time.Time) (claim, error) {
	id, err := single(header, HeaderID, maxID)
	if err != nil {
		return claim{}, err
	}
	if strings.Contains(id, ".") {
		return claim{}, fmt.Errorf("%w: the webhook-id has a full stop", ErrMissing)
	}
	timestamp, err := single(header, HeaderTimestamp, maxID)
	if err != nil {
		return claim{}, err
	}
	signatures := fields(values(header, HeaderSignature))
	if len(signatures) == 0 {
		return claim{}, fmt.Errorf("%w: there is no webhook-signature", ErrMissing)
	}
	if err := v.check(timestamp, now); err != nil {
		return claim{}, err
	}
	return claim{prefix: id + "." + timestamp + ".", signatures: signatures}, nil
}

// check compares a timestamp with now. It is read as it is signed: digits alone.
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

// match looks for a signature that fits a key.
func (v *Verifier) match(c claim, body []byte) error {
	var macs [][]byte    // what each shared secret makes of the request
	var message []byte   // what each ed25519 key has signed
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

// authenticate is what each shared secret makes of the request; never nil.
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

// decode reads base64 that must hold n bytes, in its one proper form; nil when it does not.
func decode(dst, src []byte, text string, n int) []byte {
	if len(text) != base64.StdEncoding.EncodedLen(n) {
		return nil
	}
	// Line breaks are passed over by the decoder; then it gives fewer than n bytes.
	if got, err := base64.StdEncoding.Strict().Decode(dst, src[:copy(src, text)]); err != nil || got != n {
		return nil
	}
	return dst[:n]
}
