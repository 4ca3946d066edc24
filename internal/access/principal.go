package access

import (
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
)

// Root is the actor of requests with a root token.
const Root = "root"

// Principal is who makes a request, and what it may do. It must not be changed once it is in use.
type Principal struct {
	// TokenID is the id of the token. Null: a root token, or no token.
	TokenID string `api:"token_id"`
	// Actor is the name of the token; `root` of a root token. Null: no token was needed.
	Actor string `api:"actor"` // at most MaxName bytes
	Role  Role   `api:"role,always"`
	// Root is whether it may manage namespaces, and choose one with the header `Ringback-Namespace`.
	Root      bool   `api:"root,always"` // allows the actions that NeedsRoot names
	Namespace string `api:"namespace,always"`
	Topics    Topics `api:"topics"`
	// Bodies is whether it may read the bodies of jobs and of receivers' responses, and headers that may be secrets.
	Bodies bool `api:"bodies,always"`
	// ExpiresAt is when the token expires. Null: never.
	ExpiresAt time.Time `api:"expires_at"`
}

// NewRoot returns the principal of requests with a root token, or with the actor empty of those that need none.
func NewRoot(actor, namespace string) *Principal {
	return &Principal{Actor: actor, Role: Admin, Root: true, Namespace: namespace, Bodies: true}
}

// Allows reports whether the principal's role allows an action.
func (p *Principal) Allows(action Action) bool {
	return p.Role.Allows(action) && (p.Root || !action.NeedsRoot())
}

// Nobody is a principal that is allowed nothing. It must not be changed.
var Nobody = &Principal{}

// Topics are patterns of topics: names, or prefixes with * at the end, such as order.*.
type Topics []string

// MaxTopics bounds the patterns of a token.
const MaxTopics = 64

// Match reports whether a topic matches one of the patterns, or there are no patterns.
func (t Topics) Match(topic string) bool {
	if len(t) == 0 {
		return true
	}
	return slices.ContainsFunc(t, func(pattern string) bool {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			return strings.HasPrefix(topic, prefix)
		}
		return topic == pattern
	})
}

// String returns the patterns, separated by commas.
func (t Topics) String() string { return strings.Join(t, ", ") }

// IsTopicPattern reports whether a text is a pattern of topics: the name of a topic, or a prefix of names with * at its
// end.
func IsTopicPattern(text string) bool {
	prefix, ok := strings.CutSuffix(text, "*")
	return job.IsTopic(prefix) || ok && prefix == ""
}
