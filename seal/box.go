package seal

import (
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/chacha20poly1305"
)

// The forms of what is stored.
const (
	plainForm  = "plain:"
	sealedForm = "x1:"
	idLength   = 8
)

// encoding is base64 in the one proper form of every text.
var encoding = base64.RawStdEncoding.Strict()

// Why Open fails.
var (
	// ErrNoKey: the key that sealed a text is not among the Box's. The error names its id.
	ErrNoKey = errors.New("no such key")
	// ErrDamaged: a text is not one that Seal has made for this place under a key of this id.
	ErrDamaged = errors.New("the sealed text is damaged, or was sealed for another place")
)

// A Box seals and opens texts.
type Box struct {
	locks []*lock // the first seals
}

// A lock is one key at work.
type lock struct {
	id   string
	aead cipher.AEAD
}

// New makes a Box of keys, of which the first seals and all open. A Box without keys marks texts as plain and does not
// encrypt them. New panics when a key is the zero Key.
func New(keys ...Key) *Box {
	b := &Box{}
	for _, k := range keys {
		if k.bytes == nil {
			panic("seal: the zero Key cannot seal: keys come from ParseKeys")
		}
		aead, err := chacha20poly1305.NewX((*k.bytes)[:])
		if err != nil {
			panic("seal: a Key of a wrong length: " + err.Error()) // its type allows no other length
		}
		b.locks = append(b.locks, &lock{id: k.ID(), aead: aead})
	}
	return b
}

// Seal gives the text to be stored for a secret. It opens at the same place only: place should name where it is stored,
// in a way that never changes and no other secret has ("default/orders/<secret id>"); it is not kept. Sealing the same
// secret twice gives two texts.
func (b *Box) Seal(plain, place string) string {
	if len(b.locks) == 0 {
		return plainForm + plain
	}
	l := b.locks[0]
	sealed := make([]byte, chacha20poly1305.NonceSizeX, chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	_, _ = rand.Read(sealed) // never fails: crypto/rand ends the process instead
	sealed = l.aead.Seal(sealed, sealed, []byte(plain), bind(place))
	return sealedForm + l.id + ":" + encoding.EncodeToString(sealed)
}

// Open gives back what Seal was given, at the place that Seal was given. It fails with ErrNoKey or ErrDamaged; an error
// tells nothing of keys and secrets. Plain texts open whatever keys the Box has, at any place.
func (b *Box) Open(sealed, place string) (string, error) {
	if plain, ok := strings.CutPrefix(sealed, plainForm); ok {
		return plain, nil
	}
	id, text, ok := split(sealed)
	if !ok {
		return "", ErrDamaged
	}
	// The decoder passes over line breaks.
	raw, err := encoding.DecodeString(text)
	if err != nil || len(raw) < chacha20poly1305.NonceSizeX+chacha20poly1305.Overhead || strings.ContainsAny(text, "\r\n") {
		return "", ErrDamaged
	}
	nonce, ciphertext := raw[:chacha20poly1305.NonceSizeX], raw[chacha20poly1305.NonceSizeX:]
	known := false
	for _, l := range b.locks {
		if l.id != id {
			continue
		}
		known = true // but two keys may share an id
		if plain, err := l.aead.Open(nil, nonce, ciphertext, bind(place)); err == nil {
			return string(plain), nil
		}
	}
	if known {
		return "", ErrDamaged
	}
	return "", fmt.Errorf("%w: this was sealed under the key with the id %s: set %s to that key, behind the one to seal with from now on",
		ErrNoKey, id, Setting)
}

// Encrypts reports whether the Box has a key to seal with.
func (b *Box) Encrypts() bool { return len(b.locks) > 0 }

// Current reports whether a text is as Seal would store it today: sealed under the first key, or plain where there are no
// keys. What is not should be opened and sealed again. It does not try whether the text opens.
func (b *Box) Current(sealed string) bool {
	if strings.HasPrefix(sealed, plainForm) {
		return len(b.locks) == 0
	}
	id, _, ok := split(sealed)
	return ok && len(b.locks) > 0 && b.locks[0].id == id
}

// split takes a sealed text apart.
func split(sealed string) (id, text string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, sealedForm)
	if !ok {
		return "", "", false
	}
	id, text, ok = strings.Cut(rest, ":")
	if !ok || len(id) != idLength {
		return "", "", false
	}
	// An id is shown in errors, so it must be one.
	if _, err := hex.DecodeString(id); err != nil || strings.ToLower(id) != id {
		return "", "", false
	}
	return id, text, true
}

// bind is what is authenticated beside the secret: the form and the place.
func bind(place string) []byte { return []byte("ringback seal " + sealedForm + place) }
