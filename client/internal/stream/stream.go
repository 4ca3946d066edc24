// This part of the package sends a request as a stream of lines while it reads the lines of the answer. It does not
// know what they say.

package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrEnded: the answer ended before all lines had a result.
var ErrEnded = Incomplete(errors.New("client: the stream ended before all lines had a result"))

// Options are the options of Open.
type Options[R any] struct {
	// Name is the request in errors.
	Name string
	// Post makes the request and returns the body of the answer.
	Post func(ctx context.Context, body io.Reader) (io.ReadCloser, error)
	// Read reads a line of the answer. After an error, the stream ends with it.
	Read func(line []byte) (R, error)
	// Timeout bounds the wait for a line to be taken or to come.
	Timeout time.Duration
	// MaxLines and MaxLineBytes bound the answer.
	MaxLines, MaxLineBytes int
}

// Stream is a request with a line for each item, and a result for each line.
type Stream[R any] struct {
	opts    Options[R]
	cancel  context.CancelCauseFunc
	body    *io.PipeWriter
	results chan R // closed at the end
	err     error  // why it ended, once results is closed; nil: all was read
}

// OpenStream begins a request.
func OpenStream[R any](ctx context.Context, o Options[R]) *Stream[R] {
	ctx, cancel := context.WithCancelCause(ctx)
	from, to := io.Pipe()
	// so that reading never waits for the caller
	s := &Stream[R]{opts: o, cancel: cancel, body: to, results: make(chan R, o.MaxLines+1)}
	go func() {
		defer close(s.results)
		defer cancel(nil)
		s.err = s.exchange(ctx, from)
		if s.err != nil && errors.Is(context.Cause(ctx), ErrNoAnswer) {
			s.err = fmt.Errorf("client: %s: %w within %s", o.Name, ErrNoAnswer, o.Timeout)
		}
		_ = from.CloseWithError(ErrEnded)
	}()
	return s
}

// exchange makes the request, and passes its results on.
func (s *Stream[R]) exchange(ctx context.Context, body io.Reader) error {
	answer, err := s.opts.Post(ctx, body)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }()
	lines := bufio.NewScanner(answer)
	lines.Buffer(nil, s.opts.MaxLineBytes)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		r, err := s.opts.Read(lines.Bytes())
		if err != nil {
			return err
		}
		select {
		case s.results <- r:
		default:
			return fmt.Errorf("client: %s has more results than lines", s.opts.Name)
		}
	}
	if err := lines.Err(); err != nil {
		return Incomplete(fmt.Errorf("client: read the results of %s: %w", s.opts.Name, err))
	}
	return nil
}

// Send sends a line. It returns false if the stream has ended.
func (s *Stream[R]) Send(line []byte) bool {
	defer s.limit().Stop()
	_, err := s.body.Write(line)
	return err == nil
}

// CloseSend ends the request. Results may follow.
func (s *Stream[R]) CloseSend() { _ = s.body.Close() }

// Receive waits for a result. It returns false if the stream has ended.
func (s *Stream[R]) Receive() (R, bool) {
	defer s.limit().Stop()
	r, open := <-s.results
	return r, open
}

// limit returns a timer that ends the stream when nothing happens in time.
func (s *Stream[R]) limit() *time.Timer {
	return time.AfterFunc(s.opts.Timeout, func() { s.cancel(ErrNoAnswer) })
}

// Results returns the channel of the results that Receive returns. It is closed at the end.
func (s *Stream[R]) Results() <-chan R { return s.results }

// Err returns why the stream ended, once Results is closed; nil: the answer was read to its end.
func (s *Stream[R]) Err() error { return s.err }

// Close ends the stream, drops its results and waits for its end.
func (s *Stream[R]) Close() {
	s.cancel(context.Canceled)
	for range s.results {
	}
}
