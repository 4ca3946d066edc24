package request

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/api/response"
)

// Bounds of the request bodies in memory, over all requests of the process. What a body costs beside its own bytes
// (decoded, and on its way to the store) is about three times as much again.
const (
	// DefaultBodyBytes is for bodies of more than SmallBody.
	DefaultBodyBytes = 48 << 20
	// SmallBytes is kept for smaller ones, so that large uploads do not keep small registrations out.
	SmallBytes = 16 << 20
	// SmallBody is how much of a body is read before it counts as a large one.
	SmallBody = 64 << 10
	// firstRoom is reserved before anything of a body has arrived.
	firstRoom = 4 << 10
	// StallTimeout is for a client to send more of a large body.
	StallTimeout = 10 * time.Second
)

// A BodyBudget bounds the bytes of request bodies that are in memory at a time. They are reserved as they arrive, so that
// a client that sends nothing holds at most firstRoom. Safe for concurrent use.
type BodyBudget struct {
	large, all int64 // bounds with and without large bodies
	used       atomic.Int64
}

// NewBodyBudget makes one in which a body of the largest size fits when no other large one is there.
func NewBodyBudget(bytes, largest int64) *BodyBudget {
	large := max(bytes, largest)
	return &BodyBudget{large: large, all: large + SmallBytes}
}

// bound is how many bytes may be in use when a body has grown to n.
func (b *BodyBudget) bound(n int64) int64 {
	if n > SmallBody {
		return b.large
	}
	return b.all
}

// Large is the bound of what bodies take together, those of at most SmallBody excepted.
func (b *BodyBudget) Large() int64 { return b.large }

// InUse is how many bytes are reserved.
func (b *BodyBudget) InUse() int64 { return b.used.Load() }

// Meter returns a request's body for which bytes can be reserved.
func (b *BodyBudget) Meter(body io.ReadCloser) *MeteredBody {
	return &MeteredBody{ReadCloser: body, budget: b}
}

// fits reports whether a body of n bytes would fit now.
func (b *BodyBudget) fits(n int64) bool { return b.used.Load()+n <= b.bound(n) }

// A MeteredBody is a request's body, with what is reserved for it.
type MeteredBody struct {
	io.ReadCloser
	budget *BodyBudget
	held   atomic.Int64
}

// Reserve reserves n bytes more; false: there is no room.
func (m *MeteredBody) Reserve(n int64) bool {
	if m == nil {
		return true
	}
	bound := m.budget.bound(m.held.Load() + n)
	for {
		used := m.budget.used.Load()
		if used+n > bound {
			return false
		}
		if m.budget.used.CompareAndSwap(used, used+n) {
			m.held.Add(n)
			return true
		}
	}
}

// ForceReserve reserves n bytes even if there is no room.
func (m *MeteredBody) ForceReserve(n int64) {
	if m != nil {
		m.budget.used.Add(n)
		m.held.Add(n)
	}
}

// Return releases n bytes.
func (m *MeteredBody) Return(n int64) { m.ForceReserve(-n) }

// Release gives everything back.
func (m *MeteredBody) Release() {
	if m != nil {
		m.budget.used.Add(-m.held.Swap(0))
	}
}

// ReserveAnswer reserves room for an answer, for as long as a client takes to read it; false: there is none. A small one needs none.
func (b *BodyBudget) ReserveAnswer(size int64) (*MeteredBody, bool) {
	if size <= 2*SmallBody {
		return nil, true
	}
	m := &MeteredBody{budget: b}
	return m, m.Reserve(size)
}

// Metered is what is reserved for a request's body; nil where nothing is counted.
func Metered(r *http.Request) *MeteredBody {
	m, _ := r.Body.(*MeteredBody)
	return m
}

// tooManyBytes refuses a request whose body finds no room.
func tooManyBytes() *response.Problem {
	p := response.Overloaded("too many request bytes in flight: retry with fewer or smaller requests")
	p.Unread = true
	return p
}
