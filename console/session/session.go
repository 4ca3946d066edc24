// Package session seals what the console gives browsers to keep: the token of a reader who has signed in, and notices.
//
// What is sealed is encrypted and authenticated with a key that is derived from a root token, so all processes of a service open it,
// also after a restart, and nothing is stored. A text sealed for one purpose does not open for another. It is safe for concurrent use.
package session

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/redact"
)

// rounds make the guess of a short root token from a stolen cookie slow: about 20 ms each.
const rounds = 100_000

const salt = "ringback console session 1"

// Sealer seals and opens texts. Make one with New.
type Sealer struct {
	keys func() []cipher.AEAD // sealed with the first, opened with any
}

// New returns a Sealer for the root tokens. Without tokens the key is random: texts open in this process only.
func New(tokens []redact.Text) *Sealer {
	return &Sealer{keys: sync.OnceValue(func() []cipher.AEAD {
		if len(tokens) == 0 {
			return []cipher.AEAD{newAEAD(randomKey())}
		}
		keys := make([]cipher.AEAD, len(tokens))
		for i, token := range tokens {
			key, err := pbkdf2.Key(sha256.New, string(token), []byte(salt), rounds, 32)
			if err != nil {
				panic("session: the length of the key is right: " + err.Error())
			}
			keys[i] = newAEAD(key)
		}
		return keys
	})}
}

func randomKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails
	return key
}

func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("session: the length of the key is right: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("session: the size of blocks is right: " + err.Error())
	}
	return aead
}

// Seal returns a text that Open opens for the same purpose before until. It consists of letters, digits, - and _.
func (s *Sealer) Seal(purpose string, text []byte, until time.Time) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(until.Unix())) //nolint:gosec // times after 1970
	return base64.RawURLEncoding.EncodeToString(s.keys()[0].Seal(nil, nil, append(plain, text...), []byte(purpose)))
}

// Open returns what was sealed; false if it was not sealed here for the purpose, or not for so long.
func (s *Sealer) Open(purpose, sealed string, now time.Time) ([]byte, bool) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, false
	}
	for _, key := range s.keys() {
		plain, err := key.Open(nil, nil, data, []byte(purpose))
		if err != nil || len(plain) < 8 {
			continue
		}
		return plain[8:], now.Unix() < int64(binary.BigEndian.Uint64(plain))
	}
	return nil, false
}
