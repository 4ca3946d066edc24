// Package badreceiver runs HTTP receivers for tests that do what a sender must bear: they hang, drip, lie, flood, break
// off, and hold certificates that nobody should trust. One that serves well is there to compare with.
//
// A Receiver listens at a loopback port of its own, so that another process can call it as well. It speaks TCP itself
// where net/http's server would be too polite. However much it sends, it holds little memory: what is sent at length
// comes from a few blocks that all share. When its test ends, it closes what is open and waits for all it has started.
//
// The certificates of one process come from one authority, made at the first use and good for a day: Roots and CAFile.
package badreceiver

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Receiver is one under test. Its methods may be called from any goroutine.
type Receiver struct {
	// URL is where it is called: http://127.0.0.1:port, or https.
	URL string

	listener net.Listener
	conns    atomic.Int64
	requests atomic.Int64
	sent     atomic.Int64
	held     atomic.Int64

	stop    chan struct{} // closed when the test ends
	serving sync.WaitGroup
	mu      sync.Mutex
	open    map[net.Conn]struct{} // nil after the end
}

// Start runs a receiver of the kind until the test ends.
func Start(tb testing.TB, kind Kind) *Receiver {
	tb.Helper()
	b, known := behaviours[kind]
	if !known {
		tb.Fatalf("there is no receiver of kind %q", kind)
	}
	if b.needs != nil {
		if err := b.needs(); err != nil {
			tb.Fatalf("prepare a receiver of kind %s: %v", kind, err)
		}
	}
	r := &Receiver{stop: make(chan struct{}), open: make(map[net.Conn]struct{})}
	tb.Cleanup(r.close)
	addr, err := r.listen(tb.Context(), kind)
	if err != nil {
		tb.Fatalf("start a receiver of kind %s: %v", kind, err)
	}
	r.URL = "http://" + addr
	if b.https {
		r.URL = "https://" + addr
	}
	if b.serve != nil {
		r.serving.Go(func() { r.accept(b.serve) })
	}
	return r
}

// Conns is how many connections were accepted so far.
func (r *Receiver) Conns() int { return int(r.conns.Load()) }

// Requests is how many requests have come so far: those that were read whole, and for AnswersEarly those that began.
func (r *Receiver) Requests() int { return int(r.requests.Load()) }

// Held is how many connections it keeps waiting now, after all that they get; over HTTP/2, how many requests came over the
// connections that are open and got all that they get. Connections that are written to for ever do not count, nor those
// that are read slowly.
func (r *Receiver) Held() int { return int(r.held.Load()) }

// Sent is how many bytes of answers the system has taken to send so far, over all connections; it may be a write behind
// what has arrived. Some may lie in buffers on both sides: several MiB a connection.
func (r *Receiver) Sent() int64 { return r.sent.Load() }

// accept serves each connection until the listener is closed.
func (r *Receiver) accept(serve func(*conn)) {
	for {
		accepted, err := r.listener.Accept()
		if err != nil {
			return
		}
		if !r.keep(accepted) {
			_ = accepted.Close()
			return
		}
		r.conns.Add(1)
		r.serving.Go(func() {
			defer r.drop(accepted)
			serve(newConn(r, accepted))
		})
	}
}

// keep notes a connection to be closed at the end at the latest; false when that has come.
func (r *Receiver) keep(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return false
	}
	r.open[c] = struct{}{}
	return true
}

// drop closes a connection.
func (r *Receiver) drop(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, c)
}

// close ends everything and waits for it.
func (r *Receiver) close() {
	close(r.stop)
	if r.listener != nil {
		_ = r.listener.Close()
	}
	r.mu.Lock()
	for c := range r.open {
		_ = c.Close()
	}
	r.open = nil
	r.mu.Unlock()
	r.serving.Wait()
}
