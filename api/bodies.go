package api

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/ringback/ringback/job"
)

// Bounds of the request bodies in memory, over all requests of the process. What a body costs beside its own bytes
// (decoded, and on its way to the store) is about three times as much again.
const (
	// defaultBodyBytes is for bodies of more than smallBody.
	defaultBodyBytes = 48 << 20
	// smallBytes is kept for smaller ones, so that large uploads do not keep small registrations out.
	smallBytes = 16 << 20
	// smallBody is how much of a body is read before it counts as a large one.
	smallBody = 64 << 10
	// firstRoom is reserved before anything of a body has arrived.
	firstRoom = 4 << 10
	// stallTimeout is for a client to send more of a large body.
	stallTimeout = 10 * time.Second
)

// A bodyBudget bounds the bytes of request bodies that are in memory at a time. They are reserved as they arrive, so that
// a client that sends nothing holds at most firstRoom. Safe for concurrent use.
type bodyBudget struct {
	large, all int64 // bounds with and without large bodies
	used       atomic.Int64
}

// newBodyBudget makes one in which a body of the largest size fits when no other large one is there.
func newBodyBudget(bytes, largest int64) *bodyBudget {
	large := max(bytes, largest)
	return &bodyBudget{large: large, all: large + smallBytes}
}

// bound is how many bytes may be in use when a body has grown to n.
func (b *bodyBudget) bound(n int64) int64 {
	if n > smallBody {
		return b.large
	}
	return b.all
}

// fits reports whether a body of n bytes would fit now.
func (b *bodyBudget) fits(n int64) bool { return b.used.Load()+n <= b.bound(n) }

// A meteredBody is a request's body, with what is reserved for it.
type meteredBody struct {
	io.ReadCloser
	budget *bodyBudget
	held   atomic.Int64
}

// take reserves n bytes more; false: there is no room.
func (m *meteredBody) take(n int64) bool {
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

// force reserves n bytes even if there is no room.
func (m *meteredBody) force(n int64) {
	if m != nil {
		m.budget.used.Add(n)
		m.held.Add(n)
	}
}

// give releases n bytes.
func (m *meteredBody) give(n int64) { m.force(-n) }

// release gives everything back.
func (m *meteredBody) release() {
	if m != nil {
		m.budget.used.Add(-m.held.Swap(0))
	}
}

// answerSize is what an answer with a job's body takes: the body, and its form in the answer.
func answerSize(j *job.Job) int64 { return 2 * int64(len(j.Body)) }

// answer reserves room for an answer, for as long as a client takes to read it; false: there is none. A small one needs none.
func (b *bodyBudget) answer(size int64) (*meteredBody, bool) {
	if size <= 2*smallBody {
		return nil, true
	}
	m := &meteredBody{budget: b}
	return m, m.take(size)
}

// metered is what is reserved for a request's body; nil where nothing is counted.
func metered(r *http.Request) *meteredBody {
	m, _ := r.Body.(*meteredBody)
	return m
}

// tooBusy refuses a request whose body finds no room.
func tooBusy() *problem {
	p := overloaded("too many bytes of requests are under way: try again, with fewer or smaller requests at a time")
	p.unread = true
	return p
}

// turnAway answers with a problem before the request was read to its end, and sees to it that the client gets the answer:
// it goes on reading, and forgets what comes, since a connection that is closed with something unread is reset.
func (a *api) turnAway(w http.ResponseWriter, r *http.Request, p *problem) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // unsupported only where answers never wait for the request
	w.Header()["Connection"] = closeIt
	limits := newLimits(rc)
	stop := a.atEnd(func() { limits.end(p) })
	defer stop()
	p.write(w)
	_ = limits.linger(r.Body, rc.Flush) // fails only when the client is gone
}
