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

// Setting is the environment variable of the keys.
const Setting = "RINGBACK_SECRET_KEY"

// MaxKeys is the largest number of keys of a setting.
const MaxKeys = 16

// keyHint is appended to errors about keys.
const keyHint = "generate one with openssl rand -base64 32"

// Key is an encryption key. It prints as [redacted]. The zero Key is invalid.
type Key struct {
	// A pointer to a pointer, since fmt prints unexported fields without calling the methods below, and follows a
	// single pointer for some verbs.
	bytes **[chacha20poly1305.KeySize]byte
}

// ParseKeys parses the setting: keys separated by commas, the encrypting one first. Each is 32 bytes in base64
// (standard or URL-safe, padding optional) or 64 hexadecimal digits; surrounding white space is ignored. An empty text
// returns no keys. Errors contain the number of the invalid key, not its text.
func ParseKeys(text string) ([]Key, error) {
	if text == "" {
		return nil, nil
	}
	parts := strings.Split(text, ",")
	if len(parts) > MaxKeys {
		return nil, fmt.Errorf("must have at most %d keys, not %d: remove keys that are no longer used", MaxKeys,
			len(parts))
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

// parseKey parses one key.
func parseKey(text string) (Key, error) {
	const length = chacha20poly1305.KeySize
	if text == "" {
		return Key{}, errors.New("is empty: " + keyHint)
	}
	if len(text) == hex.EncodedLen(length) {
		raw, err := hex.DecodeString(text)
		if err != nil {
			return Key{}, errors.New("64 characters must be hexadecimal digits: " + keyHint)
		}
		return newKey(raw), nil
	}
	// Both alphabets are accepted. The decoder ignores line breaks.
	text = strings.NewReplacer("-", "+", "_", "/").Replace(text)
	if len(text)%4 == 0 {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "="), "=")
	}
	raw, err := base64.RawStdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return Key{}, errors.New("must be base64 or 64 hexadecimal digits: " + keyHint)
	}
	if len(raw) != length {
		return Key{}, fmt.Errorf("must have %d bytes, not %d: %s", length, len(raw), keyHint)
	}
	return newKey(raw), nil
}

// newKey returns a Key of 32 bytes.
func newKey(raw []byte) Key {
	key := [chacha20poly1305.KeySize]byte(raw)
	pointer := &key
	return Key{&pointer}
}

func (k Key) equal(other Key) bool { return **k.bytes == **other.bytes }

// ID returns a fingerprint of 8 hexadecimal digits, which reveals nothing about the key. The zero Key has none.
func (k Key) ID() string {
	if k.bytes == nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte("ringback seal key\x00"), (*k.bytes)[:]...))
	return hex.EncodeToString(sum[:4])
}

// redacted is printed instead of a key.
const redacted = "[redacted]"

// String hides the key.
func (Key) String() string { return redacted }

// Format hides the key from every verb of fmt, also %#v.
func (Key) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// LogValue hides the key from logs.
func (Key) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText hides the key from encodings.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }
