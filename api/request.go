package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
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

// requestLimit is the largest request that may register or change one job: every body of maxBody bytes fits, however
// its text is escaped.
func (a *api) requestLimit() int64 { return growth*a.maxBody + slack }

// ReadJSON reads the request's JSON, at most limit bytes of it.
func ReadJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkType(r); err != nil {
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
	return skipSpace(text), CheckJSON(text, 1)
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
			return nil, NewProblem(http.StatusRequestTimeout, fmt.Sprintf(
				"the request did not arrive in time: within %v, and never more than %v without a byte of it", ReadTimeout, StallTimeout))
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

// checkType refuses content that is not declared as JSON; a web form, which any page may send, is not.
func checkType(r *http.Request) error {
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
		return NewProblem(http.StatusUnsupportedMediaType,
			"NDJSON is taken at POST /v1/batch alone: send JSON, and the header Content-Type: application/json")
	default:
		return NewProblem(http.StatusUnsupportedMediaType, "send JSON, and the header Content-Type: application/json")
	}
}

func tooLarge(limit int64) *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request must be at most %d B", limit))
}

// readError is the problem of a request that could not be read to its end.
func readError(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	return NewProblem(http.StatusBadRequest, "the request ended before its end")
}

// RequireNoBody refuses a body where none is taken, rather than ignoring what it says; an empty object says nothing.
func RequireNoBody(r *http.Request) error {
	var some [16]byte
	n, err := io.ReadFull(r.Body, some[:])
	switch text := bytes.TrimSpace(some[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return readError(err)
	case err == nil, len(text) > 0 && string(text) != "{}":
		return NewProblem(http.StatusUnprocessableEntity, "this takes no body")
	}
	return nil
}

// PathJob names the job of the path. No job has an id outside the alphabet.
func PathJob(r *http.Request) (job.Ref, error) {
	id := r.PathValue("id")
	if !job.IsID(id) {
		return job.Ref{}, NewProblem(http.StatusNotFound,
			"no job has such an id: ids are 1 to 64 of A-Z a-z 0-9 _ : and - (96 where they begin with rb:)")
	}
	return job.Ref{Namespace: job.DefaultNamespace, ID: id}, nil
}

// PathTopic names the topic of the path.
func PathTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if !job.IsTopic(name) {
		return "", NewProblem(http.StatusNotFound,
			"no topic has such a name: names are 1 to 64 of A-Z a-z 0-9 . _ and -")
	}
	return name, nil
}

// PathNewTopic names the topic of a path that may begin one. That of callbacks has a policy like any.
func PathNewTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if faults := nameErrors(name, ""); len(faults) > 0 {
		return "", Invalid(faults...)
	}
	return name, nil
}

// PathNewLane names the lane of a path that may begin one.
func PathNewLane(r *http.Request) (job.Queue, error) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: r.PathValue("topic"), Lane: r.PathValue("lane")}
	if faults := nameErrors(q.Topic, q.Lane); len(faults) > 0 {
		return job.Queue{}, Invalid(faults...)
	}
	return q, nil
}

// nameErrors are those of names that something may begin under.
func nameErrors(topic, lane string) []job.FieldError {
	if topic == job.CallbackTopic {
		topic = ""
	}
	return job.Validate(job.New{Spec: job.Spec{Queue: job.Queue{Topic: topic, Lane: lane}}}, time.Time{})
}

// PathLane names the lane of the path.
func PathLane(r *http.Request) (job.Queue, error) {
	topic, err := PathTopic(r)
	if err != nil {
		return job.Queue{}, err
	}
	lane := r.PathValue("lane")
	if !job.IsLane(lane) {
		return job.Queue{}, NewProblem(http.StatusNotFound,
			"no lane has such a name: names are 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}, nil
}

// IfMatch reads the version that a change is made for; zero: whichever.
func IfMatch(r *http.Request) (int64, error) {
	tags := r.Header.Values("If-Match")
	if len(tags) == 0 || len(tags) == 1 && strings.TrimSpace(tags[0]) == "*" {
		return 0, nil
	}
	tag := strings.TrimSpace(tags[0])
	bare := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	version, err := strconv.ParseInt(bare, 10, 64)
	if len(tags) > 1 || len(tag) != len(bare)+2 || err != nil || version < 1 {
		return 0, NewProblem(http.StatusBadRequest, `If-Match must be one version in quotes, as ETag gives it: "3"`)
	}
	return version, nil
}

// CheckConditions refuses conditions that a change would not evaluate, rather than changing what they were to protect.
// If-Modified-Since is for GET and HEAD alone (RFC 9110, 13.1.3).
func CheckConditions(r *http.Request, versioned bool) error {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if len(r.Header.Values(name)) > 0 && !(versioned && name == "If-Match") {
			return NewProblem(http.StatusBadRequest, unsupportedCondition(name))
		}
	}
	return nil
}

// RequireNoIfMatch refuses an If-Match that names a version where versions are not compared.
func RequireNoIfMatch(r *http.Request) error {
	if version, err := IfMatch(r); err != nil || version == 0 {
		return err
	}
	return NewProblem(http.StatusBadRequest, unsupportedCondition("If-Match"))
}

func unsupportedCondition(name string) string {
	return name + " is not supported here: only edits and runs of a job take a condition, and that is If-Match"
}

// CheckEncoding refuses compressed content, and says what is taken instead (RFC 9110, 12.5.3).
func CheckEncoding(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if value = strings.TrimSpace(value); value != "" && !strings.EqualFold(value, "identity") {
			w.Header().Set("Accept-Encoding", "identity")
			return NewProblem(http.StatusUnsupportedMediaType, "the content coding "+strconv.Quote(value)+
				" is not supported: send the content as it is, without the header Content-Encoding")
		}
	}
	return nil
}

// A Query reads the parameters of a request's address, and gathers what is wrong with them.
type Query struct {
	decoder
	values url.Values
}

// NewQuery refuses parameters other than the known ones, and those that stand twice.
func NewQuery(r *http.Request, known ...string) *Query {
	q := new(Query)
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.AddError("?", "must be parameters as in ?topic=a&state=dead, with % escapes")
	}
	for _, name := range sortedKeys(q.values) {
		switch {
		case !slices.Contains(known, name):
			q.AddError(QueryField(name), "is not a parameter of this path")
		case len(q.values[name]) > 1:
			q.AddError(QueryField(name), "must stand once")
		}
	}
	return q
}

// QueryField is how a fault names a parameter.
func QueryField(name string) string { return "?" + strings.TrimPrefix(job.JSONPointer("", name), "/") }

// Get returns a parameter's value; empty when there is none.
func (q *Query) Get(name string) string { return q.values.Get(name) }

// Limit reads how many items are asked for.
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

// time reads a time.
func (q *Query) time(name string) time.Time {
	text := q.Get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.AddError(QueryField(name), "must be a time as in RFC 3339, such as 2030-01-31T08:00:00Z (a + is written %2B)")
	}
	return t
}

// status reads an HTTP status; 0 when there is none.
func (q *Query) status(name string) int {
	text := q.Get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 {
		return -1 // Buffer of range for whoever checks
	}
	return n
}

// Err is what is wrong with the parameters.
func (q *Query) Err() error {
	if p := q.problem(nil); p != nil {
		return p
	}
	return nil
}
