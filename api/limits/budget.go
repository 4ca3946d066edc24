package limits

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/capacity"
)

// FirstRoom is reserved for a body before its first byte arrives.
const FirstRoom = 4 << 10

const (
	// Timeout bounds the handling of one request, store calls included.
	Timeout = 30 * time.Second
	// ReadTimeout bounds the arrival of a request.
	ReadTimeout = time.Minute
	// StallTimeout bounds the wait for the next bytes of a large body.
	StallTimeout = 10 * time.Second
)

// A BodyBudget bounds the bytes of request bodies in memory. Bytes are reserved as they arrive, so a silent client
// holds at most FirstRoom. Decoding a body and sending it to the store take about three times its bytes in addition. It
// is safe for concurrent use.
type BodyBudget struct {
	all, large *capacity.Semaphore
}

// NewBodyBudget makes a budget of large bytes for large bodies, and for small ones of as much more as
// capacity.LargeBodies leaves to them.
func NewBodyBudget(large int64) *BodyBudget {
	all := capacity.Bodies.Semaphore(int(large) + capacity.Bodies.Whole - capacity.LargeBodies.Whole)
	return &BodyBudget{all: all, large: all.Part(capacity.LargeBodies, int(large))}
}

// Large returns the bound of large bodies, in bytes.
func (b *BodyBudget) Large() int64 { return int64(b.large.Whole()) }

// InUse returns the bytes reserved.
func (b *BodyBudget) InUse() int64 { return int64(b.all.InUse()) }

// of returns what bounds a body of n bytes.
func (b *BodyBudget) of(n int64) *capacity.Semaphore {
	if n > capacity.SmallBody {
		return b.large
	}
	return b.all
}

// Meter wraps a request's body so that bytes can be reserved for it.
func (b *BodyBudget) Meter(body io.ReadCloser, holder capacity.Holder) *MeteredBody {
	return &MeteredBody{ReadCloser: body, budget: b, holder: holder}
}

// A MeteredBody is a request's body with the bytes reserved for it. Methods of a nil one reserve nothing. It is safe
// for concurrent use.
type MeteredBody struct {
	io.ReadCloser
	budget *BodyBudget
	holder capacity.Holder

	mu       sync.Mutex
	reserved int64
}

// CheckRoom returns an error, a *capacity.FullError, if there is no room for a body of n bytes.
func (m *MeteredBody) CheckRoom(n int64) error {
	if m == nil {
		return nil
	}
	return m.budget.of(n).CheckRoom(m.holder, int(n))
}

// Reserve reserves n bytes. Error: *capacity.FullError.
func (m *MeteredBody) Reserve(n int64) error { return m.change(n, (*capacity.Semaphore).TryAcquire) }

// ForceReserve reserves n bytes even beyond the budget.
func (m *MeteredBody) ForceReserve(n int64) {
	_ = m.change(n, func(in *capacity.Semaphore, h capacity.Holder, n int) error { // without an error
		in.Force(h, n)
		return nil
	})
}

// Return releases n bytes.
func (m *MeteredBody) Return(n int64) { m.ForceReserve(-n) }

// Release releases all bytes.
func (m *MeteredBody) Release() { m.Return(m.size()) }

// size returns the bytes reserved.
func (m *MeteredBody) size() int64 {
	if m == nil {
		return 0
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reserved
}

// change reserves n bytes more with acquire. All bytes of a body move when it becomes large, or small again.
func (m *MeteredBody) change(n int64, acquire func(*capacity.Semaphore, capacity.Holder, int) error) error {
	if m == nil {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	from, to := m.budget.of(m.reserved), m.budget.of(m.reserved+n)
	moved := int64(0)
	if from != to {
		moved = m.reserved
	}
	if err := acquire(to, m.holder, int(moved+n)); err != nil {
		return err
	}
	if moved > 0 {
		from.Release(m.holder, int(moved))
	}
	m.reserved += n
	return nil
}

// ReserveAnswer reserves the bytes of an answer until the client has read it: see GrowAnswer.
func (b *BodyBudget) ReserveAnswer(holder capacity.Holder, size int64) (*MeteredBody, error) {
	m := b.Meter(nil, holder)
	return m, m.GrowAnswer(size)
}

// GrowAnswer reserves what the bytes of an answer have grown by. Small answers reserve nothing. Error:
// *capacity.FullError.
func (m *MeteredBody) GrowAnswer(size int64) error {
	if size <= 2*capacity.SmallBody || size <= m.size() {
		return nil
	}
	return m.Reserve(size - m.size())
}

// Metered returns the MeteredBody of a request, nil when it has none.
func Metered(r *http.Request) *MeteredBody {
	m, _ := r.Body.(*MeteredBody)
	return m
}
