package limits

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// MaxHeaderLines bounds the lines of a request's header.
const MaxHeaderLines = 100

// errHeaderLines ends a connection with more lines than that.
var errHeaderLines = errors.New("the header of the request has too many lines")

// LimitHeaders bounds the header lines of requests on a listener's connections. net/http bounds only their bytes, and
// short lines take about twenty times their bytes in memory before the token is checked.
func LimitHeaders(l net.Listener) net.Listener { return headerListener{l} }

type headerListener struct{ net.Listener }

func (l headerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &headerConn{TCPConn: tcp}, err
	}
	return conn, err
}

// A headerConn counts header lines as they are read. It embeds a TCPConn because net/http half-closes connections of that
// type.
type headerConn struct {
	*net.TCPConn

	mu    sync.Mutex
	lines int
	some  bool // the current line is not empty
	done  bool // the header has ended; a body follows
}

// Read fails once there are too many lines, and from then on always: net/http drops errors of its read-ahead.
func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
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
