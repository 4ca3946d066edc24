package conn

import "net"

// handshakeConn bounds the bytes that a receiver sends in a TLS handshake, since crypto/tls buffers whole messages.
type handshakeConn struct {
	net.Conn
	room    int // bytes that may still be read; negative: no limit, the handshake is over
	dialled *dialRecord
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

// NetConn returns the underlying connection.
func (c *handshakeConn) NetConn() net.Conn { return c.Conn }

// prefixedConn reads a prefix before the connection.
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

// NetConn returns the underlying connection.
func (c *prefixedConn) NetConn() net.Conn { return c.Conn }
