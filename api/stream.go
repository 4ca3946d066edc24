package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/store"
)

// contentNDJSON is the type of a stream and of its answer.
const contentNDJSON = "application/x-ndjson"

// closeIt: the deadlines of a stream, and what a client still sends after its end, are no next request's.
var closeIt = []string{"close"}

// isStream reports whether a request's jobs come as NDJSON.
func isStream(r *http.Request) bool {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && kind == contentNDJSON
}

// stream takes jobs, one a line, and answers a result for each as they are stored, in order.
//
//	request ─▶ lines ─▶ batch: what has arrived goes to the store together ─▶ tray ─▶ answer
//
// The handler reads and registers, the tray's goroutine writes. So a client may wait for each result, or send all jobs
// before it reads any. What is in memory is bounded by the longest line, a group's text and the tray.
//
// The answer's status is sent before the first line is read. What ends the stream before its end is said in a last line.
func (a *api) stream(w http.ResponseWriter, r *http.Request) error {
	rc := http.NewResponseController(w)
	// Else HTTP/1.1 reads the request to its end before it answers. Whatever cannot be told to does so by itself.
	if err := rc.EnableFullDuplex(); err != nil && !errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("answer while the request is read: %w", err)
	}
	limits := newLimits(rc)
	stop := a.atEnd(func() {
		limits.end(refuse(http.StatusServiceUnavailable,
			"this process is ending: what has no result is not registered; send it again"))
	})
	defer stop()
	select {
	case a.streams <- struct{}{}:
		defer func() { <-a.streams }()
	default:
		w.Header()["Connection"] = closeIt
		p := overloaded(fmt.Sprintf(
			"there are %d streams already: wait for one to end, or send the jobs as JSON", maxStreams))
		a.warnOverload(r, p)
		p.write(w)
		_ = limits.linger(r.Body, rc.Flush) // a client that is gone is not told
		return nil
	}

	if r.ProtoAtLeast(1, 1) && strings.EqualFold(r.Header.Get("Expect"), "100-continue") {
		w.WriteHeader(http.StatusContinue) // an answer that came first would be taken for a refusal
	}
	h := w.Header()
	h["Content-Type"] = []string{contentNDJSON}
	h["Connection"] = closeIt
	limits.answer(w)

	t := newTray(w, rc, metered(r), limits.ended, func() { limits.end(refuse(http.StatusBadRequest, "the client is gone")) })
	defer t.stop()
	s := stream{
		in:     lines{from: r.Body, longest: int(a.requestLimit()), held: metered(r)},
		limits: limits, tray: t,
	}
	s.batch = batch{api: a, out: newOut(), written: s.pass}
	defer s.batch.out.free()
	why := s.run(context.WithoutCancel(r.Context()))
	if why != nil {
		a.log.Debug("a stream of jobs was ended before its end", "lines", s.in.n, "err", why)
		if p, ok := errors.AsType[*problem](why); ok {
			a.warnOverload(r, p)
		}
	}
	last := takeTimeout // for the answer's end
	if why != nil {
		last = lastTimeout
	}
	_ = rc.SetWriteDeadline(time.Now().Add(last))
	_ = limits.readUntil(time.Unix(1, 0)) // else net/http reads on, for as long as the next line had time to arrive
	return nil
}

// A stream is one under way.
type stream struct {
	in     lines
	limits *limits
	batch  batch
	tray   *tray
	gone   error // why results are not taken any more
}

// run takes all lines, and says why it ended before their end.
func (s *stream) run(ctx context.Context) error {
	p := s.take(ctx)
	if p != nil {
		s.batch.end(p)
	}
	s.put()
	switch {
	case s.gone != nil:
		return s.gone
	case p == nil:
		return s.tray.finish()
	}
	if err := s.limits.linger(s.in.from, s.tray.finish); err != nil {
		return err
	}
	return p
}

// take takes line after line until their end; a problem is why it ended before.
func (s *stream) take(ctx context.Context) *problem {
	for jobs := 0; s.gone == nil; { // else nobody is there to be told
		if p := s.limits.line(); p != nil {
			return p
		}
		group, err := s.in.next(min(store.MaxBatch, max(maxBatchJobs-jobs, 1)))
		if err != nil {
			return s.ended(err)
		}
		if jobs += len(group); jobs > maxBatchJobs {
			return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf(
				"line %d is one job too many: a stream must be at most %d; send the rest in another", group[0].n, maxBatchJobs))
		}
		s.register(ctx, group)
		s.put()
	}
	return nil
}

// ended is why there are no more lines; nil when that is all.
func (s *stream) ended(err error) *problem {
	if errors.Is(err, io.EOF) {
		return nil
	}
	at, halfway := s.in.halfway()
	return s.limits.broken(err, at, halfway)
}

// register judges and registers a group and writes its results.
func (s *stream) register(ctx context.Context, group []line) {
	// A group gets the time of an ordinary request, and no less when the client goes away: it has begun.
	ctx, cancel := context.WithTimeoutCause(ctx, requestTimeout, errSlow)
	defer cancel()
	part := make([]entry, len(group))
	for i, l := range group {
		part[i] = entry{text: l.text, line: l.n}
		if l.long {
			part[i].problem = tooLong(l.n, s.in.longest)
		} else if err := checkJSON(l.text, l.n); err != nil {
			part[i].problem = problemOf(err)
		}
	}
	s.batch.now = time.Now()
	s.batch.take(ctx, part)
}

func tooLong(n, longest int) *problem {
	return refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("line %d must be at most %d B", n, longest))
}

// pass ends a result's line, and passes a large piece of a group's results on.
func (s *stream) pass() {
	s.batch.out.endLine()
	if len(s.batch.out.b) >= largestKept {
		s.put()
	}
}

// put passes results on to the client, while it takes them.
func (s *stream) put() {
	o := s.batch.out
	if s.gone == nil && len(o.b) > 0 {
		s.gone = s.tray.put(o.b)
	}
	o.b = o.b[:0]
}
