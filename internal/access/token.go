package access

import (
	"errors"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
)

// MaxName bounds the name of a token, in bytes.
const MaxName = 64

// Token is a stored token. Its JSON form is the value of its document. The secret is not stored.
type Token struct {
	ID        string `json:"-" api:"id,always"` // the name of the document
	Name      string `json:"name" api:"name,always"`
	Role      Role   `json:"role" api:"role,always"`
	Namespace string `json:"namespace" api:"namespace,always"`
	Topics    Topics `json:"topics,omitempty" api:"topics"`
	// Bodies is whether it may read the bodies of jobs and of receivers' responses, and headers that may be secrets.
	Bodies    bool      `json:"bodies" api:"bodies,always"`
	Hash      Hash      `json:"hash"`
	CreatedAt time.Time `json:"created_at" api:"created_at,always"`
	// CreatedBy is the name of the token that created it. Null: no token was needed.
	CreatedBy string `json:"created_by,omitempty" api:"created_by"`
	// CreatedByID is the id of the token that created it. Null: a root token, or none.
	CreatedByID string `json:"created_by_id,omitempty" api:"created_by_id"`
	// ExpiresAt is when it expires. Null: never.
	ExpiresAt time.Time `json:"expires_at,omitzero" api:"expires_at"`
	// LastUsedAt is the hour of its last use. Null: it was not used.
	//
	// It is stored apart.
	LastUsedAt time.Time `json:"-" api:"last_used_at"`
}

// Principal returns who uses the token.
func (t *Token) Principal() *Principal {
	return &Principal{
		TokenID: t.ID, Actor: t.Name, Role: t.Role, Namespace: t.Namespace, Topics: t.Topics,
		Bodies: t.Bodies, ExpiresAt: t.ExpiresAt,
	}
}

// IsName reports whether a text can be the name of a token: 1 to 64 of A-Z a-z 0-9 . _ and -, and not Root in any case.
func IsName(text string) bool { return job.IsTopic(text) && !strings.EqualFold(text, Root) }

// ErrUnknown: there is no such token, or it was revoked.
var ErrUnknown = errors.New("no such token")

// ExpiredError is returned for a token that has expired.
type ExpiredError struct{ At time.Time }

func (e *ExpiredError) Error() string {
	return "the token expired at " + e.At.UTC().Format(time.RFC3339)
}
