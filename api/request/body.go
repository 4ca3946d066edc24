package request

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/internal/utf8text"
	"github.com/ringback/ringback/job"
)

// slack bounds the bytes of a request without the body: headers (its own and those of two callbacks), URLs and labels,
// with every byte escaped.
const slack = 768 << 10

// growth is the bytes of JSON per byte of a body: six for an escape such as \u001b. Base64 takes four for three. Only
// base64 whose characters are nearly all escaped, which no encoder produces, does not fit.
const growth = 6

// Limit returns the bound in bytes of a request that registers or edits one job. Every body of maxBody bytes fits,
// however it is escaped.
func Limit(maxBody int64) int64 { return growth*maxBody + slack }

// ReadJSON reads a request's JSON body of at most limit bytes.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := CheckContentType(r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	reserved := limits.Metered(r)
	if r.ContentLength > capacity.SmallBody {
		if err := reserved.CheckRoom(r.ContentLength); err != nil {
			return nil, unread(err)
		}
	}
	text, err := readBody(w, r, reserved, limit)
	if err != nil {
		return nil, err
	}
	text, _ = utf8text.Trim(text) // CheckJSON refuses UTF-16
	return SkipSpace(text), CheckJSON(text, 1)
}

// readBody reads a body into memory that is reserved as bytes arrive.
func readBody(w http.ResponseWriter, r *http.Request, reserved *limits.MeteredBody, limit int64) ([]byte, error) {
	room := max(min(r.ContentLength+1, limit, limits.FirstRoom), 512)
	if err := reserved.Reserve(room); err != nil {
		return nil, unread(err)
	}
	body := http.MaxBytesReader(w, r.Body, limit)
	text := make([]byte, 0, room)
	began := time.Now()
	rc := http.NewResponseController(w)
	for {
		n, err := body.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil, response.NewProblem(response.RequestTimeout, fmt.Sprintf(
				"request timeout: send the request within %v, and each part of it within %v",
				limits.ReadTimeout, limits.StallTimeout))
		}
		if err != nil {
			return nil, readError(err)
		}
		if len(text) == cap(text) {
			// Double the buffer. Grow to the announced length once a quarter of it has arrived.
			more := min(int64(len(text)), limit+1-int64(len(text)))
			if rest := r.ContentLength + 1 - int64(len(text)); rest > 0 && rest <= 3*more {
				more = rest
			}
			if err := reserved.Reserve(more); err != nil {
				return nil, unread(err)
			}
			text = append(make([]byte, 0, len(text)+int(more)), text...)
		}
		if len(text) >= capacity.SmallBody {
			until := time.Now().Add(limits.StallTimeout)
			if last := began.Add(limits.ReadTimeout); until.After(last) {
				until = last
			}
			_ = rc.SetReadDeadline(until) // an error means that there is no connection
		}
	}
	if len(text) >= capacity.SmallBody {
		_ = rc.SetReadDeadline(time.Time{}) // else a request that arrived late had no time left
	}
	return text, nil
}

// ReadOptionalJSON is ReadJSON for requests whose body is optional. It returns nil when there is none.
func ReadOptionalJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	undeclared := r.ContentLength < 0 && r.Header.Get("Content-Type") == ""
	if r.ContentLength == 0 || undeclared && RequireNoBody(r) == nil {
		return nil, nil
	}
	return ReadJSON(w, r, limit)
}

// CheckContentType refuses content that is not declared as JSON, web forms of any origin included.
func CheckContentType(r *http.Request) error {
	declared := r.Header.Get("Content-Type")
	if declared == "application/json" {
		return nil
	}
	kind, _, err := mime.ParseMediaType(declared)
	switch {
	case err == nil && kind == "application/json",
		err == nil && kind == "application/merge-patch+json" && r.Method == http.MethodPatch:
		return nil
	case err == nil && kind == ContentTypeNDJSON:
		return response.NewProblem(response.UnsupportedMediaType,
			"only POST /v1/batch accepts NDJSON: send JSON, and the header Content-Type: application/json")
	default:
		return response.NewProblem(response.UnsupportedMediaType, "send JSON, and the header Content-Type: "+
			"application/json")
	}
}

func tooLarge(limit int64) *response.Problem {
	return response.NewProblem(response.TooLarge, fmt.Sprintf("the request must be at most %d B", limit))
}

// unread returns the problem of a request that was not read to its end.
func unread(err error) *response.Problem {
	p := response.FromError(err)
	p.Unread = true
	return p
}

// readError returns the problem of a request that could not be read to its end.
func readError(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	return response.NewProblem(response.InvalidRequest, "request body truncated")
}

// RequireNoBody refuses a body other than an empty object.
func RequireNoBody(r *http.Request) error {
	var some [16]byte
	n, err := io.ReadFull(r.Body, some[:])
	text, _ := utf8text.Trim(some[:n])
	switch text = bytes.TrimSpace(text); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return readError(err)
	case err == nil, len(text) > 0 && string(text) != "{}":
		return response.Invalid(job.FieldError{Detail: "must be empty: this path takes no body"})
	}
	return nil
}

// ContentTypeNDJSON is the media type of a stream and of its answer.
const ContentTypeNDJSON = "application/x-ndjson"

// IsNDJSON reports whether a request is a stream of jobs.
func IsNDJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == ContentTypeNDJSON
}
