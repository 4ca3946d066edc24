package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// Result is what became of a job of RegisterAll.
type Result struct {
	// Index is the job's position in the sequence, from 0.
	Index int
	ID    string
	// Created is false if the job was registered before: perhaps by a try whose answer was lost.
	Created    bool
	Durability *Durability
	// Err says why the job was refused, as a *Problem if the server did; nil: it is registered.
	Err error
}

// Bounds of the jobs that are in flight: they are kept until they have a result.
const (
	maxPart      = 1000
	maxPartBytes = 4 << 20
)

// RegisterAll registers a sequence of any length in streams, and returns a result for each job. Of the jobs it keeps at most 1,000 or
// 4 MiB, or one that is larger. A job is sent as soon as the sequence yields it; results are passed on between jobs, so a sequence that
// waits holds them up. Jobs without a result, because a connection broke, and those with a 429 or 503 are sent again under their ids,
// until ctx ends. What is refused is the Err of its result, and does not concern the others. An error is the last pair: then jobs that
// have no result may be registered or not, and can be registered again under their ids.
//
// The sequence and the loop over the results run in turn in the caller's goroutine. After a break the sequence is not continued, and jobs
// without a result may be registered.
func (c *Client) RegisterAll(ctx context.Context, jobs iter.Seq[Job]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		p := &part{client: c, ctx: ctx, yield: yield}
		defer p.close()
		index := 0
		for j := range jobs {
			if !p.add(index, j) {
				return
			}
			index++
		}
		p.finish()
	}
}

// part is the jobs without a result, and the stream that they are sent on.
type part struct {
	client *Client
	ctx    context.Context //nolint:containedctx // a part lives as long as a call of RegisterAll
	yield  func(Result, error) bool

	waiting []batchLine // without a result, in order
	bytes   int
	stream  *batchStream // nil: none
	busy    error        // the 429 or 503 of a job that is sent again
	pause   backoff
}

// batchLine is a job on its way.
type batchLine struct {
	index int
	id    string
	text  []byte
}

// add sends a job, and passes on the results that are there. It returns false if the loop has ended.
func (p *part) add(index int, j Job) bool {
	if j.ID == "" {
		j.ID = NewID()
	}
	text, err := encodeLine(j)
	if err != nil {
		return p.yield(Result{Index: index, ID: j.ID, Err: fmt.Errorf("client: job %d: %w", index, err)}, nil)
	}
	if len(p.waiting) > 0 && (len(p.waiting) == maxPart || p.bytes+len(text) > maxPartBytes) && !p.finish() {
		return false
	}
	line := batchLine{index, j.ID, text}
	p.waiting, p.bytes = append(p.waiting, line), p.bytes+len(text)
	if p.stream == nil {
		p.stream = p.client.openBatch(p.ctx)
	}
	if !p.stream.send(line) || len(p.stream.sent) == maxPart {
		return p.finish()
	}
	for {
		select {
		case r, open := <-p.stream.results:
			if !open {
				return p.finish()
			}
			if !p.accept(r) {
				return false
			}
		default:
			return true
		}
	}
}

// encodeLine returns a job as a line. JSON of several lines is sent as bytes with its type, so that it is delivered as it is.
func encodeLine(j Job) ([]byte, error) {
	if raw, ok := j.Body.(json.RawMessage); ok && bytes.ContainsAny(raw, "\r\n") {
		if !json.Valid(raw) {
			return nil, errors.New("body: is not JSON")
		}
		j.Body, j.ContentType = []byte(raw), cmp.Or(j.ContentType, "application/json")
	}
	text, err := wire.Encode(j)
	return append(text, '\n'), err //nolint:wrapcheck // the caller names the job
}

// finish waits until every job has a result, and sends those without one again. It returns false if the loop has ended.
func (p *part) finish() bool {
	for {
		if p.stream == nil && len(p.waiting) > 0 {
			p.stream = p.client.openBatch(p.ctx)
			for _, line := range p.waiting {
				if !p.stream.send(line) {
					break
				}
			}
		}
		before := len(p.waiting)
		if p.stream != nil && !p.drain() {
			return false
		}
		if len(p.waiting) == 0 {
			p.bytes, p.stream, p.pause = 0, nil, backoff{}
			return true
		}
		cause := cmp.Or(p.stream.cause, p.busy, errStreamEnded)
		p.stream, p.busy = nil, nil
		if !isTemporary(cause) {
			p.yield(Result{}, cause)
			return false
		}
		if len(p.waiting) < before { // what was registered is progress
			p.pause = backoff{}
		}
		if err := p.client.waitBefore(p.ctx, &p.pause, cause); err != nil {
			p.yield(Result{}, err)
			return false
		}
	}
}

var errStreamEnded error = &brokenError{errors.New("client: the stream ended before all jobs had a result")}

// drain ends the stream, and passes on its results. It returns false if the loop has ended.
func (p *part) drain() bool {
	_ = p.stream.body.Close()
	for {
		timeout := time.AfterFunc(p.client.opts.Timeout, func() { p.stream.cancel(errNoAnswer) })
		r, open := <-p.stream.results
		timeout.Stop()
		if !open {
			return true
		}
		if !p.accept(r) {
			return false
		}
	}
}

// accept passes on a result, unless its job is sent again. It returns false if the loop has ended.
func (p *part) accept(r batchResult) bool {
	if r.Error != nil && isTemporary(r.Error) {
		p.busy = r.Error
		return true
	}
	if *r.Index < 0 || *r.Index >= len(p.stream.sent) {
		return true
	}
	index := p.stream.sent[*r.Index]
	i := slices.IndexFunc(p.waiting, func(l batchLine) bool { return l.index == index })
	if i < 0 {
		return true
	}
	result := Result{Index: index, ID: p.waiting[i].id, Created: r.Status == http.StatusCreated, Durability: r.Durability}
	if r.Error != nil {
		result.Err = r.Error
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	return p.yield(result, nil)
}

// close ends the stream, if there is one, and waits for its end.
func (p *part) close() {
	if p.stream != nil {
		p.stream.cancel(context.Canceled)
		for range p.stream.results {
		}
	}
}

// batchStream is a request with a line for each job, and a result for each line.
type batchStream struct {
	cancel  context.CancelCauseFunc
	timeout time.Duration
	body    *io.PipeWriter
	sent    []int              // the job of each line
	results <-chan batchResult // closed at the end
	cause   error              // why it ended, once results is closed; nil: all was read
}

// batchResult is a line of the answer.
type batchResult struct {
	Index      *int        `json:"index"` // of the line; nil: why the stream ended
	ID         string      `json:"id"`
	Status     int         `json:"status"`
	Durability *Durability `json:"durability"`
	Error      *Problem    `json:"error"`
}

// openBatch begins a request.
func (c *Client) openBatch(ctx context.Context) *batchStream {
	ctx, cancel := context.WithCancelCause(ctx)
	from, to := io.Pipe()
	results := make(chan batchResult, maxPart+1) // so that reading never waits for the loop
	s := &batchStream{cancel: cancel, timeout: c.opts.Timeout, body: to, results: results}
	go func() {
		defer close(results)
		defer cancel(nil)
		s.cause = c.readBatch(ctx, from, results)
		if s.cause != nil && context.Cause(ctx) == errNoAnswer { //nolint:errorlint // it is the cause itself
			s.cause = fmt.Errorf("client: POST /v1/batch: %w within %s", errNoAnswer, c.opts.Timeout)
		}
		_ = from.CloseWithError(errStreamEnded)
	}()
	return s
}

// send sends a line. It returns false if the stream has ended.
func (s *batchStream) send(line batchLine) bool {
	timeout := time.AfterFunc(s.timeout, func() { s.cancel(errNoAnswer) })
	defer timeout.Stop()
	s.sent = append(s.sent, line.index)
	_, err := s.body.Write(line.text)
	return err == nil
}

// readBatch makes the request, and passes its results on.
func (c *Client) readBatch(ctx context.Context, body io.Reader, results chan<- batchResult) error {
	res, err := c.Do(ctx, http.MethodPost, "/v1/batch", body, http.Header{"Content-Type": {"application/x-ndjson"}})
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return readProblem(res)
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxProblem)
	for lines.Scan() {
		var r batchResult
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if err := wire.Decode(lines.Bytes(), &r); err != nil {
			return &brokenError{fmt.Errorf("client: a result of POST /v1/batch cannot be read: %w", err)} // it was cut off
		}
		if r.Index == nil {
			if r.Error == nil || r.Status == http.StatusBadRequest { // the request was cut off on its way
				return errStreamEnded
			}
			return r.Error
		}
		select {
		case results <- r:
		default:
			return errors.New("client: POST /v1/batch has more results than jobs")
		}
	}
	if err := lines.Err(); err != nil {
		return &brokenError{fmt.Errorf("client: read the results of POST /v1/batch: %w", err)}
	}
	return nil
}
