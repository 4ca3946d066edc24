package limits

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"
)

// Bounds of request bodies in memory, over all requests of the process. Decoding a body and sending it to the store
// take about three times its bytes in addition.
const (
	// LargeBytes bounds bodies of more than SmallBody, together, unless a single request may be larger.
	LargeBytes = 48 << 20
	// SmallBytes is reserved for smaller bodies, so that large uploads do not block small registrations.
	SmallBytes = 16 << 20
	// SmallBody is the size up to which a body counts as small.
	SmallBody = 64 << 10
	// FirstRoom is reserved before the first byte arrives.
	FirstRoom = 4 << 10
)

// MaxStreams bounds the streams of registrations in flight, each of which may fill a ndjson.ResultBuffer and a group of
// lines.
const MaxStreams = 64

const (
	// Timeout bounds the handling of one request, store calls included.
	Timeout = 30 * time.Second
	// ReadTimeout bounds the arrival of a request.
	ReadTimeout = time.Minute
	// StallTimeout bounds the wait for the next bytes of a large body.
	StallTimeout = 10 * time.Second
)

// A BodyBudget bounds the bytes of request bodies in memory. Bytes are reserved as they arrive, so a silent client
// holds at most FirstRoom. It is safe for concurrent use.
type BodyBudget struct {
	large, all int64 // bounds of large bodies, and of all bodies
	used       atomic.Int64
}

// NewBodyBudget makes a budget of large bytes for large bodies.
func NewBodyBudget(large int64) *BodyBudget {
	return &BodyBudget{large: large, all: large + SmallBytes}
}

// bound returns the bound that applies to a body of n bytes.
func (b *BodyBudget) bound(n int64) int64 {
	if n > SmallBody {
		return b.large
	}
	return b.all
}

// Large returns the bound of large bodies, in bytes.
func (b *BodyBudget) Large() int64 { return b.large }

// InUse returns the bytes reserved.
func (b *BodyBudget) InUse() int64 { return b.used.Load() }

// Meter wraps a request's body so that bytes can be reserved for it.
func (b *BodyBudget) Meter(body io.ReadCloser) *MeteredBody {
	return &MeteredBody{ReadCloser: body, budget: b}
}

// A MeteredBody is a request's body with the bytes reserved for it. Methods of a nil one reserve nothing.
type MeteredBody struct {
	io.ReadCloser
	budget   *BodyBudget
	reserved atomic.Int64
}

// Fits reports whether the budget has room for a body of n bytes.
func (m *MeteredBody) Fits(n int64) bool {
	return m == nil || m.budget.used.Load()+n <= m.budget.bound(n)
}

// Reserve reserves n bytes. It reports false when the budget is used up.
func (m *MeteredBody) Reserve(n int64) bool {
	if m == nil {
		return true
	}
	bound := m.budget.bound(m.reserved.Load() + n)
	for {
		used := m.budget.used.Load()
		if used+n > bound {
			return false
		}
		if m.budget.used.CompareAndSwap(used, used+n) {
			m.reserved.Add(n)
			return true
		}
	}
}

// ForceReserve reserves n bytes even beyond the budget.
func (m *MeteredBody) ForceReserve(n int64) {
	if m != nil {
		m.budget.used.Add(n)
		m.reserved.Add(n)
	}
}

// Return releases n bytes.
func (m *MeteredBody) Return(n int64) { m.ForceReserve(-n) }

// Release releases all bytes.
func (m *MeteredBody) Release() {
	if m != nil {
		m.budget.used.Add(-m.reserved.Swap(0))
	}
}

// ReserveAnswer reserves the bytes of an answer until the client has read it. It reports false when the budget is used
// up. Small answers reserve nothing.
func (b *BodyBudget) ReserveAnswer(size int64) (*MeteredBody, bool) {
	if size <= 2*SmallBody {
		return nil, true
	}
	m := &MeteredBody{budget: b}
	return m, m.Reserve(size)
}

// Metered returns the MeteredBody of a request, nil when it has none.
func Metered(r *http.Request) *MeteredBody {
	m, _ := r.Body.(*MeteredBody)
	return m
}
