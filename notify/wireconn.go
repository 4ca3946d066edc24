package notify

import (
	"bufio"
	"container/list"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/ringback/ringback/job"
)

// A wireConn is a connection of a wire. One request has it at a time.
type wireConn struct {
	net.Conn
	traffic

	addr  string
	queue job.Queue // whose requests go over it
	in    *bufio.Reader
	out   *bufio.Writer
	cut   error // what ended reading; nil: nothing did
	head  headerLimit

	socket syscall.RawConn // nil: there is none to look at
	look   func(uintptr)   // sets came; made once, to spare an allocation
	came   bool

	// Guarded by the mutex of idle, where it lies.
	since   time.Time
	element *list.Element
}

func newWireConn(conn net.Conn, addr string, queue job.Queue) *wireConn {
	c := &wireConn{Conn: conn, addr: addr, queue: queue, socket: socketOf(conn)}
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(c)
	c.look = func(fd uintptr) { c.came = pending(fd) }
	return c
}

// quiet reports whether nothing has come over a connection that nobody reads.
func (c *wireConn) quiet() bool {
	if c.socket == nil {
		return true
	}
	c.came = true // should it be closed
	return c.socket.Control(c.look) == nil && !c.came
}

// exchange sends a request and reads the answer up to its body. A receiver may answer, and hang up, without reading all.
func (c *wireConn) exchange(a *attempt, r *http.Request) (*http.Response, error) {
	c.head = headerLimit{}
	if !a.reused && !c.quiet() {
		if _, err := c.in.Peek(1); err != nil {
			return nil, err
		}
		return nil, errSpokeFirst
	}
	writeRequest(c.out, r)
	err := c.out.Flush()
	if err != nil && a.untouched() {
		return nil, err
	}
	a.reach(phaseHeaders)
	if err == nil {
		a.payload.release()
	}
	resp, none := c.answer(r)
	if err == nil {
		return resp, none
	}
	if none != nil {
		return nil, err
	}
	resp.Close = true
	return resp, nil
}

// answer reads the header of the final answer.
func (c *wireConn) answer(r *http.Request) (*http.Response, error) {
	if _, err := c.in.Peek(1); err != nil {
		return nil, err // as it is: the end of a connection without an answer is not that of one in its middle
	}
	for {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, c.why(err)
		}
		if resp.StatusCode >= 200 || resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.head.done = true
			return resp, nil
		}
	}
}

// Read bounds the header of an answer.
func (c *wireConn) Read(p []byte) (int, error) {
	if c.head.err != nil {
		return 0, c.head.err
	}
	n, err := c.Conn.Read(p)
	if tooLarge := c.head.read(p[:n]); tooLarge != nil {
		n, err = 0, tooLarge
	}
	if err != nil {
		c.cut = err
	}
	return n, err
}

// why is what ended the reading of an answer: net/http calls one malformed that we cut.
func (c *wireConn) why(err error) error {
	if c.cut == nil || errors.Is(c.cut, io.EOF) {
		return err
	}
	return c.cut
}

func (c *wireConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	c.note(n, err)
	return n, err
}

// abort ends what waits for the peer, now and later.
func (c *wireConn) abort() { _ = c.SetDeadline(past) }
