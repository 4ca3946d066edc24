package sign

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// Lengths of a whsec_ secret, in bytes, by the specification.
const (
	minSecret = 24
	maxSecret = 64
)

// maxText bounds what is read as a secret or key, in characters: 64 bytes in base64 are 88.
const maxText = 128

// parse reads a secret or a key of any kind.
func parse(text string) (*material, error) {
	prefix, key, err := split(text)
	if err != nil {
		return nil, err
	}
	padded := prefix + base64.StdEncoding.EncodeToString(key)
	switch prefix {
	case prefixSymmetric:
		if len(key) < minSecret || len(key) > maxSecret {
			return nil, fmt.Errorf("a whsec_ secret is %d to %d bytes in base64, this one is %d bytes: put whsec_ before what this prints: openssl rand -base64 %d",
				minSecret, maxSecret, len(key), secretBytes)
		}
		return &material{text: padded, shared: key}, nil
	case prefixPublic:
		if len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("a whpk_ key is %d bytes in base64, this one is %d bytes", ed25519.PublicKeySize, len(key))
		}
		return &material{text: padded, public: key}, nil
	}
	switch len(key) {
	case ed25519.SeedSize:
		return newPrivate(padded, ed25519.NewKeyFromSeed(key)), nil
	case ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
		if !private.Equal(ed25519.PrivateKey(key)) {
			// Signatures made with such a pair give the private half away.
			return nil, errors.New("the two halves of this whsk_ key do not belong together: give its seed (the first 32 bytes) alone, or the whole key as it was made")
		}
		return newPrivate(padded, private), nil
	}
	return nil, fmt.Errorf("a whsk_ key is an ed25519 key of %d or %d bytes in base64, this one is %d bytes",
		ed25519.SeedSize, ed25519.PrivateKeySize, len(key))
}

// split takes a text apart into its prefix and what is in the base64 behind it.
func split(text string) (prefix string, key []byte, err error) {
	for _, p := range []string{prefixSymmetric, prefixPrivate, prefixPublic} {
		rest, ok := strings.CutPrefix(text, p)
		if !ok {
			continue
		}
		if len(text) > maxText {
			return "", nil, fmt.Errorf("the %s text is longer than %d characters", p, maxText)
		}
		// The decoder passes over line breaks, and whoever gives one has pasted more than the secret.
		if key, err = base64.RawStdEncoding.Strict().DecodeString(unpad(rest)); err != nil || strings.ContainsAny(rest, "\r\n") {
			return "", nil, fmt.Errorf("what follows %s is not base64 (of A-Z a-z 0-9 + /, without spaces or line breaks)", p)
		}
		return p, key, nil
	}
	if text == "" {
		return "", nil, errors.New("the secret is empty: give one that begins with whsec_ or whsk_")
	}
	return "", nil, errors.New("the secret begins with neither whsec_ nor whsk_: put whsec_ before the base64 of a shared secret, whsk_ before that of an ed25519 key")
}

// unpad takes the padding off base64 whose length is right with it.
func unpad(text string) string {
	if len(text)%4 != 0 {
		return text
	}
	if rest, ok := strings.CutSuffix(text, "=="); ok {
		return rest
	}
	return strings.TrimSuffix(text, "=")
}
