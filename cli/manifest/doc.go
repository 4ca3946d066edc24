// Package manifest compares files that describe topics, lanes and schedules with those of a server, and makes the
// server's be as the files say. The members of a resource are those of the API. Their rules and defaults are known to
// the server only: a dry run of each resource that differs returns its faults, or the form in which it would be stored.
package manifest

import (
	"cmp"
	"fmt"
	"net/url"
	"strings"

	"github.com/ringback/ringback/console/words"
)

// Kind is a kind of resources.
type Kind string

// The kinds, in the order in which they are written. They are removed in the reverse order. A topic that is removed
// takes its lanes along.
const (
	Topic    Kind = "topic"
	Lane     Kind = "lane"
	Schedule Kind = "schedule"
)

// kinds are all kinds in order.
var kinds = []Kind{Topic, Lane, Schedule}

// ID names a resource.
type ID struct {
	Kind  Kind   `json:"kind"`
	Topic string `json:"topic,omitzero"` // of a lane
	Name  string `json:"name"`
}

// String returns the name as people read it.
func (id ID) String() string {
	if id.Kind == Lane {
		return fmt.Sprintf("lane %s of %s", id.Name, id.Topic)
	}
	return string(id.Kind) + " " + id.Name
}

// path returns the path of the resource in the API.
func (id ID) path() string {
	name := url.PathEscape(id.Name)
	switch id.Kind {
	case Lane:
		return "/v1/topics/" + url.PathEscape(id.Topic) + "/lanes/" + name
	case Schedule:
		return "/v1/schedules/" + name
	default:
		return "/v1/topics/" + name
	}
}

// compare orders resources by kind and name.
func (id ID) compare(other ID) int {
	rank := func(k Kind) int { return strings.Index("tls", string(k[0])) }
	return cmp.Or(cmp.Compare(rank(id.Kind), rank(other.Kind)), cmp.Compare(id.Topic, other.Topic),
		cmp.Compare(id.Name, other.Name))
}

// Reason says what is wrong.
type Reason int

// The reasons, from the first that is found.
const (
	Invalid  Reason = iota // the files cannot be read
	Refused                // the server does not accept what they say
	Conflict               // other files manage a resource
)

// Error has all faults of files.
type Error struct {
	Reason Reason
	Faults []string // each with its file and line
}

// Error returns a line for each fault.
func (e *Error) Error() string {
	return strings.Join(append([]string{fmt.Sprintf("the files have %s; nothing is changed",
		words.Count(int64(len(e.Faults)), "fault"))}, e.Faults...), "\n")
}
