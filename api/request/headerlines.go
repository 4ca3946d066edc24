package request

import (
	"errors"
	"net"
	"net/http"
	"sync"
)

// MaxHeaderLines bounds the lines of a request's header.
const MaxHeaderLines = 100

// errHeaderLines ends a connection whose client sends more.
var errHeaderLines = errors.New("the header of the request has too many lines")

// LimitHeaders bounds the lines of requests' headers on the connections of a listener for a Server. net/http bounds their
// bytes alone, and a header of short lines takes up some twenty times as much memory, before any token is looked at.
func LimitHeaders(l net.Listener) net.Listener { return headerListener{l} }

type headerListener struct{ net.Listener }

func (l headerListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if tcp, ok := conn.(*net.TCPConn); ok {
		return &headerConn{TCPConn: tcp}, err
	}
	return conn, err
}

// A headerConn counts the lines of a header while its bytes come in. It is a TCPConn, since net/http closes those half.
type headerConn struct {
	*net.TCPConn

	mu    sync.Mutex
	lines int
	some  bool // the line so far is not empty
	done  bool // the header has ended: what follows is a body
}

// Read fails once there are too many lines, and again from then on: net/http forgets an error that it meets looking ahead.
func (c *headerConn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if !c.fits(p[:n]) {
		_ = c.CloseRead() // a further Read does not wait
		return 0, errHeaderLines
	}
	return n, err
}

// fits counts the lines in a part of a header; false: there are too many.
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

// ExpectHeader begins another header where a connection waits for its next request. For http.Server.ConnState.
func ExpectHeader(conn net.Conn, state http.ConnState) {
	if c, ok := conn.(*headerConn); ok && state == http.StateIdle {
		c.mu.Lock()
		c.lines, c.some, c.done = 0, false, false
		c.mu.Unlock()
	}
}
