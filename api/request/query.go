package request

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
)

// Sizes of lists: the default for jobs, and the maximum for all.
const (
	DefaultListLimit = 50
	MaxListLimit     = 500
)

// A Query reads the parameters of a request and collects their errors.
type Query struct {
	decoder
	values    url.Values
	namespace string
}

// repeatable are the parameters that may be given several times.
var repeatable = []string{"state", "label"}

// parametersKey is the key of a request's known parameters in its context.
type parametersKey struct{}

// WithParameters returns the request with the names of its parameters, for NewQuery.
func WithParameters(r *http.Request, names []string) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), parametersKey{}, names))
}

// NewQuery parses the parameters. It refuses those that WithParameters did not name, and those repeated that are not
// repeatable.
func NewQuery(r *http.Request) *Query {
	known, _ := r.Context().Value(parametersKey{}).([]string)
	q := &Query{namespace: namespaceOf(r)}
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.AddError("?", "must be parameters as in ?topic=a&state=dead, with % escapes")
	}
	for _, name := range slices.Sorted(maps.Keys(q.values)) {
		switch {
		case !slices.Contains(known, name):
			q.AddError(QueryField(name), "is not a parameter of this path")
		case len(q.values[name]) > 1 && !slices.Contains(repeatable, name):
			q.AddError(QueryField(name), "must be given once")
		}
	}
	return q
}

// QueryField returns the name of a parameter in errors.
func QueryField(name string) string { return "?" + strings.TrimPrefix(job.JSONPointer("", name), "/") }

// Get returns a parameter's value; empty when there is none.
func (q *Query) Get(name string) string { return q.values.Get(name) }

// Limit returns the parameter limit, or the default.
func (q *Query) Limit(standard int) int {
	text := q.Get("limit")
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > MaxListLimit {
		q.AddError("?limit", fmt.Sprintf("must be 1 to %d", MaxListLimit))
		return standard
	}
	return n
}

// Cursor returns the name in the parameter cursor; empty when there is none.
func (q *Query) Cursor(kind CursorKind) string {
	text := q.Get("cursor")
	if text == "" {
		return ""
	}
	name, err := kind.Decode(text)
	if err != nil {
		q.AddError("?cursor", err.Error())
	}
	return name
}

// Lane returns the parameter lane; empty when there is none.
func (q *Query) Lane() string {
	lane := q.Get("lane")
	if lane != "" && !job.IsLane(lane) {
		q.AddError("?lane", "must be the name of a lane: 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	return lane
}

// Bool returns a boolean, or the default.
func (q *Query) Bool(name string, standard bool) bool {
	switch q.Get(name) {
	case "":
		return standard
	case "true":
		return true
	case "false":
		return false
	}
	q.AddError(QueryField(name), "must be true or false")
	return standard
}

// DryRun returns the parameter dry_run.
func DryRun(r *http.Request) (bool, error) {
	q := NewQuery(r)
	dry := q.Bool("dry_run", false)
	return dry, q.Err()
}

// time returns a time; zero when there is none.
func (q *Query) time(name string) time.Time {
	text := q.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, ok := parseTime(text)
	if !ok {
		q.AddError(QueryField(name), timeRule+" (a + is written %2B)")
	}
	return t
}

// status returns an HTTP status; 0 when there is none.
func (q *Query) status(name string) int {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 {
		return -1 // out of range in CheckFilter
	}
	return n
}

// Err returns the problem of the parameters, if any.
func (q *Query) Err() error {
	if p := q.problem(nil); p != nil {
		return p
	}
	return nil
}
