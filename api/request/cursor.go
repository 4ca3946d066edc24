// This part of the package encodes the positions at which lists go on, as texts that clients send back unchanged.

package request

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/ringback/ringback/job"
)

// ErrInvalidCursor is the error of a text that is no cursor, or one of another kind.
var ErrInvalidCursor = errors.New("must be the next_cursor of an earlier answer")

// CursorKind is the kind of names of a list's items. A cursor continues only lists of its kind.
type CursorKind string

// The kinds.
const (
	Topics     CursorKind = "topic"
	Lanes      CursorKind = "lane"
	Secrets    CursorKind = "secret"
	Tokens     CursorKind = "token"
	Namespaces CursorKind = "namespace"
	Schedules  CursorKind = "schedule"
)

// Encode returns the cursor of the items after a name.
func (k CursorKind) Encode(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(k) + "/" + name))
}

// Decode returns the name in a cursor. ErrInvalidCursor.
func (k CursorKind) Decode(cursor string) (name string, err error) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", ErrInvalidCursor
	}
	kind, name, _ := strings.Cut(string(text), "/")
	valid := job.IsLane
	if k == Topics {
		valid = job.IsTopic
	}
	if kind != string(k) || !valid(name) || k.Encode(name) != cursor { // base64 skips line breaks
		return "", ErrInvalidCursor
	}
	return name, nil
}
