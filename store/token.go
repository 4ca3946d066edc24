package store

import "crypto/rand"

// Token identifies one call: 26 random characters. It makes the call repeatable and fences the jobs that it claims.
type Token string

// NewToken returns a random token, with a lease owner that no other token has.
func NewToken() Token { return Token(rand.Text()) }

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
