package store

import "crypto/rand"

// Token identifies one call: 26 random characters. It makes the call repeatable and fences the jobs that it claims.
type Token string

// NewToken returns a random token.
func NewToken() Token { return Token(rand.Text()) }
