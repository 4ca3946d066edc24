package request

import (
	"encoding/base64"
	"strings"

	"github.com/ringback/ringback/job"
)

// CursorKind is the kind of names of a list's items. A cursor continues only lists of its kind.
type CursorKind string

// Kinds of cursors.
const (
	TopicCursor     CursorKind = "topic"
	LaneCursor      CursorKind = "lane"
	SecretCursor    CursorKind = "secret"
	TokenCursor     CursorKind = "token"
	NamespaceCursor CursorKind = "namespace"
)

// Encode returns the cursor of the items after a name.
func (k CursorKind) Encode(name string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(string(k) + "/" + name))
}

// decode returns the name in a cursor.
func (k CursorKind) decode(cursor string) (name string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return "", false
	}
	kind, name, _ := strings.Cut(string(text), "/")
	valid := job.IsLane
	if k == TopicCursor {
		valid = job.IsTopic
	}
	return name, kind == string(k) && valid(name) && k.Encode(name) == cursor // the decoder skips line breaks
}

// Cursor returns the name in the parameter cursor; empty when there is none.
func (q *Query) Cursor(kind CursorKind) string {
	cursor := q.Get("cursor")
	if cursor == "" {
		return ""
	}
	name, ok := kind.decode(cursor)
	if !ok {
		q.AddError("?cursor", "must be the next_cursor of an earlier answer")
	}
	return name
}
