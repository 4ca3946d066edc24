package api

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
)

// An out writes one JSON answer. It exists beside encoding/json because a job's body is answered byte for byte, which
// encoding/json would compact, and because every registration is answered with a job.
type out struct {
	b []byte
}

// largestKept is the largest buffer that is kept for the next answer.
const largestKept = 64 << 10

var outs = sync.Pool{New: func() any { return &out{b: make([]byte, 0, 2<<10)} }}

func newOut() *out {
	o, _ := outs.Get().(*out)
	o.b = o.b[:0]
	return o
}

func (o *out) free() {
	if cap(o.b) <= largestKept {
		outs.Put(o)
	}
}

// send answers with what was written. A client that is gone is not told so.
func (o *out) send(w http.ResponseWriter, status int) {
	h := w.Header()
	if len(h["Content-Type"]) == 0 {
		h["Content-Type"] = contentJSON
	}
	h["Content-Length"] = []string{strconv.Itoa(len(o.b) + 1)}
	o.b = append(o.b, '\n')
	w.WriteHeader(status)
	_, _ = w.Write(o.b)
}

var contentJSON = []string{"application/json"}

// flush sends what was written so far of an answer too large to be kept whole. The last byte stays, for next to see.
func (o *out) flush(w http.ResponseWriter) {
	if last := len(o.b) - 1; last >= largestKept {
		_, _ = w.Write(o.b[:last])
		o.b = append(o.b[:0], o.b[last])
	}
}

// end sends the rest of an answer that was flushed.
func (o *out) end(w http.ResponseWriter) {
	o.b = append(o.b, '\n')
	_, _ = w.Write(o.b)
}

// endLine ends a value that stands on a line of its own.
func (o *out) endLine() { o.b = append(o.b, '\n') }

// next separates a value from the one before it, unless that stands on a line of its own.
func (o *out) next() {
	if n := len(o.b); n > 0 && o.b[n-1] != '{' && o.b[n-1] != '[' && o.b[n-1] != ':' && o.b[n-1] != '\n' {
		o.b = append(o.b, ',')
	}
}

// key begins a member. Names are ours and need no escapes.
func (o *out) key(name string) {
	o.next()
	o.b = append(o.b, '"')
	o.b = append(o.b, name...)
	o.b = append(o.b, `":`...)
}

func (o *out) open()  { o.next(); o.b = append(o.b, '{') }
func (o *out) close() { o.b = append(o.b, '}') }

func (o *out) object(name string) { o.key(name); o.b = append(o.b, '{') }
func (o *out) array(name string)  { o.key(name); o.b = append(o.b, '[') }
func (o *out) closeArray()        { o.b = append(o.b, ']') }

func (o *out) text(name, value string) { o.key(name); o.quote(value) }

// said writes a text unless it is empty.
func (o *out) said(name, value string) {
	if value != "" {
		o.text(name, value)
	}
}

func (o *out) number(name string, n int64) { o.key(name); o.b = strconv.AppendInt(o.b, n, 10) }

func (o *out) flag(name string, b bool) { o.key(name); o.b = strconv.AppendBool(o.b, b) }

// raw writes a value that is JSON already, as it is.
func (o *out) raw(name string, value []byte) { o.key(name); o.b = append(o.b, value...) }

// timeLayout is RFC 3339 with milliseconds.
const timeLayout = "2006-01-02T15:04:05.000Z07:00"

// time writes an instant unless it is zero.
func (o *out) time(name string, t time.Time) {
	if t.IsZero() {
		return
	}
	o.key(name)
	o.b = append(o.b, '"')
	o.b = t.UTC().AppendFormat(o.b, timeLayout)
	o.b = append(o.b, '"')
}

func (o *out) duration(name string, d time.Duration) { o.key(name); o.rung(d) }

// rung writes a duration as an element.
func (o *out) rung(d time.Duration) {
	o.next()
	o.b = append(o.b, '"')
	o.b = job.AppendDuration(o.b, d)
	o.b = append(o.b, '"')
}

// durations writes a ladder.
func (o *out) durations(name string, all []time.Duration) {
	o.array(name)
	for _, d := range all {
		o.rung(d)
	}
	o.closeArray()
}

// texts writes a list of texts.
func (o *out) texts(name string, all []string) {
	o.array(name)
	for _, s := range all {
		o.next()
		o.quote(s)
	}
	o.closeArray()
}

// labels writes texts by name, in order.
func (o *out) labels(name string, all map[string]string) {
	o.object(name)
	for _, key := range sortedKeys(all) {
		o.next()
		o.quote(key)
		o.b = append(o.b, ':')
		o.quote(all[key])
	}
	o.close()
}

// headers writes headers, a single value as a text, those that carry secrets hidden.
func (o *out) headers(name string, all map[string][]string) {
	o.object(name)
	for _, key := range sortedKeys(all) {
		o.next()
		o.quote(key)
		o.b = append(o.b, ':')
		switch values := all[key]; {
		case secret(key):
			o.quote(redacted)
		case len(values) == 1:
			o.quote(values[0])
		default:
			o.b = append(o.b, '[')
			for _, v := range values {
				o.next()
				o.quote(v)
			}
			o.b = append(o.b, ']')
		}
	}
	o.close()
}

// quote writes a text as a JSON string.
func (o *out) quote(s string) {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string always has a JSON form
			o.b = append(o.b, quoted...)
			return
		}
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, s...)
	o.b = append(o.b, '"')
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// share writes a number with decimals.
func (o *out) share(name string, f float64) {
	o.key(name)
	o.b = strconv.AppendFloat(o.b, f, 'g', -1, 64)
}
