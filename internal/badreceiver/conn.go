package badreceiver

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"
)

// dripEvery is the time between two bytes of a drip.
const dripEvery = 20 * time.Millisecond

// conn is a connection to a receiver. accept closes it.
type conn struct {
	net.Conn // the TCP connection, or TLS over it
	tcp      net.Conn
	in       *bufio.Reader
	r        *Receiver
}

func newConn(r *Receiver, c net.Conn) *conn {
	return &conn{Conn: c, tcp: c, in: bufio.NewReader(c), r: r}
}

// over returns the same connection under another layer.
func (c *conn) over(layer net.Conn) *conn {
	return &conn{Conn: layer, tcp: c.tcp, in: bufio.NewReader(layer), r: c.r}
}

// Write counts the bytes written.
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.r.sent.Add(int64(n))
	return n, err
}

// request reads and counts one request with its body; nil: no more requests.
func (c *conn) request() *http.Request {
	req, err := http.ReadRequest(c.in)
	if err != nil {
		return nil
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil
	}
	c.r.requests.Add(1)
	return req
}

// say writes a text and reports success.
func (c *conn) say(text string) bool {
	_, err := io.WriteString(c, text)
	return err == nil
}

// pour repeats a block up to a number of bytes and reports success.
func (c *conn) pour(block []byte, size int64) bool {
	for size > 0 {
		n, err := c.Write(block[:min(int64(len(block)), size)])
		if err != nil {
			return false
		}
		size -= int64(n)
	}
	return true
}

// forever repeats a block until a write fails.
func (c *conn) forever(block []byte) {
	for {
		if _, err := c.Write(block); err != nil {
			return
		}
	}
}

// drip repeats a text byte by byte until a write fails or the test ends.
func (c *conn) drip() {
	tick := time.NewTicker(dripEvery)
	defer tick.Stop()
	for {
		if !c.say("x") {
			return
		}
		select {
		case <-tick.C:
		case <-c.r.stop:
			return
		}
	}
}

// hold reads until the peer closes the connection or the test ends.
func (c *conn) hold() {
	c.r.held.Add(1)
	defer c.r.held.Add(-1)
	_, _ = io.Copy(io.Discard, c.in)
}

// wait keeps the connection open until the test ends, and reads nothing.
func (c *conn) wait() {
	c.r.held.Add(1)
	defer c.r.held.Add(-1)
	<-c.r.stop
}

// reset makes Close send a TCP reset.
func (c *conn) reset() {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.tcp.Close()
}

// finish closes the write side of the connection.
func (c *conn) finish() {
	if tcp, ok := c.tcp.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
}
