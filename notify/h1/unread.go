package h1

import (
	"net"
	"syscall"
)

// A Socket checks a connection for unread bytes.
type Socket struct {
	raw    syscall.RawConn // nil: no socket
	look   func(uintptr)   // sets unread; created once to save an allocation
	unread bool
}

// NewSocket returns the socket of a connection, below layers with a NetConn method.
func NewSocket(conn net.Conn) *Socket {
	s := new(Socket)
	s.look = func(fd uintptr) { s.unread = unread(fd) }
	for {
		switch c := conn.(type) {
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
			continue
		case syscall.Conn:
			if raw, err := c.SyscallConn(); err == nil {
				s.raw = raw
			}
		}
		return s
	}
}

// HasUnread reports whether the connection has unread bytes, an end or an error, or is closed. It is not safe for
// concurrent use, nor concurrently with a read. It returns false without a socket.
func (s *Socket) HasUnread() bool {
	if s.raw == nil {
		return false
	}
	s.unread = true // if the connection is closed
	return s.raw.Control(s.look) != nil || s.unread
}
