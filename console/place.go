package console

import (
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/ringback/ringback/job"
)

// place is where in the console a request's path is.
type place struct {
	namespace string // empty: that of the token
	path      string // below the namespace, with a slash before it; not escaped
	escaped   string
	base      string // relative path of the namespace's first page, without a slash at the end
	root      string // that of the console
}

// placeKey is the key of the place in a request's context.
type placeKey struct{}

// errNoPath is the error of a path that cannot be in the console.
var errNoPath = errors.New("There is no such page.") //nolint:revive,staticcheck // readers see it

// parsePlace divides an escaped path below the console's, with its slash: /@shop/jobs/1.
func parsePlace(rest string) (place, error) {
	p := place{escaped: rest, base: relative(rest), root: relative(rest)}
	// http.ServeMux would lead elsewhere, by an absolute link
	if path.Clean(rest) != strings.TrimSuffix(rest, "/") && rest != "/" {
		return p, errNoPath
	}
	if strings.HasPrefix(rest, "/@") {
		name, below, ok := strings.Cut(rest[len("/@"):], "/")
		namespace, err := url.PathUnescape(name)
		if err != nil || !ok || !job.IsNamespace(namespace) {
			return p, errNoPath
		}
		p.namespace, p.escaped = namespace, "/"+below
		p.base = relative(p.escaped)
	}
	var err error
	if p.path, err = url.PathUnescape(p.escaped); err != nil || !utf8.ValidString(p.path) {
		return p, errNoPath
	}
	return p, nil
}

// relative returns the relative path from a page to the folder that its path, /a/b, begins in.
func relative(path string) string {
	up := strings.Count(path, "/") - 1
	if up <= 0 {
		return "."
	}
	return strings.TrimSuffix(strings.Repeat("../", up), "/")
}

// placeOf returns the place of a request.
func placeOf(r *http.Request) place {
	p, _ := r.Context().Value(placeKey{}).(place)
	return p
}

// streamParameter is the query parameter that asks for the stream of a page's live blocks.
const streamParameter = "live"

// isStream reports whether a request asks for the live blocks of a page.
func isStream(r *http.Request) bool { return r.URL.Query().Get(streamParameter) == "1" }

// here returns a request's path below the namespace's first page, with its query.
func (p place) here(r *http.Request) string {
	to := strings.TrimPrefix(p.escaped, "/")
	q := r.URL.Query()
	q.Del(streamParameter)
	if len(q) > 0 {
		to += "?" + q.Encode()
	}
	return to
}
