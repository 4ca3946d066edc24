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

// maxText bounds the text of a secret or key, in characters: 64 bytes in base64 are 88.
const maxText = 128

// parse parses a secret or key of any kind.
func parse(text string) (*material, error) {
	prefix, key, err := split(text)
	if err != nil {
		return nil, err
	}
	padded := prefix + base64.StdEncoding.EncodeToString(key)
	switch prefix {
	case prefixSymmetric:
		if len(key) < minSecret || len(key) > maxSecret {
			return nil, fmt.Errorf("a whsec_ secret must have %d to %d bytes in base64, this one has %d: generate "+
				"one with whsec_ and the output of openssl rand -base64 %d",
				minSecret, maxSecret, len(key), secretBytes)
		}
		return &material{text: padded, shared: key}, nil
	case prefixPublic:
		if len(key) != ed25519.PublicKeySize {
			return nil, fmt.Errorf("a whpk_ key must have %d bytes in base64, this one has %d",
				ed25519.PublicKeySize, len(key))
		}
		return &material{text: padded, public: key}, nil
	}
	switch len(key) {
	case ed25519.SeedSize:
		return newPrivate(padded, ed25519.NewKeyFromSeed(key)), nil
	case ed25519.PrivateKeySize:
		private := ed25519.NewKeyFromSeed(key[:ed25519.SeedSize])
		if !private.Equal(ed25519.PrivateKey(key)) {
			// Signatures of a mismatched pair reveal the private key.
			return nil, errors.New("the public half of this whsk_ key does not match its seed: use the seed (the " +
				"first 32 bytes) alone, or the original key")
		}
		return newPrivate(padded, private), nil
	}
	return nil, fmt.Errorf("a whsk_ key must be an ed25519 key of %d or %d bytes in base64, this one has %d",
		ed25519.SeedSize, ed25519.PrivateKeySize, len(key))
}

// split returns the prefix of a text and the decoded base64 after it.
func split(text string) (prefix string, key []byte, err error) {
	for _, p := range []string{prefixSymmetric, prefixPrivate, prefixPublic} {
		rest, ok := strings.CutPrefix(text, p)
		if !ok {
			continue
		}
		if len(text) > maxText {
			return "", nil, fmt.Errorf("the %s text must have at most %d characters", p, maxText)
		}
		// The decoder ignores line breaks, but a text with one contains more than the secret.
		if key, err = base64.RawStdEncoding.Strict().DecodeString(unpad(rest)); err != nil ||
			strings.ContainsAny(rest, "\r\n") {
			return "", nil,
				fmt.Errorf("the text after %s must be base64 (A-Z a-z 0-9 + /, without spaces or line breaks)", p)
		}
		return p, key, nil
	}
	if text == "" {
		return "", nil, errors.New("the secret is empty: it must begin with whsec_ or whsk_")
	}
	return "", nil,
		errors.New("the secret must begin with whsec_ (base64 of a shared secret) or whsk_ (base64 of an ed25519 key)")
}

// unpad removes the padding of base64 whose length is correct with it.
func unpad(text string) string {
	if len(text)%4 != 0 {
		return text
	}
	if rest, ok := strings.CutSuffix(text, "=="); ok {
		return rest
	}
	return strings.TrimSuffix(text, "=")
}
