package h1

import (
	"net"
	"syscall"
)

// A Socket looks at what has come over a connection and was not read.
type Socket struct {
	raw    syscall.RawConn // nil: there is none to look at
	look   func(uintptr)   // sets unread; made once, to spare an allocation
	unread bool
}

// NewSocket finds the socket of a connection, below the layers that have a NetConn method.
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

// HasUnread reports whether bytes, the end or an error has come that nobody has read, or the connection was closed. It must not
// be called from several goroutines at once, nor while another one reads. It is false where there is no socket.
func (s *Socket) HasUnread() bool {
	if s.raw == nil {
		return false
	}
	s.unread = true // should it be closed
	return s.raw.Control(s.look) != nil || s.unread
}
