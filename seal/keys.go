package seal

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// Setting is where the keys mostly come from.
const Setting = "RINGBACK_SECRET_KEY"

// MaxKeys is how many keys one setting may hold.
const MaxKeys = 16

// how tells how to make a key.
const how = "make one with: openssl rand -base64 32"

// A Key seals. It prints as [redacted]. The zero Key is none.
type Key struct {
	// A pointer to a pointer, since fmt prints what is in an unexported field of somebody's struct without asking the
	// methods below, and follows a single pointer for some verbs.
	bytes **[chacha20poly1305.KeySize]byte
}

// ParseKeys reads the setting: keys divided by commas, the one that seals first. Each is 32 bytes, as base64 (the
// standard one or that for URLs, with or without padding) or as 64 hexadecimal digits; white space around it is passed
// over. An empty text gives no keys. An error says which key is wrong and how, and never repeats it.
func ParseKeys(text string) ([]Key, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > MaxKeys {
		return nil, fmt.Errorf("there are %d keys, at most %d are read: take away those that nothing is sealed under any more",
			len(parts), MaxKeys)
	}
	keys := make([]Key, 0, len(parts))
	for i, part := range parts {
		key, err := parseKey(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("key %d of %d: %w", i+1, len(parts), err)
		}
		if j := slices.IndexFunc(keys, key.equal); j >= 0 {
			return nil, fmt.Errorf("keys %d and %d are the same", j+1, i+1)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseKey reads one key.
func parseKey(text string) (Key, error) {
	const length = chacha20poly1305.KeySize
	if text == "" {
		return Key{}, errors.New("it is empty: " + how)
	}
	if len(text) == hex.EncodedLen(length) {
		raw, err := hex.DecodeString(text)
		if err != nil {
			return Key{}, errors.New("it has 64 characters, which would be a key in hexadecimal digits, but some are not: " + how)
		}
		return newKey(raw), nil
	}
	// Both alphabets are read as one. The decoder would pass over line breaks.
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return Key{}, errors.New("it is neither base64 nor 64 hexadecimal digits: " + how)
	}
	if len(raw) != length {
		return Key{}, fmt.Errorf("it is %d bytes, a key is %d: %s", len(raw), length, how)
	}
	return newKey(raw), nil
}

// newKey makes a Key of 32 bytes.
func newKey(raw []byte) Key {
	key := [chacha20poly1305.KeySize]byte(raw)
	pointer := &key
	return Key{&pointer}
}

func (k Key) equal(other Key) bool { return **k.bytes == **other.bytes }

// ID names the key in 8 hexadecimal digits, which tell nothing of it. The zero Key has none.
func (k Key) ID() string {
	if k.bytes == nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte("ringback seal key\x00"), (*k.bytes)[:]...))
	return hex.EncodeToString(sum[:4])
}

// redacted stands where a key is not shown.
const redacted = "[redacted]"

// String hides the key.
func (Key) String() string { return redacted }

// GoString hides the key from %#v.
func (Key) GoString() string { return redacted }

// Format hides the key from every verb of fmt.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the key from logs.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the key from encodings.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
