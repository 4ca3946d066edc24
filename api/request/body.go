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

	"github.com/ringback/ringback/api/response"
)

const (
	// Timeout bounds the work on one request, whatever the store does.
	Timeout = 30 * time.Second
	// ReadTimeout bounds the arrival of a request.
	ReadTimeout = time.Minute
)

// slack is what a request may hold beside a body: everything else that a job can say, escaped as wastefully as JSON
// allows: three times headers (its own, and those of two callbacks), URLs, labels.
const slack = 768 << 10

// maxBatch bounds a batch, in bytes and in jobs.
const (
	MaxBatchBytes = 16 << 20
	MaxBatchJobs  = 10_000
)

// growth is how many bytes of JSON a byte of a body may take: six as an escape (\u001b). Base64 takes four for three,
// and has room for escaped signs too; only base64 that is escaped almost throughout, as no encoder does, does not fit.
const growth = 6

// Limit is the largest request, in bytes, that may register or change one job: every body of maxBody bytes fits, however
// its text is escaped.
func Limit(maxBody int64) int64 { return growth*maxBody + slack }

// ReadJSON reads the request's JSON, at most limit bytes of it.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := CheckContentType(r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	held := Metered(r)
	if held != nil && r.ContentLength > SmallBody && !held.budget.fits(r.ContentLength) {
		return nil, tooManyBytes()
	}
	text, err := readBody(w, r, held, limit)
	if err != nil {
		return nil, err
	}
	return SkipSpace(text), CheckJSON(text, 1)
}

// readBody reads a body into memory that is reserved as the body arrives.
func readBody(w http.ResponseWriter, r *http.Request, held *MeteredBody, limit int64) ([]byte, error) {
	room := max(min(r.ContentLength+1, limit, firstRoom), 512)
	if !held.Reserve(room) {
		return nil, tooManyBytes()
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
			return nil, response.NewProblem(http.StatusRequestTimeout, fmt.Sprintf(
				"request timeout: send the request within %v, and each part of it within %v", ReadTimeout, StallTimeout))
		}
		if err != nil {
			return nil, readError(err)
		}
		if len(text) == cap(text) {
			// Twice as much, and all that is announced when a quarter of it is there.
			more := min(int64(len(text)), limit+1-int64(len(text)))
			if rest := r.ContentLength + 1 - int64(len(text)); rest > 0 && rest <= 3*more {
				more = rest
			}
			if !held.Reserve(more) {
				return nil, tooManyBytes()
			}
			text = append(make([]byte, 0, len(text)+int(more)), text...)
		}
		if len(text) >= SmallBody {
			until := time.Now().Add(StallTimeout)
			if last := began.Add(ReadTimeout); until.After(last) {
				until = last
			}
			_ = rc.SetReadDeadline(until) // what has no deadlines is no connection
		}
	}
	if len(text) >= SmallBody {
		_ = rc.SetReadDeadline(time.Time{}) // else the work on a request that arrived late would be cut short
	}
	return text, nil
}

// ReadOptionalJSON is ReadJSON for requests that need no body: nil when there is none.
func ReadOptionalJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	unsaid := r.ContentLength < 0 && r.Header.Get("Content-Type") == ""
	if r.ContentLength == 0 || unsaid && RequireNoBody(r) == nil {
		return nil, nil
	}
	return ReadJSON(w, r, limit)
}

// CheckContentType refuses content that is not declared as JSON; a web form, which any page may send, is not.
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
		return response.NewProblem(http.StatusUnsupportedMediaType,
			"NDJSON is taken at POST /v1/batch alone: send JSON, and the header Content-Type: application/json")
	default:
		return response.NewProblem(http.StatusUnsupportedMediaType, "send JSON, and the header Content-Type: application/json")
	}
}

func tooLarge(limit int64) *response.Problem {
	return response.NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request must be at most %d B", limit))
}

// readError is the problem of a request that could not be read to its end.
func readError(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	return response.NewProblem(http.StatusBadRequest, "request body truncated")
}

// RequireNoBody refuses a body where none is taken, rather than ignoring what it says; an empty object says nothing.
func RequireNoBody(r *http.Request) error {
	var some [16]byte
	n, err := io.ReadFull(r.Body, some[:])
	switch text := bytes.TrimSpace(some[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return readError(err)
	case err == nil, len(text) > 0 && string(text) != "{}":
		return response.NewProblem(http.StatusUnprocessableEntity, "the request must have no body")
	}
	return nil
}

// ContentTypeNDJSON is the type of a stream and of its answer.
const ContentTypeNDJSON = "application/x-ndjson"

// IsNDJSON reports whether a request's jobs come as NDJSON.
func IsNDJSON(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == ContentTypeNDJSON
}
