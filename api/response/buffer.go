package response

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
)

// A Buffer writes one JSON answer. encoding/json would compact a job's body, which is answered byte for byte, and is
// slower.
type Buffer struct {
	b            []byte
	showsHeaders bool
}

// MaxPooled is the largest buffer that is returned to the pool, in bytes.
const MaxPooled = 64 << 10

var buffers = sync.Pool{New: func() any { return &Buffer{b: make([]byte, 0, 2<<10)} }}

// NewBuffer returns an empty buffer from the pool.
func NewBuffer() *Buffer {
	o, _ := buffers.Get().(*Buffer)
	o.b, o.showsHeaders = o.b[:0], false
	return o
}

// ShowHeadersTo has the buffer show the values of headers that may be secrets (job.HarmlessHeader) if a principal may
// read bodies.
func (o *Buffer) ShowHeadersTo(p *access.Principal) { o.showsHeaders = p.Bodies }

// Free returns the buffer to the pool. It clears the buffer, which may contain a secret.
func (o *Buffer) Free() {
	if cap(o.b) <= MaxPooled {
		clear(o.b)
		buffers.Put(o)
	}
}

// Answer answers with the object whose members write writes.
func Answer(w http.ResponseWriter, status int, write func(o *Buffer)) {
	o := NewBuffer()
	defer o.Free()
	o.Open()
	write(o)
	o.Close()
	o.Send(w, status)
}

// Send answers with the buffer. Errors of the connection are ignored.
func (o *Buffer) Send(w http.ResponseWriter, status int) { _ = o.send(w, status) }

// SendNow is Send for an answer that must not be lost unnoticed: it returns the error of a connection that has not
// taken it.
func (o *Buffer) SendNow(w http.ResponseWriter, status int) error {
	err := o.send(w, status)
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	return err
}

func (o *Buffer) send(w http.ResponseWriter, status int) error {
	h := w.Header()
	if len(h["Content-Type"]) == 0 {
		h["Content-Type"] = ContentTypeJSON
	}
	h["Content-Length"] = []string{strconv.Itoa(len(o.b) + 1)}
	o.b = append(o.b, '\n')
	w.WriteHeader(status)
	_, err := w.Write(o.b)
	return err
}

var ContentTypeJSON = []string{"application/json"}

// Bytes returns what was written. It is valid until the next write.
func (o *Buffer) Bytes() []byte { return o.b }

// Reset drops what was written.
func (o *Buffer) Reset() { o.b = o.b[:0] }

// Cap returns the buffer's memory, in bytes.
func (o *Buffer) Cap() int64 { return int64(cap(o.b)) }

// Flush sends all but the last byte when the buffer has grown to MaxPooled. The last byte decides whether a comma
// follows.
func (o *Buffer) Flush(w http.ResponseWriter) {
	if last := len(o.b) - 1; last >= MaxPooled {
		_, _ = w.Write(o.b[:last])
		o.b = append(o.b[:0], o.b[last])
	}
}

// End sends the rest of an answer after Flush.
func (o *Buffer) End(w http.ResponseWriter) {
	o.b = append(o.b, '\n')
	_, _ = w.Write(o.b)
}

// EndLine ends a line of a stream.
func (o *Buffer) EndLine() { o.b = append(o.b, '\n') }

// next writes a comma unless the value is the first of an object, array or line.
func (o *Buffer) next() {
	if n := len(o.b); n > 0 && o.b[n-1] != '{' && o.b[n-1] != '[' && o.b[n-1] != ':' && o.b[n-1] != '\n' {
		o.b = append(o.b, ',')
	}
}

// Key begins a member.
func (o *Buffer) Key(name string) { o.next(); o.quote(name); o.b = append(o.b, ':') }

// Open begins an object, as an element or as the whole value.
func (o *Buffer) Open() { o.next(); o.b = append(o.b, '{') }

// Close ends an object.
func (o *Buffer) Close() { o.b = append(o.b, '}') }

// Object begins a member that is an object.
func (o *Buffer) Object(name string) { o.Key(name); o.b = append(o.b, '{') }

// Array begins a member that is an array.
func (o *Buffer) Array(name string) { o.Key(name); o.b = append(o.b, '[') }

// CloseArray ends an array.
func (o *Buffer) CloseArray() { o.b = append(o.b, ']') }

// Objects writes an array of objects. write writes the members of one.
func Objects[T any](o *Buffer, name string, all []T, write func(*T)) {
	o.Array(name)
	Items(o, all, write)
	o.CloseArray()
}

// Items writes objects into an array. write writes the members of one.
func Items[T any](o *Buffer, all []T, write func(*T)) {
	for i := range all {
		o.Open()
		write(&all[i])
		o.Close()
	}
}

