package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// The text of a token is rb_, an id, an underscore, a secret and a checksum: rb_ + 8 + _ + 43 + 6 characters. Id,
// secret and checksum are digits and letters. A secret has 256 random bits. The checksum is the CRC-32 (IEEE) of
// everything before it, so that a mistyped token is known without a lookup.
const (
	// Prefix is what the text of a token begins with.
	Prefix = "rb_"

	alphabet       = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	idLength       = 8
	secretLength   = 43
	checksumLength = 6
	secretAt       = len(Prefix) + idLength + 1
	checksumAt     = secretAt + secretLength
	textLength     = checksumAt + checksumLength
)

// ErrMalformed: the text is not that of a token.
var ErrMalformed = errors.New("not the text of a token")

// NewText generates the text of a token. It returns its id, too.
func NewText() (text, id string) {
	id = randomText(idLength)
	text = Prefix + id + "_" + randomText(secretLength)
	sum := checksum(text)
	return text + string(sum[:]), id
}

// ParseID returns the id in the text of a token. ErrMalformed.
func ParseID(text string) (id string, err error) {
	if len(text) != textLength || !strings.HasPrefix(text, Prefix) || text[secretAt-1] != '_' {
		return "", ErrMalformed
	}
	id = text[len(Prefix) : secretAt-1]
	if !IsID(id) || !isAlphanumeric(text[secretAt:]) {
		return "", ErrMalformed
	}
	if sum := checksum(text[:checksumAt]); string(sum[:]) != text[checksumAt:] {
		return "", ErrMalformed
	}
	return id, nil
}

// IsID reports whether a text has the form of a token's id.
func IsID(text string) bool { return len(text) == idLength && isAlphanumeric(text) }

func isAlphanumeric(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z') {
			return false
		}
	}
	return true
}

// randomText returns n random characters of alphabet, all equally likely.
func randomText(n int) string {
	const usable = 256 - 256%len(alphabet) // bytes from here on would make the first characters more likely
	text := make([]byte, 0, n)
	var raw [64]byte
	for {
		_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
		for _, b := range raw {
			if int(b) >= usable {
				continue
			}
			if text = append(text, alphabet[int(b)%len(alphabet)]); len(text) == n {
				return string(text)
			}
		}
	}
}

// checksum returns the CRC-32 of a text, in base 62 with leading zeros. It is computed here because hash/crc32 would
// copy the text to the heap.
func checksum(text string) (digits [checksumLength]byte) {
	sum := ^uint32(0)
	for i := range len(text) {
		sum = crc32.IEEETable[byte(sum)^text[i]] ^ sum>>8
	}
	sum = ^sum
	for i := checksumLength - 1; i >= 0; i-- {
		digits[i] = alphabet[sum%uint32(len(alphabet))]
		sum /= uint32(len(alphabet))
	}
	return digits
}

// Hash is the SHA-256 of the text of a token. The texts are random, so a slow hash would protect nothing more.
type Hash [sha256.Size]byte

// HashOf returns the hash of a text.
func HashOf(text string) Hash {
	var raw [2 * textLength]byte // longer texts are copied to the heap
	return sha256.Sum256(append(raw[:0], text...))
}

// Equal compares two hashes in constant time.
func (h Hash) Equal(other Hash) bool { return subtle.ConstantTimeCompare(h[:], other[:]) == 1 }

// MarshalText returns the hash in hexadecimal.
func (h Hash) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, h[:]), nil }

// UnmarshalText parses a hash in hexadecimal.
func (h *Hash) UnmarshalText(text []byte) error {
	raw, err := hex.DecodeString(string(text))
	if err != nil || len(raw) != len(h) {
		return fmt.Errorf("%q is not a SHA-256 in hexadecimal", text)
	}
	copy(h[:], raw)
	return nil
}
