package store

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strconv"
	"strings"
)

// Token identifies one call: 26 characters. It makes the call repeatable and fences the jobs that it claims. Most are
// random, and only the process that made the call can repeat it.
type Token string

// NewToken returns a random token, with a lease owner that no other token has.
func NewToken() Token { return Token(rand.Text()) }

// sharedPrefix begins shared tokens. No random token has it.
const sharedPrefix = "="

// SharedToken returns the token of a call that any process can repeat: it is made of a hash of what the call says. The
// hash is of 16 bytes or more.
func SharedToken(hash []byte) Token {
	return Token(sharedPrefix + base32.StdEncoding.EncodeToString(hash))[:len(NewToken())]
}

// IsShared reports whether any process can repeat the call, also after a restart.
func (t Token) IsShared() bool { return strings.HasPrefix(string(t), sharedPrefix) }

// Item returns the token of a call that is made for item i of this one alone, always the same. It is shared if this one
// is.
func (t Token) Item(i int) Token {
	hash := sha256.Sum256(strconv.AppendInt([]byte(t), int64(i), 10))
	item := SharedToken(hash[:])
	if !t.IsShared() {
		item = Token(t.Owner()) + item[1:][:len(item)-LeaseOwnerLength]
	}
	return item
}

// LeaseOwner identifies a process that claims jobs: 10 random characters. Its tokens begin with it.
type LeaseOwner string

// LeaseOwnerLength leaves a token 80 random bits.
const LeaseOwnerLength = 10

// NewLeaseOwner returns a random lease owner.
func NewLeaseOwner() LeaseOwner { return NewToken().Owner() }

// NewToken returns a random token of the owner.
func (o LeaseOwner) NewToken() Token { return Token(o) + Token(rand.Text()[len(o):]) }

// Owner returns the lease owner of a token; empty for the empty token.
func (t Token) Owner() LeaseOwner { return LeaseOwner(t[:min(len(t), LeaseOwnerLength)]) }
