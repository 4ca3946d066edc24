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

// secretBytes is the length of a secret that NewSecret makes.
const secretBytes = 32

// A Secret is what a request is signed with: a whsec_ secret, or an ed25519 key. It prints as [redacted]; only Text
// tells what it is. The zero Secret is none: it has no text and signs nothing.
type Secret struct {
	vault vault
}

// NewSecret makes a whsec_ secret of 32 random bytes.
func NewSecret() Secret {
	key := make([]byte, secretBytes)
	_, _ = rand.Read(key) // never fails: crypto/rand ends the process instead
	return Secret{lock(&material{text: prefixSymmetric + base64.StdEncoding.EncodeToString(key), shared: key})}
}

// NewKey makes a whsk_ key.
func NewKey() Secret {
	seed := make([]byte, ed25519.SeedSize)
	_, _ = rand.Read(seed) // never fails, as above
	private := ed25519.NewKeyFromSeed(seed)
	return Secret{lock(newPrivate(prefixPrivate+base64.StdEncoding.EncodeToString(private), private))}
}

// ParseSecret reads a secret: whsec_ and 24 to 64 bytes in base64, or whsk_ and an ed25519 key in base64, which is its
// seed of 32 bytes or the 64 bytes of seed and public key. The base64 is the standard one; its padding may be missing.
// An error says what is wrong and never repeats the text.
func ParseSecret(text string) (Secret, error) {
	if strings.HasPrefix(text, prefixPublic) {
		return Secret{}, errors.New("this is a public key (whpk_), which cannot sign: give the whsk_ key that it belongs to")
	}
	m, err := parse(text)
	if err != nil {
		return Secret{}, err
	}
	return Secret{lock(m)}, nil
}

// Text is the secret itself, for those who must store or show it. It is the text that was parsed.
func (s Secret) Text() string {
	if m := s.vault.open(); m != nil {
		return m.text
	}
	return ""
}

// IsZero reports whether this is the zero Secret.
func (s Secret) IsZero() bool { return s.vault.open() == nil }

// Asymmetric reports whether the secret is an ed25519 key, whose public half verifies.
func (s Secret) Asymmetric() bool {
	m := s.vault.open()
	return m != nil && m.private != nil
}

// PublicKey is the whpk_ text of an ed25519 key's public half, which is no secret; of a whsec_ secret it is empty.
func (s Secret) PublicKey() string {
	if !s.Asymmetric() {
		return ""
	}
	return prefixPublic + base64.StdEncoding.EncodeToString(s.vault.open().public)
}

// ID names the secret in 16 hexadecimal digits, the same ones wherever and however it is written. It is cut from a hash
// and tells nothing of a random secret. Of an ed25519 key it is the hash of the public half.
func (s Secret) ID() string {
	m := s.vault.open()
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
