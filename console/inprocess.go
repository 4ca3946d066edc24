// This part of the package calls an http.Handler of the same process as an HTTP client calls a server: without a
// connection, and with answers that are read while they are written.

package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"runtime/debug"
	"strconv"
	"sync"
	"time"
)

// errNoAnswer is the error of a request whose handler gave up.
var errNoAnswer = errors.New("the handler ended without an answer")

// Transport is an http.RoundTripper. The handler sees the request as if it came from the address RemoteAddr. It ends,
// with its context, when the request's context ends or the response's body is closed. It is safe for concurrent use.
type Transport struct {
	Handler    http.Handler
	RemoteAddr string
}

// RoundTrip serves a request in a goroutine, and returns when the handler has written its header.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	in := r.Clone(ctx)
	in.RemoteAddr, in.RequestURI = t.RemoteAddr, r.URL.RequestURI()
	if in.Host == "" {
		in.Host = r.URL.Host
	}
	if in.Body == nil {
		in.Body = http.NoBody
	}
	body, write := io.Pipe()
	w := &writer{header: make(http.Header), pipe: write, ready: make(chan struct{})}
	go func() {
		defer cancel()
		defer func() {
			switch v := recover(); v {
			case nil:
				w.end(nil)
			case http.ErrAbortHandler:
				w.end(errNoAnswer)
			default: // it must not end the process
				w.end(fmt.Errorf("the handler panicked: %v\n%s", v, debug.Stack()))
			}
		}()
		defer func() { _ = in.Body.Close() }()
		t.Handler.ServeHTTP(w, in)
	}()
	stop := context.AfterFunc(r.Context(), func() { write.CloseWithError(context.Cause(r.Context())) })
	select {
	case <-w.ready:
	case <-ctx.Done():
		if err := context.Cause(r.Context()); err != nil {
			stop()
			write.CloseWithError(err) // the handler must not wait for a reader
			return nil, err
		}
		<-w.ready // the handler has ended
	}
	if w.err != nil {
		stop()
		return nil, w.err
	}
	length := int64(-1)
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		length = n
	}
	return &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, ContentLength: length, Request: r,
		Body: &answer{PipeReader: body, close: func() { stop(); cancel() }},
	}, nil
}

// answer is the body of a response; closing it ends the handler.
type answer struct {
	*io.PipeReader

	close func()
}

// Close ends the request.
func (a *answer) Close() error {
	err := a.PipeReader.Close()
	a.close()
	return err
}

// writer is what the handler writes to.
type writer struct {
	header http.Header
	pipe   *io.PipeWriter
	once   sync.Once
	ready  chan struct{}
	// These are set before ready is closed.
	sent   http.Header
	status int
	err    error
}

// Header returns the header that WriteHeader sends.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader sends the header, once. Informational statuses are left out.
func (w *writer) WriteHeader(status int) {
	if status < http.StatusOK {
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, maps.Clone(w.header)
		close(w.ready)
	})
}

// Write waits until the client has read the bytes, or has closed the body.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.pipe.Write(p)
}

// Flush sends the header: bytes are never kept.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// SetReadDeadline, SetWriteDeadline and EnableFullDuplex do nothing: there is no connection that could hang.
func (w *writer) SetReadDeadline(time.Time) error  { return nil }
func (w *writer) SetWriteDeadline(time.Time) error { return nil }
func (w *writer) EnableFullDuplex() error          { return nil }

// end ends the answer.
func (w *writer) end(err error) {
	w.once.Do(func() {
		w.status, w.sent, w.err = http.StatusOK, maps.Clone(w.header), err
		close(w.ready)
	})
	w.pipe.CloseWithError(err) // nil: EOF
}
