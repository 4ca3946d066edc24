package inbox

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// Bounds of the requests that are kept: together they take less than 1 MiB.
const (
	maxRecent        = 50
	maxRecentBody    = 1 << 10 // bytes of each body
	maxRecentHeaders = 20
	maxRecentText    = 256 // bytes of each other text
)

// Request is a request that the inbox received. Its texts are as they came, cut.
type Request struct {
	// N counts the requests of the inbox, from 1.
	N                         int64
	At                        time.Time
	Method, Path, ID, Attempt string
	// Answer is what it was answered with, in words.
	Answer    string
	Signature Signature
	// Body is the beginning of the body. BodyBytes is its length, at most 1 MiB and a byte.
	Body      string
	BodyBytes int
	// Headers are sorted by name. MoreHeaders are left out.
	Headers     []Header
	MoreHeaders int
}

// Header is a header of a request.
type Header struct{ Name, Value string }

// A ring has the newest of the items that were added to it.
type ring[T any] struct {
	items []T
	next  int // the oldest, once it is full
}

// add adds an item, and returns the one that it replaces when there are most of them.
func (r *ring[T]) add(item T, most int) (old T, full bool) {
	if len(r.items) < most {
		r.items = append(r.items, item)
		return old, false
	}
	old, r.items[r.next] = r.items[r.next], item
	r.next = (r.next + 1) % most
	return old, true
}

// Recent returns the newest requests that were answered, at most 50, the newest first.
func (in *Inbox) Recent() []Request {
	in.mu.Lock()
	defer in.mu.Unlock()
	all := slices.Concat(in.recent.items[in.recent.next:], in.recent.items[:in.recent.next])
	slices.Reverse(all)
	return all
}

// keep keeps a request for Recent. in.mu must be locked.
func (in *Inbox) keep(r Request) {
	in.kept++
	r.N = in.kept
	in.recent.add(r, maxRecent)
}

// newRequest returns what is kept of a request.
func newRequest(r *http.Request, at time.Time, body []byte, s Signature, answer string) Request {
	s.Detail = cut(s.Detail)
	kept := Request{
		At: at, Method: cut(r.Method), Path: cut(r.URL.Path), ID: cut(r.Header.Get("Webhook-Id")),
		Attempt: cut(r.Header.Get("Ringback-Attempt")),
		Answer:  answer, Signature: s, Body: string(body[:min(len(body), maxRecentBody)]), BodyBytes: len(body),
	}
	for name, values := range r.Header {
		kept.Headers = append(kept.Headers, Header{cut(name), cut(strings.Join(values, ", "))})
	}
	slices.SortFunc(kept.Headers, func(a, b Header) int { return strings.Compare(a.Name, b.Name) })
	if more := len(kept.Headers) - maxRecentHeaders; more > 0 {
		kept.Headers, kept.MoreHeaders = slices.Clone(kept.Headers[:maxRecentHeaders]), more
	}
	return kept
}

// cut returns a copy of at most maxRecentText bytes of a text, which does not keep the memory of the whole.
func cut(text string) string {
	if len(text) <= maxRecentText {
		return strings.Clone(text)
	}
	return text[:maxRecentText] + "…" // a copy, too
}
