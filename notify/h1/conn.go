package h1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
)

// MaxBody is the longest body of a request, in bytes: the socket buffer takes it whole, even if the receiver reads
// nothing.
const MaxBody = 16 << 10

// ErrSpokeFirst is the error of a receiver that sends before the first request.
var ErrSpokeFirst = errors.New("the receiver spoke before it was asked, which ended the connection")

// A Conn is a connection for one request at a time.
type Conn struct {
	WriteCounter
	*Socket

	in      *bufio.Reader // nil between two requests
	out     *bufio.Writer // the same
	used    bool
	readErr error       // of the first failed read
	header  HeaderLimit // of the response under way
}

// NewConn returns a Conn over a new connection.
func NewConn(conn net.Conn) *Conn {
	return &Conn{WriteCounter: WriteCounter{Conn: conn}, Socket: NewSocket(conn)}
}

// Buffers of 4 KiB, which idle connections do without.
var (
	readers = sync.Pool{New: func() any { return bufio.NewReader(nil) }}
	writers = sync.Pool{New: func() any { return bufio.NewWriter(nil) }}
)

// takeBuffers takes the connection's buffers for a request.
func (c *Conn) takeBuffers() {
	c.in, _ = readers.Get().(*bufio.Reader)
	c.out, _ = writers.Get().(*bufio.Writer)
	c.in.Reset(c)
	c.out.Reset(c)
}

// returnBuffers gives the buffers back after a response that was read whole.
func (c *Conn) returnBuffers() {
	c.in.Reset(nil)
	c.out.Reset(nil)
	readers.Put(c.in)
	writers.Put(c.out)
	c.in, c.out = nil, nil
}

// Supports reports whether a Conn can send a request: plain HTTP, a host that needs no encoding, and a body of at most
// MaxBody. It returns false on systems without HasUnread.
func Supports(r *http.Request) bool {
	return seesUnread && r.URL.Scheme == "http" && r.ContentLength >= 0 && r.ContentLength <= MaxBody &&
		plainHostPort(r.Host)
}

// Hooks follow a request. Each may be nil.
type Hooks struct {
	// Wrote is called when the request was written, or as much of it as could be.
	Wrote func(err error)
	// Answering is called when the first byte of a response, or of an interim one, was read.
	Answering func()
	// Done is called once after a response, when its body has ended or was closed, or at once if it has none. A
	// connection that is not reusable must be closed.
	Done func(resp *http.Response, reusable bool)
}

// RoundTrip sends a request and reads the response up to its body. After an error the connection must be closed.
func (c *Conn) RoundTrip(r *http.Request, hooks Hooks) (*http.Response, error) {
	c.header = HeaderLimit{}
	if c.in == nil {
		c.takeBuffers()
	}
	if !c.used && c.HasUnread() {
		if _, err := c.in.Peek(1); err != nil {
			return nil, err
		}
		return nil, ErrSpokeFirst
	}
	c.used = true
	before := c.Written()
	writeRequest(c.out, r)
	writeErr := c.out.Flush()
	if writeErr != nil && c.Written() == before {
		return nil, writeErr
	}
	if hooks.Wrote != nil {
		hooks.Wrote(writeErr)
	}
	resp, err := c.readResponse(r, hooks.Answering)
	switch {
	case writeErr != nil && err != nil:
		return nil, writeErr
	case err != nil:
		return nil, err
	}
	resp.Close = resp.Close || r.Close || writeErr != nil
	b := &body{ReadCloser: resp.Body, conn: c, resp: resp, done: hooks.Done}
	if resp.Body == http.NoBody {
		b.end(true)
		return resp, nil
	}
	resp.Body = b
	return resp, nil
}

// readResponse reads the header of the final response. It calls answering, which may be nil, after the first byte.
func (c *Conn) readResponse(r *http.Request, answering func()) (*http.Response, error) {
	if _, err := c.in.Peek(1); err != nil {
		return nil, err // unchanged: io.EOF without a response differs from one inside a response
	}
	if answering != nil {
		answering()
	}
	for {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, c.readError(err)
		}
		if resp.StatusCode >= 200 || resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols {
			c.header.done = true
			return resp, nil
		}
	}
}

// Read reads and bounds the header of a response.
func (c *Conn) Read(p []byte) (int, error) {
	if c.header.err != nil {
		return 0, c.header.err
	}
	n, err := c.Conn.Read(p)
	if tooLarge := c.header.Read(p[:n]); tooLarge != nil {
		n, err = 0, tooLarge
	}
	if err != nil {
		c.readErr = err
	}
	return n, err
}

// readError returns the connection's error instead of net/http's, which calls a truncated response malformed.
func (c *Conn) readError(err error) error {
	if c.readErr == nil || errors.Is(c.readErr, io.EOF) {
		return err
	}
	return c.readErr
}

// body is a response's body. Its end decides whether the connection is reusable.
type body struct {
	io.ReadCloser

	conn  *Conn
	resp  *http.Response
	ended bool
	done  func(resp *http.Response, reusable bool)
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		b.end(true)
	default:
		b.end(false)
		err = b.conn.readError(err)
	}
	return n, err
}

// Close does not read the rest of the body, unlike net/http's.
func (b *body) Close() error {
	b.end(false)
	return nil
}

func (b *body) end(whole bool) {
	if b.ended || b.done == nil {
		return
	}
	b.ended = true
	reusable := whole && !b.resp.Close && b.resp.StatusCode >= 200 && b.conn.in.Buffered() == 0
	if reusable {
		b.conn.returnBuffers()
	}
	b.done(b.resp, reusable)
}
