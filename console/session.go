// This part of the package seals what the console gives browsers to keep: the token of a reader who has signed in, and
// notices.
//
// What is sealed is encrypted and authenticated with a key that is derived from a root token, so all processes of a
// service open it, also after a restart, and nothing is stored. A text sealed for one purpose does not open for
// another. What a process has ended it does not open again, but only as long as it runs. It is safe for concurrent use.

package console

import (
	"cmp"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/internal/logs"
)

// sealRounds make guesses slow. Each person who has signed in knows a text and what it was sealed to, and can guess a
// root token that was chosen by hand, at home. A guess takes about 0.1 s of a processor.
const sealRounds = 600_000

const salt = "ringback console session 1"

// Sealer seals and opens texts. Make one with New.
type Sealer struct {
	rounds  int
	current atomic.Pointer[func() []*key] // sealed with the first, opened with any

	mu    sync.Mutex // guards ended
	ended map[nonce]int64
}

// nonce is the random beginning of what was sealed, which no other text has. Of those that were ended the Unix time is
// kept until which they would have opened.
type nonce [12]byte

// maxEnded bounds the texts that are kept as ended. Then the one that would open for the shortest time is forgotten.
const maxEnded = 10_000

// key is a key and its name.
type key struct {
	cipher.AEAD

	id string
}

// derived are the keys of the root tokens of this process, by the hash of the token and rounds: deriving one is slow on
// purpose.
var derived sync.Map

// NewSealer returns a Sealer for the root tokens. rounds are those of a guess; zero: Rounds. Tests take fewer. Without
// tokens the key is random: texts open in this process only.
func NewSealer(tokens []logs.Secret, rounds int) *Sealer {
	s := &Sealer{rounds: cmp.Or(rounds, sealRounds), ended: make(map[nonce]int64)}
	s.Replace(tokens)
	return s
}

// Replace replaces the root tokens. What was sealed with one that is not among them does not open any more.
func (s *Sealer) Replace(tokens []logs.Secret) {
	keys := sync.OnceValue(func() []*key {
		if len(tokens) == 0 {
			return []*key{newKey(randomSecret())}
		}
		keys := make([]*key, len(tokens))
		for i, token := range tokens {
			keys[i] = derive(string(token), s.rounds)
		}
		return keys
	})
	s.current.Store(&keys)
}

func (s *Sealer) keys() []*key { return (*s.current.Load())() }

// IDs returns names of the keys, 8 characters each, which tell nothing about them. The first one seals.
func (s *Sealer) IDs() []string {
	keys := s.keys()
	ids := make([]string, len(keys))
	for i, k := range keys {
		ids[i] = k.id
	}
	return ids
}

// derive returns the key of a root token.
func derive(token string, rounds int) *key {
	hash := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(token), uint64(rounds)))
	if known, ok := derived.Load(hash); ok {
		return known.(*key) //nolint:forcetypeassert // nothing else is stored
	}
	secret, err := pbkdf2.Key(sha256.New, token, []byte(salt), rounds, 32)
	if err != nil {
		panic("session: the length of the key is right: " + err.Error())
	}
	k := newKey(secret)
	derived.Store(hash, k)
	return k
}

func randomSecret() []byte {
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // never fails
	return secret
}

func newKey(secret []byte) *key {
	block, err := aes.NewCipher(secret)
	if err != nil {
		panic("session: the length of the key is right: " + err.Error())
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("session: the size of blocks is right: " + err.Error())
	}
	name := sha256.Sum256(append([]byte("name of "), secret...))
	return &key{AEAD: aead, id: hex.EncodeToString(name[:4])}
}

// Seal returns a text that Open opens for the same purpose before until. It consists of letters, digits, - and _.
func (s *Sealer) Seal(purpose string, text []byte, until time.Time) string {
	plain := binary.BigEndian.AppendUint64(nil, uint64(until.Unix())) //nolint:gosec // times after 1970
	return base64.RawURLEncoding.EncodeToString(s.keys()[0].Seal(nil, nil, append(plain, text...), []byte(purpose)))
}

// Open returns what was sealed; false if it was not sealed here for the purpose, or not for so long, or End was called
// with it.
func (s *Sealer) Open(purpose, sealed string, now time.Time) ([]byte, bool) {
	text, n, until := s.open(purpose, sealed)
	if now.Unix() >= until {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ended := s.ended[n]
	return text, !ended
}

// End makes this process open a text and its copies no more.
func (s *Sealer) End(purpose, sealed string, now time.Time) {
	_, n, until := s.open(purpose, sealed)
	if now.Unix() >= until {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ended) >= maxEnded {
		maps.DeleteFunc(s.ended, func(_ nonce, until int64) bool { return now.Unix() >= until })
	}
	if len(s.ended) >= maxEnded {
		delete(s.ended, slices.MinFunc(slices.Collect(maps.Keys(s.ended)),
			func(a, b nonce) int { return cmp.Compare(s.ended[a], s.ended[b]) }))
	}
	s.ended[n] = until
}

// open returns what was sealed, its nonce, and the Unix time until which it opens; 0 if it was not sealed here for the
// purpose.
func (s *Sealer) open(purpose, sealed string) (text []byte, n nonce, until int64) {
	data, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil || len(data) < len(n) {
		return nil, n, 0
	}
	copy(n[:], data)
	for _, key := range s.keys() {
		plain, err := key.Open(nil, nil, data, []byte(purpose))
		if err != nil || len(plain) < 8 {
			continue
		}
		return plain[8:], n, int64(binary.BigEndian.Uint64(plain))
	}
	return nil, n, 0
}
