// Package cursor encodes the positions at which lists go on, as texts that clients send back unchanged.
package cursor

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/ringback/ringback/job"
)

// ErrInvalid is the error of a text that is no cursor, or one of another kind.
var ErrInvalid = errors.New("must be the next_cursor of an earlier answer")

// Kind is the kind of names of a list's items. A cursor continues only lists of its kind.
type Kind string

// The kinds.
const (
	Topics     Kind = "topic"
	Lanes      Kind = "lane"
	Secrets    Kind = "secret"
	Tokens     Kind = "token"
	Namespaces Kind = "namespace"
	Schedules  Kind = "schedule"
)

// Encode returns the cursor of the items after a name.
func (k Kind) Encode(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(k) + "/" + name))
}

// Decode returns the name in a cursor. ErrInvalid.
func (k Kind) Decode(cursor string) (name string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", ErrInvalid
	}
	kind, name, _ := strings.Cut(string(text), "/")
	valid := job.IsLane
	if k == Topics {
		valid = job.IsTopic
	}
	if kind != string(k) || !valid(name) || k.Encode(name) != cursor { // base64 skips line breaks
		return "", ErrInvalid
	}
	return name, nil
}
