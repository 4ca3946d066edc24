package sign

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
)

// secretBytes is the length of a secret of NewSecret.
const secretBytes = 32

// Secret is a signing secret: a whsec_ secret or an ed25519 key. It prints as [redacted]; only Text returns its text.
// The zero Secret is invalid.
type Secret struct {
	material redactedMaterial
}

// NewSecret returns a new whsec_ secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	return Secret{hideMaterial(&material{text: prefixSymmetric + base64.StdEncoding.EncodeToString(key), shared: key})}
}

// NewKey returns a new whsk_ key.
func NewKey() Secret {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails, as above
	private := ed25519.NewKeyFromSeed(seed)
	return Secret{hideMaterial(newPrivate(prefixPrivate+base64.StdEncoding.EncodeToString(private), private))}
}

// ParseSecret parses a secret: whsec_ and 24 to 64 bytes in base64, or whsk_ and an ed25519 key in base64, which is its
// seed of 32 bytes or the 64 bytes of seed and public key. The base64 is the standard one with optional padding. Errors
// do not contain the text.
func ParseSecret(text string) (Secret, error) {
	if strings.HasPrefix(text, prefixPublic) {
		return Secret{}, errors.New("a public key (whpk_) cannot sign: use its whsk_ key")
	}
	m, err := parse(text)
	if err != nil {
		return Secret{}, err
	}
	return Secret{hideMaterial(m)}, nil
}

// Text returns the secret itself, as it was parsed, with padding.
func (s Secret) Text() string {
	if m := s.material.open(); m != nil {
		return m.text
	}
	return ""
}

// IsZero reports whether this is the zero Secret.
func (s Secret) IsZero() bool { return s.material.open() == nil }

// Asymmetric reports whether the secret is an ed25519 key, whose public half verifies.
func (s Secret) Asymmetric() bool {
	m := s.material.open()
	return m != nil && m.private != nil
}

// PublicKey returns the whpk_ text of an ed25519 key's public half; empty for a whsec_ secret.
func (s Secret) PublicKey() string {
	if !s.Asymmetric() {
		return ""
	}
	return prefixPublic + base64.StdEncoding.EncodeToString(s.material.open().public)
}

// ID returns a fingerprint of 16 hexadecimal digits, the same for every encoding of the secret. It is part of a hash of
// the secret, or of an ed25519 key's public half, and reveals nothing about a random secret.
func (s Secret) ID() string {
	m := s.material.open()
	if m == nil {
		return ""
	}
	scheme, key := "v1", m.shared
	if m.public != nil {
		scheme, key = "v1a", m.public
	}
	h := sha256.New()
	h.Write([]byte("ringback secret id " + scheme + "\x00"))
	h.Write(key)
	return hex.EncodeToString(h.Sum(nil)[:8])
}
