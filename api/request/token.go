package request

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

// MaxTokenBytes bounds a request to create a token or to put a namespace, in bytes.
const MaxTokenBytes = 16 << 10

// Bounds of a token's expires_in.
const (
	minTokenLife = time.Minute
	maxTokenLife = 3653 * 24 * time.Hour
)

// DecodeToken reads a token. Its namespace is empty if it is left out. Expiry counts from now.
func DecodeToken(text []byte, now time.Time) (access.Token, *response.Problem) {
	var d decoder
	var t access.Token
	var bodies *bool
	var life time.Duration
	d.read("", text, "a token", fields{
		"name":       set(&t.Name, d.text),
		"role":       set((*string)(&t.Role), d.text),
		"namespace":  set(&t.Namespace, d.name),
		"topics":     set((*[]string)(&t.Topics), d.texts),
		"bodies":     setPointer(&bodies, d.boolean),
		"expires_in": set(&life, d.positiveDuration),
	})
	if !access.IsName(t.Name) {
		d.addErrorOnce("/name", "must be 1 to 64 of A-Z a-z 0-9 . _ and -, and not "+access.Root)
	}
	if !slices.Contains(access.Roles(), t.Role) {
		d.addErrorOnce("/role", "must be read, publish, operate or admin")
	}
	if t.Namespace != "" && !job.IsNamespace(t.Namespace) {
		d.addErrorOnce("/namespace", job.NamespaceRule)
	}
	switch {
	case t.Topics != nil && len(t.Topics) == 0:
		d.addErrorOnce("/topics", "must have at least one pattern: leave it out for all topics")
	case len(t.Topics) > access.MaxTopics:
		d.addErrorOnce("/topics", fmt.Sprintf("must have at most %d patterns", access.MaxTopics))
	case len(t.Topics) > 0 && t.Role == access.Admin:
		d.addErrorOnce("/topics", "cannot be combined with the role admin, which manages tokens and may use all topics")
	}
	for i, pattern := range t.Topics[:min(len(t.Topics), access.MaxTopics)] {
		if !access.IsTopicPattern(pattern) {
			d.addErrorOnce("/topics/"+strconv.Itoa(i),
				"must be a topic, or the beginning of topics followed by *, such as order.*")
		}
	}
	if life != 0 && (life < minTokenLife || life > maxTokenLife) {
		d.addErrorOnce("/expires_in", "must be 1m to 3653d (ten years)")
	} else if life > 0 {
		t.ExpiresAt = now.Add(life).UTC().Truncate(time.Millisecond)
	}
	t.Bodies = t.Role != access.Read
	if bodies != nil {
		t.Bodies = *bodies
	}
	return t, d.problem(nil)
}
