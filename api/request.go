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
	maxBatchBytes = 16 << 20
	maxBatchJobs  = 10_000
)

// growth is how many bytes of JSON a byte of a body may take: six as an escape (\u001b). Base64 takes four for three,
// and has room for escaped signs too; only base64 that is escaped almost throughout, as no encoder does, does not fit.
const growth = 6

// requestLimit is the largest request that may register or change one job: every body of maxBody bytes fits, however
// its text is escaped.
func (a *api) requestLimit() int64 { return growth*a.maxBody + slack }

// readJSON reads the request's JSON, at most limit bytes of it.
func readJSON(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	if err := checkType(r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, tooLarge(limit)
	}
	held := metered(r)
	if held != nil && r.ContentLength > smallBody && !held.budget.fits(r.ContentLength) {
		return nil, tooBusy()
	}
	text, err := readBody(w, r, held, limit)
	if err != nil {
		return nil, err
	}
	return skipSpace(text), checkJSON(text, 1)
}

// readBody reads a body into memory that is reserved as the body arrives.
func readBody(w http.ResponseWriter, r *http.Request, held *meteredBody, limit int64) ([]byte, error) {
	room := max(min(r.ContentLength+1, limit, firstRoom), 512)
	if !held.take(room) {
		return nil, tooBusy()
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
			return nil, refuse(http.StatusRequestTimeout, fmt.Sprintf(
				"the request did not arrive in time: within %v, and never more than %v without a byte of it", readTimeout, stallTimeout))
		}
		if err != nil {
			return nil, unread(err)
		}
		if len(text) == cap(text) {
			// Twice as much, and all that is announced when a quarter of it is there.
			more := min(int64(len(text)), limit+1-int64(len(text)))
			if rest := r.ContentLength + 1 - int64(len(text)); rest > 0 && rest <= 3*more {
				more = rest
			}
			if !held.take(more) {
				return nil, tooBusy()
			}
			text = append(make([]byte, 0, len(text)+int(more)), text...)
		}
		if len(text) >= smallBody {
			until := time.Now().Add(stallTimeout)
			if last := began.Add(readTimeout); until.After(last) {
				until = last
			}
			_ = rc.SetReadDeadline(until) // what has no deadlines is no connection
		}
	}
	if len(text) >= smallBody {
		_ = rc.SetReadDeadline(time.Time{}) // else the work on a request that arrived late would be cut short
	}
	return text, nil
}

// readOptional is readJSON for requests that need no body: nil when there is none.
func readOptional(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	unsaid := r.ContentLength < 0 && r.Header.Get("Content-Type") == ""
	if r.ContentLength == 0 || unsaid && noBody(r) == nil {
		return nil, nil
	}
	return readJSON(w, r, limit)
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
	case err == nil && kind == contentNDJSON:
		return refuse(http.StatusUnsupportedMediaType,
			"NDJSON is taken at POST /v1/batch alone: send JSON, and the header Content-Type: application/json")
	default:
		return refuse(http.StatusUnsupportedMediaType, "send JSON, and the header Content-Type: application/json")
	}
}

func tooLarge(limit int64) *problem {
	return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("the request must be at most %d B", limit))
}

// unread is the problem of a request that could not be read to its end.
func unread(err error) error {
	if e, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return tooLarge(e.Limit)
	}
	return refuse(http.StatusBadRequest, "the request ended before its end")
}

// noBody refuses a body where none is taken, rather than ignoring what it says; an empty object says nothing.
func noBody(r *http.Request) error {
	var some [16]byte
	n, err := io.ReadFull(r.Body, some[:])
	switch text := bytes.TrimSpace(some[:n]); {
	case err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF):
		return unread(err)
	case err == nil, len(text) > 0 && string(text) != "{}":
		return refuse(http.StatusUnprocessableEntity, "this takes no body")
	}
	return nil
}

// pathJob names the job of the path. No job has an id outside the alphabet.
func pathJob(r *http.Request) (job.Ref, error) {
	id := r.PathValue("id")
	if !job.IsID(id) {
		return job.Ref{}, refuse(http.StatusNotFound,
			"no job has such an id: ids are 1 to 64 of A-Z a-z 0-9 _ : and - (96 where they begin with rb:)")
	}
	return job.Ref{Namespace: job.DefaultNamespace, ID: id}, nil
}

// pathTopic names the topic of the path.
func pathTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if !job.IsTopic(name) {
		return "", refuse(http.StatusNotFound,
			"no topic has such a name: names are 1 to 64 of A-Z a-z 0-9 . _ and -")
	}
	return name, nil
}

// newTopic names the topic of a path that may begin one. That of callbacks has a policy like any.
func newTopic(r *http.Request) (string, error) {
	name := r.PathValue("topic")
	if faults := nameFaults(name, ""); len(faults) > 0 {
		return "", invalid(faults...)
	}
	return name, nil
}

// newLane names the lane of a path that may begin one.
func newLane(r *http.Request) (job.Queue, error) {
	q := job.Queue{Namespace: job.DefaultNamespace, Topic: r.PathValue("topic"), Lane: r.PathValue("lane")}
	if faults := nameFaults(q.Topic, q.Lane); len(faults) > 0 {
		return job.Queue{}, invalid(faults...)
	}
	return q, nil
}

