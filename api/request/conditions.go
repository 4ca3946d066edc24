package request

import (
	"net/http"
	"strconv"
	"strings"

	"github.com/ringback/ringback/api/response"
)

// IfMatch returns the revision in If-Match; 0 when any matches.
func IfMatch(r *http.Request) (int64, error) {
	tags := r.Header.Values("If-Match")
	if len(tags) == 0 || len(tags) == 1 && strings.TrimSpace(tags[0]) == "*" {
		return 0, nil
	}
	tag := strings.TrimSpace(tags[0])
	bare := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	version, err := strconv.ParseInt(bare, 10, 64)
	if len(tags) > 1 || len(tag) != len(bare)+2 || err != nil || version < 1 {
		return 0, response.NewProblem(response.InvalidRequest, `If-Match must be one revision in quotes, as ETag gives it: "3"`)
	}
	return version, nil
}

// CheckConditions refuses conditions that the request's handler does not evaluate. If-Modified-Since applies to GET and
// HEAD only (RFC 9110, 13.1.3).
func CheckConditions(r *http.Request, versioned bool) error {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if len(r.Header.Values(name)) > 0 && !(versioned && name == "If-Match") {
			return response.NewProblem(response.InvalidRequest, unsupportedCondition(name))
		}
	}
	return nil
}

// RequireNoIfMatch refuses an If-Match with a revision.
func RequireNoIfMatch(r *http.Request) error {
	if version, err := IfMatch(r); err != nil || version == 0 {
		return err
	}
	return response.NewProblem(response.InvalidRequest, unsupportedCondition("If-Match"))
}

func unsupportedCondition(name string) string {
	return name + " is not supported here: only edits and runs of a job accept a condition, which is If-Match"
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
