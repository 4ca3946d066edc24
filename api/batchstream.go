package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/api/limits"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/store"
)

// stream registers jobs, one a line, and answers with a result for each when it is stored, in order.
//
//	request ─▶ Reader ─▶ batch: lines that arrived together are registered together ─▶ resultBuffer ─▶ answer
//
// The handler reads and registers; the buffer's goroutine writes. So a client may wait for each result, or send all
// jobs before it reads any. Memory is bounded by the longest line, a group of lines and the buffer.
//
// The status is sent before the first line is read. The last line of a stream that ends early is the reason.
func (h *batchHandler) stream(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	// Without it HTTP/1.1 reads the whole request before it answers. Other protocols need no such call.
	if err := rc.EnableFullDuplex(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("answer while the request is read: %w", err)
	}
	deadlines := newDeadlines(rc)
	stop := h.onShutdown(func() {
		deadlines.End(response.NewProblem(response.ShuttingDown,
			"the server is shutting down: lines without a result are not registered, send them again"))
	})
	defer stop()
	holder := h.holder(r)
	if err := h.streams.TryAcquire(holder, 1); err != nil {
		w.Header().Set("Connection", "close")
		p := response.FromError(err)
		h.overloaded(r, p)
		p.Write(w)
		_ = deadlines.Linger(r.Body, rc.Flush) // fails only when the client is gone
		return nil
	}
	defer h.streams.Release(holder, 1)

	if r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.WriteHeader(http.StatusContinue) // an answer before it would mean a refusal
	}
	header := w.Header()
	header.Set("Content-Type", request.ContentTypeNDJSON)
	header.Set("Connection", "close") // the stream's deadlines and unread bytes must not reach another request
	deadlines.BeginResponse(w)

	t := newResultBuffer(w, rc, limits.Metered(r), deadlines.Ended,
		func() { deadlines.End(response.NewProblem(response.InvalidRequest, "client disconnected")) })
	defer t.Stop()
	maxLine := int(request.Limit(h.maxBody))
	s := stream{
		in:   newReader(r.Body, maxLine, limits.Metered(r)),
		body: r.Body, maxLine: maxLine, deadlines: deadlines, results: t, callers: h.callers, request: r,
	}
	s.batch = registration{batchHandler: h, out: response.NewBuffer(), written: s.endResult}
	defer s.batch.out.Free()
	endErr := s.run(context.WithoutCancel(r.Context()))
	if endErr != nil {
		h.log.Debug("stream ended early", "lines", s.in.Lines(), "err", endErr)
		if p, ok := errors.AsType[*response.Problem](endErr); ok {
			h.overloaded(r, p)
		}
	}
	last := takeTimeout // for the end of the answer
	if endErr != nil {
		last = lastTimeout
	}
	_ = rc.SetWriteDeadline(time.Now().Add(last))
	_ = deadlines.SetReadDeadline(time.Unix(1, 0)) // else net/http reads on until the deadline of the next line
	return nil
}

// A stream is a stream of jobs in flight.
type stream struct {
	in        *reader
	body      io.Reader // what in reads from
	maxLine   int       // bytes
	deadlines *deadlines
	batch     registration
	results   *resultBuffer
	clientErr error // why the client takes no more results
	// callers finds whose the request is, before each group of lines: a stream may last longer than its token.
	callers *authenticator
	request *http.Request
}

// run registers all lines. It returns why it ended early.
func (s *stream) run(ctx context.Context) error {
	p := s.registerLines(ctx)
	if p != nil {
		s.batch.end(p)
	}
	s.passOn()
	switch {
	case s.clientErr != nil:
		return s.clientErr
	case p == nil:
		return s.results.Finish()
	}
	if err := s.deadlines.Linger(s.body, s.results.Finish); err != nil {
		return err
	}
	return p
}

// registerLines registers lines until their end. It returns the problem that ended them early.
func (s *stream) registerLines(ctx context.Context) *response.Problem {
	for jobs := 0; s.clientErr == nil; { // without a client there is no one to answer
		if p := s.deadlines.NextLine(); p != nil {
			return p
		}
		group, err := s.in.Next(min(store.MaxBatch, max(request.MaxBatchJobs-jobs, 1)))
		if err != nil {
			return s.endOfLines(err)
		}
		if jobs += len(group); jobs > request.MaxBatchJobs {
			return response.NewProblem(response.TooLarge, fmt.Sprintf(
				"line %d exceeds the maximum of %d jobs: send the rest in another stream",
				group[0].N, request.MaxBatchJobs))
		}
		if _, err := s.callers.Principal(ctx, s.request); err != nil {
			return response.FromError(err)
		}
		s.register(ctx, group)
		s.passOn()
	}
	return nil
}

// endOfLines returns the problem of a read that failed; nil at the end of the stream.
func (s *stream) endOfLines(err error) *response.Problem {
	if errors.Is(err, io.EOF) {
		return nil
	}
	at, halfway := s.in.Partial()
	return s.deadlines.ReadError(err, at, halfway)
}

// register registers a group of lines and writes its results.
func (s *stream) register(ctx context.Context, group []line) {
	// A group has the timeout of a request, and finishes when the client disconnects.
	ctx, cancel := context.WithTimeoutCause(ctx, limits.Timeout, response.ErrTimeout)
	defer cancel()
	part := make([]item, len(group))
	for i, l := range group {
		part[i] = item{text: l.Text, line: l.N}
		if l.TooLong {
			part[i].problem = tooLong(l.N, s.maxLine)
		} else if err := request.CheckJSON(l.Text, l.N); err != nil {
			part[i].problem = response.FromError(err)
		}
	}
	s.batch.now = time.Now()
	s.batch.register(ctx, part)
}

func tooLong(n, longest int) *response.Problem {
	return response.NewProblem(response.TooLarge, fmt.Sprintf("line %d must be at most %d B", n, longest))
}

// endResult ends a result's line, and passes on a large buffer.
func (s *stream) endResult() {
	s.batch.out.EndLine()
	if len(s.batch.out.Bytes()) >= response.MaxPooled {
		s.passOn()
	}
}

// passOn passes results on to the resultBuffer.
func (s *stream) passOn() {
	o := s.batch.out
	if s.clientErr == nil && len(o.Bytes()) > 0 {
		s.clientErr = s.results.Put(o.Bytes())
	}
	o.Reset()
}
