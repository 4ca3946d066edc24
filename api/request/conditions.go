package request

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// IfMatch returns the revision in If-Match; 0 when any matches.
func IfMatch(r *http.Request) (int64, error) {
	tags := r.Header.Values("If-Match")
	if len(tags) == 0 || isAny(tags) {
		return 0, nil
	}
	revision, ok := revisionIn(tags)
	if !ok || revision == 0 {
		return 0, invalidIfMatch()
	}
	return revision, nil
}

// IfRevision returns the revision of the settings that a change requires, as store.CheckCondition takes it: that in
// If-Match, or store.MustNotExist for If-None-Match: *. Revision 0 means that no settings are stored.
func IfRevision(r *http.Request) (int64, error) {
	match, noneMatch := r.Header.Values("If-Match"), r.Header.Values("If-None-Match")
	switch {
	case len(match) > 0 && len(noneMatch) > 0:
		return 0, response.NewProblem(response.InvalidRequest, "If-Match cannot be combined with If-None-Match")
	case len(noneMatch) > 0:
		if !isAny(noneMatch) {
			return 0, response.NewProblem(response.InvalidRequest,
				"If-None-Match of a change must be *, which requires that no settings are stored")
		}
		return store.MustNotExist, nil
	case len(match) == 0:
		return 0, nil
	case isAny(match):
		return store.MustExist, nil
	}
	revision, ok := revisionIn(match)
	switch {
	case !ok:
		return 0, invalidIfMatch()
	case revision == 0:
		return store.MustNotExist, nil
	}
	return revision, nil
}

// Bodiless reads a change of settings without a body: what path finds in its path, and the revision that it requires.
func Bodiless[T any](r *http.Request, path func(*http.Request) (T, error)) (found T, ifRevision int64, err error) {
	if found, err = path(r); err == nil {
		err = RequireNoBody(r)
	}
	if err == nil {
		ifRevision, err = IfRevision(r)
	}
	return found, ifRevision, err
}

func invalidIfMatch() error {
	return response.NewProblem(response.InvalidRequest,
		`If-Match must be one revision in quotes, as ETag gives it: "3"`)
}

// isAny reports whether a condition is *.
func isAny(values []string) bool { return len(values) == 1 && strings.TrimSpace(values[0]) == "*" }

// revisionIn returns the revision in a condition that is a single entity tag. RFC 9110, 13.1.1 would have a weak one
// never match. But a proxy that compresses answers makes their tags weak, and a revision is as exact with W/ as
// without.
func revisionIn(tags []string) (int64, bool) {
	tag := strings.TrimPrefix(strings.TrimSpace(tags[0]), "W/")
	bare := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	revision, err := strconv.ParseUint(bare, 10, 63)
	return int64(revision), len(tags) == 1 && len(tag) == len(bare)+2 && err == nil
}

// NotModified reports whether If-None-Match of a GET names a revision. It compares weakly, as RFC 9110, 13.1.2
// requires.
func NotModified(r *http.Request, revision int64) (bool, error) {
	values := r.Header.Values("If-None-Match")
	if len(values) == 0 || isAny(values) {
		return len(values) > 0, nil
	}
	found, ok := hasTag(strings.Join(values, ","), ETag(revision))
	if !ok {
		return false, response.NewProblem(response.InvalidRequest,
			`If-None-Match must be *, or a list of revisions in quotes: "3", "4"`)
	}
	return found, nil
}

// hasTag reports whether a list of entity tags, weak or strong, contains a tag. It is not ok unless it is a list.
func hasTag(list, tag string) (found, ok bool) {
	for {
		list = strings.TrimLeft(list, " \t,")
		if list == "" {
			return found, ok
		}
		list = strings.TrimPrefix(list, "W/")
		if list == "" || list[0] != '"' {
			return false, false
		}
		end := strings.IndexByte(list[1:], '"') + 2
		if end < 2 {
			return false, false
		}
		found, ok = found || list[:end] == tag, true
		list = strings.TrimLeft(list[end:], " \t")
		if list != "" && list[0] != ',' {
			return false, false
		}
	}
}

// ETag returns the entity tag of a revision.
func ETag(revision int64) string { return `"` + strconv.FormatInt(revision, 10) + `"` }

// Conditions that handlers evaluate.
var (
	JobConditions      = []string{"If-Match"}
	SettingsConditions = []string{"If-Match", "If-None-Match"}
)

// CheckConditions refuses conditions of a change that its handler does not evaluate. If-Modified-Since applies to GET
// and HEAD only (RFC 9110, 13.1.3).
func CheckConditions(r *http.Request, evaluated []string) error {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if len(r.Header.Values(name)) > 0 && !slices.Contains(evaluated, name) {
			return response.NewProblem(response.InvalidRequest, unsupportedCondition(name))
		}
	}
	return nil
}

func unsupportedCondition(name string) string {
	return name + " is not supported here: changes of a job accept If-Match, changes of topics, lanes and secrets " +
		"also If-None-Match"
}

// CheckEncoding refuses compressed content and names the supported coding (RFC 9110, 12.5.3).
func CheckEncoding(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if value = strings.TrimSpace(value); value != "" && !strings.EqualFold(value, "identity") {
			w.Header().Set("Accept-Encoding", "identity")
			return response.NewProblem(response.UnsupportedMediaType, "the content coding "+strconv.Quote(value)+
				" is not supported: send the content uncompressed, without the header Content-Encoding")
		}
	}
	return nil
}
