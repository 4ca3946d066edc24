package conn

import (
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// A countingConn observes what net/http's HTTP/1 writes to a connection: that alone tells whether a request that failed
// can have reached the peer, and whether it was sent whole. httptrace reports on net/http's own buffer instead. It is
// above TLS, so that handshakes and alerts do not count.
//
// It bounds the header of an answer, as an h1.HeaderLimit does.
//
// It also keeps what follows an answer from being taken for the answer to the next request. net/http gives a connection
// to the next request before it looks whether more came behind the answer:
//
//   - more that net/http has read already: settle has the next request wait until net/http has looked, which closes the
//     connection then;
//   - more that came between settle and the first byte of the request, read or not: the connection takes no byte, and ends.
//     On systems that are no Unix what nobody has read is not seen;
//   - more that comes later cannot be distinguished from an answer.
//
// In the first two cases nothing of the request is written, so that it is sent again. The same holds when the peer has
// closed the connection meanwhile. When it does so later, the request may have been heard: the attempt fails.
type countingConn struct {
	net.Conn
	written atomic.Int64 // bytes
	failed  atomic.Bool  // a write was cut off

	queue job.Queue // of the request that it was given to first

	mu      sync.Mutex
	settled sync.Cond // reading or closed became true; its L is &mu
	reading bool      // net/http waits for bytes, so it has none left
	closed  bool
	head    h1.HeaderLimit
	given   bool // to a request of which nothing is written, not the first on the connection
	spoilt  bool // something came while it was given: an end, or bytes that are no answer

	socket *h1.Socket
}

func newCountingConn(conn net.Conn) *countingConn {
	c := &countingConn{Conn: conn, socket: h1.NewSocket(conn)}
	c.settled.L = &c.mu
	return c
}

// Written returns the bytes written so far.
func (c *countingConn) Written() int64 { return c.written.Load() }

// WriteFailed reports whether a write was cut off.
func (c *countingConn) WriteFailed() bool { return c.failed.Load() }

// settle gives the connection to a request other than its first, when net/http reads from it again or has closed it. It
// does either at once: the request that had the connection before waits for nobody but the receiver, and has its answer.
// To a request of another queue it is of no use: that is then sent again.
func (c *countingConn) settle(queue job.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.reading && !c.closed {
		c.settled.Wait()
	}
	c.given = true
	c.spoilt = c.spoilt || queue != c.queue
}

func (c *countingConn) Read(p []byte) (int, error) {
	c.mu.Lock()
	c.reading = true
	c.settled.Broadcast()
	tooLarge := c.head.Err()
	c.mu.Unlock()
	if tooLarge != nil {
		return 0, tooLarge
	}
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.reading = false
	if !c.given {
		if tooLarge := c.head.Read(p[:n]); tooLarge != nil {
			return 0, tooLarge
		}
		return n, err
	}
	c.spoilt = true
	if n > 0 {
		return 0, io.EOF
	}
	return n, err
}

// Write fails without a byte when the connection is spoilt.
func (c *countingConn) Write(p []byte) (int, error) {
	if !c.begin() {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(p)
	c.written.Add(int64(n))
	if err != nil {
		c.failed.Store(true)
	}
	return n, err
}

// begin reports whether a request may be written. From now on what is read is its answer.
func (c *countingConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given && !c.spoilt {
		c.spoilt = c.socket.HasUnread()
	}
	if c.spoilt {
		return false
	}
	if c.given {
		c.given, c.head = false, h1.HeaderLimit{}
	}
	return true
}

func (c *countingConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.settled.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}
