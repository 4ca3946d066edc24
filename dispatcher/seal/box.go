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

// Prefixes of stored texts.
const (
	plainForm  = "plain:"
	sealedForm = "x1:"
	idLength   = 8
)

// encoding is canonical base64.
var encoding = base64.RawStdEncoding.Strict()

// Removed is what an export writes in place of a stored text that it leaves out. No Box opens it.
const Removed = "removed"

// The errors of Open.
var (
	// ErrRemoved: the text is Removed.
	ErrRemoved = errors.New("the secret was left out of an export: set it again")
	// ErrNoKey: the Box does not have the key of a text. The error contains the key's id.
	ErrNoKey = errors.New("no such key")
	// ErrDamaged: a text is not a result of Seal for this place and key.
	ErrDamaged = errors.New("the sealed text is damaged or from another place")
)

// Box encrypts and decrypts texts.
type Box struct {
	keys []*keyCipher // the first encrypts
}

// keyCipher is the cipher of one key.
type keyCipher struct {
	id   string
	aead cipher.AEAD
}

// New returns a Box that encrypts with the first key and decrypts with all. A Box without keys does not encrypt and
// marks texts as plain. New panics if a key is the zero Key.
func New(keys ...Key) *Box {
	b := &Box{}
	for _, k := range keys {
		if k.bytes == nil {
			panic("seal: the zero Key: use ParseKeys")
		}
		aead, err := chacha20poly1305.NewX((*k.bytes)[:])
		if err != nil {
			panic("seal: key length: " + err.Error()) // the type fixes the length
		}
		b.keys = append(b.keys, &keyCipher{id: k.ID(), aead: aead})
	}
	return b
}

// Seal returns the text to store for a secret. It can be opened only with the same place, which must be stable and
// unique to the secret ("default/orders/<secret id>") and is not stored. Sealing a secret twice returns different
// texts.
func (b *Box) Seal(plain, place string) string {
	if len(b.keys) == 0 {
		return plainForm + plain
	}
	l := b.keys[0]
	sealed := make([]byte, chacha20poly1305.NonceSizeX,
		chacha20poly1305.NonceSizeX+len(plain)+chacha20poly1305.Overhead)
	_, _ = rand.Read(sealed) // never fails: crypto/rand ends the process instead
	sealed = l.aead.Seal(sealed, sealed, []byte(plain), additionalData(place))
	return sealedForm + l.id + ":" + encoding.EncodeToString(sealed)
}

// Open is the reverse of Seal with the same place. It fails with ErrNoKey, ErrRemoved or ErrDamaged; errors reveal
// nothing about keys and secrets. Plain texts open with any Box and place.
func (b *Box) Open(sealed, place string) (string, error) {
	if plain, ok := strings.CutPrefix(sealed, plainForm); ok {
		return plain, nil
	}
	if sealed == Removed {
		return "", ErrRemoved
	}
	id, text, ok := split(sealed)
	if !ok {
		return "", ErrDamaged
	}
	// The decoder ignores line breaks.
	raw, err := encoding.DecodeString(text)
	if err != nil || len(raw) < chacha20poly1305.NonceSizeX+chacha20poly1305.Overhead ||
		strings.ContainsAny(text, "\r\n") {
		return "", ErrDamaged
	}
	nonce, ciphertext := raw[:chacha20poly1305.NonceSizeX], raw[chacha20poly1305.NonceSizeX:]
	known := false
	for _, l := range b.keys {
		if l.id != id {
			continue
		}
		known = true // but two keys may share an id
		if plain, err := l.aead.Open(nil, nonce, ciphertext, additionalData(place)); err == nil {
			return string(plain), nil
		}
	}
	if known {
		return "", ErrDamaged
	}
	return "", fmt.Errorf("%w: the text is encrypted with the key %s: append that key to %s",
		ErrNoKey, id, Setting)
}

// Encrypts reports whether the Box has a key.
func (b *Box) Encrypts() bool { return len(b.keys) > 0 }

// Current reports whether a text is encrypted with the first key, or plain if the Box has no keys. Other texts should
// be opened and sealed again. It does not check whether the text can be opened.
func (b *Box) Current(sealed string) bool {
	if strings.HasPrefix(sealed, plainForm) {
		return len(b.keys) == 0
	}
	id, _, ok := split(sealed)
	return ok && len(b.keys) > 0 && b.keys[0].id == id
}

// split returns the key id and the base64 of a sealed text.
func split(sealed string) (id, text string, ok bool) {
	rest, ok := strings.CutPrefix(sealed, sealedForm)
	if !ok {
		return "", "", false
	}
	id, text, ok = strings.Cut(rest, ":")
	if !ok || len(id) != idLength {
		return "", "", false
	}
	// The id is shown in errors, so it must be valid.
	if _, err := hex.DecodeString(id); err != nil || strings.ToLower(id) != id {
		return "", "", false
	}
	return id, text, true
}

// additionalData returns the AEAD's additional data: the format and the place.
func additionalData(place string) []byte { return []byte("ringback seal " + sealedForm + place) }
