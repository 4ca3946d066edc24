package limits

import (
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// MaxHeaderLines bounds the lines of a request's header.
const MaxHeaderLines = 100

// errHeaderLines ends a connection with more lines than that.
var errHeaderLines = errors.New("the header of the request has too many lines")

// IdleTimeout bounds the wait for the first byte of a request.
const IdleTimeout = 2 * time.Minute

// LimitHeaders bounds the header lines of requests on a listener's connections. net/http bounds only their bytes, and
// short lines take about twenty times their bytes in memory before the token is checked.
//
// A new connection may be silent for IdleTimeout, like one that was used before. net/http would close it after its
// ReadHeaderTimeout, perhaps while the first request is on its way: clients open connections ahead, and a busy machine
// may take seconds to send on one. Such a request has no answer, and clients do not repeat a POST.
func LimitHeaders(l net.Listener) net.Listener { return headerListener{l} }

type headerListener struct{ net.Listener }

func (l headerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if half, ok := conn.(halfConn); ok {
		return &headerConn{halfConn: half, unused: true}, err
	}
	return conn, err
}

// A halfConn is a connection that can be closed in one direction, which net/http does, such as a net.TCPConn.
type halfConn interface {
	net.Conn
	io.ReaderFrom
	CloseRead() error
	CloseWrite() error
}

// A headerConn counts header lines as they are read.
type headerConn struct {
	halfConn

	mu     sync.Mutex
	lines  int
	some   bool // the current line is not empty
	done   bool // the header has ended; a body follows
	unused bool // nothing was read yet
	// header is the time for the first header, from its first byte on; zero: no bound.
	header time.Duration
}

// SetReadDeadline sets the deadline of reads. Before the first byte it is net/http's for the first header, which begins
// with that byte.
func (c *headerConn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused && !t.IsZero() {
		c.header = time.Until(t)
		t = time.Now().Add(max(c.header, IdleTimeout))
	}
	return c.halfConn.SetReadDeadline(t)
}

// begin sets the deadline of the first header when its first byte was read.
func (c *headerConn) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unused && c.header > 0 {
		_ = c.halfConn.SetReadDeadline(time.Now().Add(c.header)) // fails only when the connection is closed
	}
	c.unused = false
}

// Read fails once there are too many lines, and from then on always: net/http drops errors of its read-ahead.
func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.halfConn.Read(p)
	if n > 0 {
		c.begin()
	}
	if !c.fits(p[:n]) {
		_ = c.CloseRead() // so that no further Read blocks
		return 0, errHeaderLines
	}
	return n, err
}

// fits counts the lines of a part of a header. It reports false when there are too many.
func (c *headerConn) fits(part []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range part {
		switch {
		case c.done:
			return true
		case b == '\n' && !c.some:
			c.done = true
		case b == '\n':
			c.lines, c.some = c.lines+1, false
		case b != '\r':
			c.some = true
		}
	}
	return c.lines <= MaxHeaderLines
}

// ExpectHeader resets the count when a connection becomes idle. It is an http.Server.ConnState.
func ExpectHeader(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*headerConn); ok && state == http.StateIdle {
		c.mu.Lock()
		c.lines, c.some, c.done = 0, false, false
		c.mu.Unlock()
	}
}
