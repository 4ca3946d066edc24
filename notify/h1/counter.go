package h1

import (
	"net"
	"sync/atomic"
)

// A WriteCounter counts the bytes written to a connection.
type WriteCounter struct {
	net.Conn
	written atomic.Int64
	failed  atomic.Bool
}

// Write writes p and counts what was written of it.
func (c *WriteCounter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// Written returns the bytes written so far.
func (c *WriteCounter) Written() int64 { return c.written.Load() }

// WriteFailed reports whether a write was cut off.
func (c *WriteCounter) WriteFailed() bool { return c.failed.Load() }
