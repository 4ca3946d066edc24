// Package badreceiver runs misbehaving HTTP receivers for tests of senders: they hang, drip, flood, end connections
// early, violate HTTP or have untrusted certificates. Good ones are there for comparison.
//
// A Receiver listens at a loopback port, so that other processes can call it. Most kinds write to TCP directly, since
// net/http's server follows the rules. Long responses are sent from a few shared blocks, so that a Receiver uses little
// memory. When its test ends, it closes its connections and waits for its goroutines.
//
// The certificates of a process come from one authority, created at first use and valid for a day: Roots and CAFile.
package badreceiver

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// A Receiver is a running receiver. Its methods are safe for concurrent use.
type Receiver struct {
	// URL is http://127.0.0.1:port, or https.
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

// Conns returns the number of accepted connections.
func (r *Receiver) Conns() int { return int(r.conns.Load()) }

// Requests returns the number of requests: those read whole, for AnswersEarly those begun.
func (r *Receiver) Requests() int { return int(r.requests.Load()) }

// Held returns the number of open connections that get no more bytes; over HTTP/2, the number of requests on open
// connections that get no more. Connections written to for ever, or read slowly, do not count.
func (r *Receiver) Held() int { return int(r.held.Load()) }

// Sent returns the bytes of responses that were handed to the system, over all connections. Several MiB per connection
// may be in buffers on both sides; a write under way is not counted.
func (r *Receiver) Sent() int64 { return r.sent.Load() }

// accept serves connections until the listener is closed.
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

// keep registers a connection to be closed at the end; false: the end has come.
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

// close closes everything and waits for the goroutines.
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