// nameFaults are those of names that something may begin under.
func nameFaults(topic, lane string) []job.FieldError {
	if topic == job.CallbackTopic {
		topic = ""
	}
	return job.Validate(job.New{Spec: job.Spec{Queue: job.Queue{Topic: topic, Lane: lane}}}, time.Time{})
}

// pathLane names the lane of the path.
func pathLane(r *http.Request) (job.Queue, error) {
	topic, err := pathTopic(r)
	if err != nil {
		return job.Queue{}, err
	}
	lane := r.PathValue("lane")
	if !job.IsLane(lane) {
		return job.Queue{}, refuse(http.StatusNotFound,
			"no lane has such a name: names are 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	return job.Queue{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane}, nil
}

// ifMatch reads the version that a change is made for; zero: whichever.
func ifMatch(r *http.Request) (int64, error) {
	tags := r.Header.Values("If-Match")
	if len(tags) == 0 || len(tags) == 1 && strings.TrimSpace(tags[0]) == "*" {
		return 0, nil
	}
	tag := strings.TrimSpace(tags[0])
	bare := strings.TrimSuffix(strings.TrimPrefix(tag, `"`), `"`)
	version, err := strconv.ParseInt(bare, 10, 64)
	if len(tags) > 1 || len(tag) != len(bare)+2 || err != nil || version < 1 {
		return 0, refuse(http.StatusBadRequest, `If-Match must be one version in quotes, as ETag gives it: "3"`)
	}
	return version, nil
}

// checkConditions refuses conditions that a change would not evaluate, rather than changing what they were to protect.
// If-Modified-Since is for GET and HEAD alone (RFC 9110, 13.1.3).
func checkConditions(r *http.Request, versioned bool) error {
	for _, name := range []string{"If-Match", "If-None-Match", "If-Unmodified-Since"} {
		if len(r.Header.Values(name)) > 0 && !(versioned && name == "If-Match") {
			return refuse(http.StatusBadRequest, unsupportedCondition(name))
		}
	}
	return nil
}

// noIfMatch refuses an If-Match that names a version where versions are not compared.
func noIfMatch(r *http.Request) error {
	if version, err := ifMatch(r); err != nil || version == 0 {
		return err
	}
	return refuse(http.StatusBadRequest, unsupportedCondition("If-Match"))
}

func unsupportedCondition(name string) string {
	return name + " is not supported here: only edits and runs of a job take a condition, and that is If-Match"
}

// checkEncoding refuses compressed content, and says what is taken instead (RFC 9110, 12.5.3).
func checkEncoding(w http.ResponseWriter, r *http.Request) error {
	if r.ContentLength == 0 {
		return nil
	}
	for _, value := range r.Header.Values("Content-Encoding") {
		if value = strings.TrimSpace(value); value != "" && !strings.EqualFold(value, "identity") {
			w.Header().Set("Accept-Encoding", "identity")
			return refuse(http.StatusUnsupportedMediaType, "the content coding "+strconv.Quote(value)+
				" is not supported: send the content as it is, without the header Content-Encoding")
		}
	}
	return nil
}

// A query reads the parameters of a request's address, and gathers what is wrong with them.
type query struct {
	decoder
	values url.Values
}

// newQuery refuses parameters other than the known ones, and those that stand twice.
func newQuery(r *http.Request, known ...string) *query {
	q := new(query)
	var err error
	if q.values, err = url.ParseQuery(r.URL.RawQuery); err != nil {
		q.fault("?", "must be parameters as in ?topic=a&state=dead, with % escapes")
	}
	for _, name := range sortedKeys(q.values) {
		switch {
		case !slices.Contains(known, name):
			q.fault(queryName(name), "is not a parameter of this path")
		case len(q.values[name]) > 1:
			q.fault(queryName(name), "must stand once")
		}
	}
	return q
}

// queryName is how a fault names a parameter.
func queryName(name string) string { return "?" + strings.TrimPrefix(job.JSONPointer("", name), "/") }

func (q *query) get(name string) string { return q.values.Get(name) }

// limit reads how many items are asked for.
func (q *query) limit(standard int) int {
	text := q.get("limit")
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > listMost {
		q.fault("?limit", fmt.Sprintf("must be 1 to %d", listMost))
		return standard
	}
	return n
}

// moment reads a time.
func (q *query) moment(name string) time.Time {
	text := q.get(name)
	if text == "" {
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		q.fault(queryName(name), "must be a time as in RFC 3339, such as 2030-01-31T08:00:00Z (a + is written %2B)")
	}
	return t
}

// status reads an HTTP status; 0 when there is none.
func (q *query) status(name string) int {
	text := q.get(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil || n == 0 {
		return -1 // out of range for whoever checks
	}
	return n
}

// err is what is wrong with the parameters.
func (q *query) err() error {
	if p := q.problem(nil); p != nil {
		return p
	}
	return nil
}
