package conn

import (
	"io"
	"net"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify/h1"
)

// countingConn counts the bytes that net/http writes to an HTTP/1 connection, to know whether a failed request can have
// reached the peer, and whether it was sent whole. (httptrace reports writes to net/http's buffer.) It is above TLS, so
// that handshakes and alerts do not count. It bounds the header of a response by an h1.HeaderLimit.
//
// It also keeps surplus bytes after a response from being read as the next response. net/http gives a connection to the
// next request before it checks for such bytes:
//
//   - bytes that net/http has read: settle delays the next request until net/http has checked and closed the
//     connection;
//   - bytes that arrive between settle and the first byte of the request: Write fails without writing. Only on Unix are
//     unread bytes detected;
//   - later bytes cannot be distinguished from a response.
//
// In the first two cases, and when the peer has closed the connection by then, nothing of the request is written, and
// it is sent again. When the peer closes it later, see Progress.LostUnanswered.
type countingConn struct {
	h1.WriteCounter

	queue   job.Queue // of its first request; zero: there was none
	dialled *dialRecord

	mu      sync.Mutex
	settled sync.Cond // signals reading or closed; its L is &mu
	reading bool      // net/http waits for bytes: it has no unread ones
	closed  bool
	head    h1.HeaderLimit
	given   bool // to a later request that is not written yet
	// not usable: an end or surplus bytes arrived, its time is over, or the request is of another queue
	spoilt bool
	until  time.Time // it may be given; zero: always

	socket *h1.Socket
}

func newCountingConn(conn net.Conn, dialled *dialRecord) *countingConn {
	c := &countingConn{WriteCounter: h1.WriteCounter{Conn: conn}, dialled: dialled, socket: h1.NewSocket(conn)}
	c.settled.L = &c.mu
	return c
}

// settle gives the connection to a later request, once net/http reads from it again or has closed it. It does either at
// once, since the request before has its response. A request of another queue cannot use it and is sent again, as is
// one that comes after the time that the receiver announced.
func (c *countingConn) settle(queue job.Queue) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.reading && !c.closed {
		c.settled.Wait()
	}
	c.given = true
	if c.queue == (job.Queue{}) {
		c.queue = queue // it was dialled for a request that got another connection meanwhile
	}
	c.spoilt = c.spoilt || queue != c.queue || !c.until.IsZero() && time.Now().After(c.until)
}

// reuseWithin sets the time within which the connection may be given again. The clock starts with the header of a
// response, since the end of its body is not known here.
func (c *countingConn) reuseWithin(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Now().Add(d)
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

// Write fails without writing when the connection is spoilt.
func (c *countingConn) Write(p []byte) (int, error) {
	if !c.begin() {
		return 0, net.ErrClosed
	}
	return c.WriteCounter.Write(p)
}

// begin reports whether a request may be written. Bytes read from now on are its response.
func (c *countingConn) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.given && !c.spoilt {
		c.spoilt = c.socket.HasUnread()
	}
	if c.given && !c.spoilt {
		c.given, c.head = false, h1.HeaderLimit{}
	}
	return !c.spoilt
}

func (c *countingConn) Close() error {
	c.mu.Lock()
	c.closed = true
	c.settled.Broadcast()
	c.mu.Unlock()
	return c.Conn.Close()
}
