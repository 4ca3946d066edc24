package conn

import "net"

// A handshakeConn is below TLS. It bounds what a receiver sends in the handshake, which TLS keeps until it has each message
// whole.
type handshakeConn struct {
	net.Conn
	room int // how much may be read, in bytes; negative: anything, since the handshake is over
}

func (c *handshakeConn) Read(p []byte) (int, error) {
	switch {
	case c.room < 0:
		return c.Conn.Read(p)
	case c.room == 0:
		return 0, errHandshakeTooLarge
	}
	n, err := c.Conn.Read(p[:min(len(p), c.room)])
	c.room -= n
	return n, err
}

// NetConn is the connection below.
func (c *handshakeConn) NetConn() net.Conn { return c.Conn }

// A prefixedConn reads the prefix, which was read too much before, and then goes on.
type prefixedConn struct {
	net.Conn
	prefix []byte
}

func (c *prefixedConn) Read(p []byte) (int, error) {
	if len(c.prefix) == 0 {
		return c.Conn.Read(p)
	}
	n := copy(p, c.prefix)
	c.prefix = c.prefix[n:]
	return n, nil
}

// NetConn is the connection below.
func (c *prefixedConn) NetConn() net.Conn { return c.Conn }
