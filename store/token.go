package store

import "crypto/rand"

// A Token names one call of one caller: 26 random characters. It makes the call repeatable, and fences what it holds.
type Token string

// NewToken makes a token.
func NewToken() Token { return Token(rand.Text()) }
