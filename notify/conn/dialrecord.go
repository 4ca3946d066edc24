package conn

import (
	"net"
	"sync/atomic"
	"time"
)

// dialRecord records when the phases of one dial ended, and its address. A dial may go on after its request has ended,
// so the fields are atomic. The methods do nothing for nil.
type dialRecord struct {
	started   time.Time
	named     atomic.Bool            // the host's name is, or was, looked up
	resolved  atomic.Int64           // times since started; zero: not yet
	connected atomic.Int64           //
	secured   atomic.Int64           //
	remote    atomic.Pointer[string] // the address reached, or else the last one tried
}

// since returns the time since the start of the dial, at least 1 ns.
func (r *dialRecord) since() int64 { return max(1, int64(time.Since(r.started))) }

// lookUp records that a host is looked up, or that it is an address.
func (r *dialRecord) lookUp(name string) {
	switch {
	case r == nil:
	case name == "":
		r.resolved.Store(r.since())
	default:
		r.named.Store(true)
	}
}

// resolve records that the host is resolved.
func (r *dialRecord) resolve() {
	if r != nil {
		r.resolved.CompareAndSwap(0, r.since())
	}
}

// try records an address that is dialled.
func (r *dialRecord) try(address string) {
	if r != nil {
		r.remote.Store(&address)
	}
}

// connect records the connection, to the receiver or to a forward proxy.
func (r *dialRecord) connect(conn net.Conn) {
	if r != nil {
		r.resolve()
		r.connected.Store(r.since())
		r.try(conn.RemoteAddr().String())
	}
}

// secure records the end of the TLS handshake.
func (r *dialRecord) secure() {
	if r != nil {
		r.secured.Store(r.since())
	}
}

// address returns the address reached, or else the last one tried; empty: none.
func (r *dialRecord) address() string {
	if r == nil || r.remote.Load() == nil {
		return ""
	}
	return *r.remote.Load()
}

// A Timing has the durations of a request's phases and its address. A phase that did not take place is zero. The phase
// in which the request failed has its time until then.
type Timing struct {
	DNS, Connect, TLS time.Duration // zero of a reused connection
	FirstByte         time.Duration // from the request's start on its connection to the header of its response
	RemoteAddr        string        // the receiver's or the forward proxy's; empty: none was dialled
}

// Timing returns the timing of a request. It must be called by the goroutine that called RoundTrip.
func (p *Progress) Timing() (t Timing) {
	now := time.Now()
	dial, end := p.dialing.Load(), now
	t.RemoteAddr = dial.address()
	if !p.begun.IsZero() {
		if p.dialled != dial { // the request got another connection than that of its dial
			dial = nil
		}
		end = p.begun
		t.RemoteAddr = p.dialled.address()
		if answered := p.answered; !answered.IsZero() {
			now = answered
		}
		t.FirstByte = now.Sub(p.begun)
	}
	if dial == nil {
		return t
	}
	until := int64(end.Sub(dial.started))
	resolved, connected, secured := dial.resolved.Load(), dial.connected.Load(), dial.secured.Load()
	switch {
	case resolved == 0 && dial.named.Load():
		t.DNS = time.Duration(until)
	case resolved == 0: // refused before it was looked up
	default:
		if dial.named.Load() {
			t.DNS = time.Duration(resolved)
		}
		if connected == 0 {
			t.Connect = time.Duration(until - resolved)
			return t
		}
		t.Connect = time.Duration(connected - resolved)
		if secured > 0 {
			t.TLS = time.Duration(secured - connected)
		} else if p.begun.IsZero() && Phase(p.phase.Load()) == PhaseTLS {
			t.TLS = time.Duration(until - connected)
		}
	}
	return t
}