// Member writes a value that is JSON already.
func (o *Buffer) Member(name string, value []byte) { o.Key(name); o.b = append(o.b, value...) }

// Text writes a string.
func (o *Buffer) Text(name, value string) { o.Key(name); o.quote(value) }

// TextOrNull writes a string; null when it is empty.
func (o *Buffer) TextOrNull(name, value string) {
	if value == "" {
		o.Null(name)
	} else {
		o.Text(name, value)
	}
}

// Number writes an integer.
func (o *Buffer) Number(name string, n int64) { o.Key(name); o.b = strconv.AppendInt(o.b, n, 10) }

// numberOrNull writes an integer; null when it is zero.
func (o *Buffer) numberOrNull(name string, n int64) {
	if n == 0 {
		o.Null(name)
	} else {
		o.Number(name, n)
	}
}

// countOrNull writes an integer whose absence differs from 0.
func (o *Buffer) countOrNull(name string, n *int) {
	if n == nil {
		o.Null(name)
	} else {
		o.Number(name, int64(*n))
	}
}

// Bool writes a boolean.
func (o *Buffer) Bool(name string, b bool) { o.Key(name); o.b = strconv.AppendBool(o.b, b) }

// Time writes a time; null when it is zero.
func (o *Buffer) Time(name string, t time.Time) {
	if t.IsZero() {
		o.Null(name)
		return
	}
	o.Key(name)
	o.time(t)
}

func (o *Buffer) time(t time.Time) {
	o.b = append(t.UTC().AppendFormat(append(o.b, '"'), job.TimeLayout), '"')
}

// Duration writes a duration such as "1m30s".
func (o *Buffer) Duration(name string, d time.Duration) { o.Key(name); o.duration(d) }

// DurationOrNull writes a duration; null when it is zero.
func (o *Buffer) DurationOrNull(name string, d time.Duration) {
	if d == 0 {
		o.Null(name)
	} else {
		o.Duration(name, d)
	}
}

func (o *Buffer) duration(d time.Duration) {
	o.next()
	o.b = append(units.AppendDuration(append(o.b, '"'), d), '"')
}

// durations writes an array of durations.
func (o *Buffer) durations(all []time.Duration) {
	o.b = append(o.b, '[')
	for _, d := range all {
		o.duration(d)
	}
	o.CloseArray()
}

// texts writes an array of strings.
func (o *Buffer) texts(name string, all []string) { o.Key(name); o.textArray(all) }

func (o *Buffer) textArray(all []string) {
	o.b = append(o.b, '[')
	for _, s := range all {
		o.next()
		o.quote(s)
	}
	o.CloseArray()
}

// labelsOrNull writes an object of strings, in order of their keys; null when there are none.
func (o *Buffer) labelsOrNull(name string, all map[string]string) {
	if len(all) == 0 {
		o.Null(name)
	} else {
		o.Key(name)
		o.labels(all)
	}
}

func (o *Buffer) labels(all map[string]string) {
	o.b = append(o.b, '{')
	for _, key := range sortedKeys(all) {
		o.Key(key)
		o.quote(all[key])
	}
	o.Close()
}

// headers writes headers in order of their names: one value as a string, several as an array, those redacted that are
// not shown.
func (o *Buffer) headers(all map[string][]string) {
	o.b = append(o.b, '{')
	for _, key := range sortedKeys(all) {
		o.Key(key)
		_, sealed := job.Sealed(all[key])
		if sealed || job.SecretHeader(key) || !o.showsHeaders && !job.HarmlessHeader(key) {
			o.quote(Redacted)
		} else {
			o.headerValues(all[key])
		}
	}
	o.Close()
}

// headerValues writes the values of a header: one as a string.
func (o *Buffer) headerValues(values []string) {
	if len(values) == 1 {
		o.quote(values[0])
	} else {
		o.textArray(values)
	}
}

// headersOrNull is headers with null when there are none.
func (o *Buffer) headersOrNull(name string, all map[string][]string) {
	if len(all) == 0 {
		o.Null(name)
	} else {
		o.Key(name)
		o.headers(all)
	}
}

// sortedKeys is slices.Sorted(maps.Keys(all)) with one allocation instead of three.
func sortedKeys[T any](all map[string]T) []string {
	keys := make([]string, 0, len(all))
	for key := range all {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// quote writes a JSON string.
func (o *Buffer) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // never fails for a string
			o.b = append(o.b, quoted...)
			return
		}
	}
	o.b = append(append(append(o.b, '"'), s...), '"')
}

// Null writes null.
func (o *Buffer) Null(name string) { o.Key(name); o.b = append(o.b, "null"...) }

// nulls writes null for each name.
func (o *Buffer) nulls(names ...string) {
	for _, name := range names {
		o.Null(name)
	}
}

// Redacted replaces secrets in answers.
const Redacted = job.Redacted
