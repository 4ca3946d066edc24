package client

import (
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

	"github.com/ringback/ringback/client/internal/ndjson"
	"github.com/ringback/ringback/client/internal/retry"
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
	maxBatch      = 1000
	maxBatchBytes = 4 << 20
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
		b := &batch{client: c, ctx: ctx, yield: yield}
		defer b.close()
		index := 0
		for j := range jobs {
			if !b.add(index, j) {
				return
			}
			index++
		}
		b.finish()
	}
}

// RegisterLines is RegisterAll for jobs that are JSON already. Each must be an object on one line, and have an id.
func (c *Client) RegisterLines(ctx context.Context, lines iter.Seq[[]byte]) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		b := &batch{client: c, ctx: ctx, yield: yield}
		defer b.close()
		index := 0
		for text := range lines {
			if !b.addText(index, text) {
				return
			}
			index++
		}
		b.finish()
	}
}

// batch is the jobs without a result, and the stream that they are sent on.
type batch struct {
	client *Client
	ctx    context.Context //nolint:containedctx // a batch lives as long as a call of RegisterAll
	yield  func(Result, error) bool

	waiting []batchLine // without a result, in order
	bytes   int
	stream  *ndjson.Stream[batchResult] // nil: none
	sent    []int                       // the job of each line of the stream
	// unavailable is the 429 or 503 of a job that is sent again.
	unavailable error
	pause       retry.Backoff
}

// batchLine is a job on its way.
type batchLine struct {
	index int
	id    string
	text  []byte
}

// add sends a job, and passes on the results that are there. It returns false if the loop has ended.
func (b *batch) add(index int, j Job) bool {
	if j.ID == "" {
		j.ID = NewID()
	}
	text, err := encodeLine(j)
	if err != nil {
		return b.yield(Result{Index: index, ID: j.ID, Err: fmt.Errorf("client: job %d: %w", index, err)}, nil)
	}
	return b.addLine(batchLine{index, j.ID, text})
}

// addText sends a job that is JSON.
func (b *batch) addText(index int, text []byte) bool {
	var j struct {
		ID string `json:"id"`
	}
	err := json.Unmarshal(text, &j)
	switch {
	case err != nil:
		err = fmt.Errorf("client: job %d: is not a JSON object with an id: %w", index, err)
	case bytes.ContainsAny(text, "\r\n"):
		err = fmt.Errorf("client: job %d: must be on one line", index)
	case j.ID == "":
		err = fmt.Errorf("client: job %d: id: is required, so that a repeat registers it once", index)
	default:
		return b.addLine(batchLine{index, j.ID, append(bytes.Clone(text), '\n')})
	}
	return b.yield(Result{Index: index, ID: j.ID, Err: err}, nil)
}

// addLine sends a line.
func (b *batch) addLine(line batchLine) bool {
	if len(b.waiting) > 0 && (len(b.waiting) == maxBatch || b.bytes+len(line.text) > maxBatchBytes) && !b.finish() {
		return false
	}
	b.waiting, b.bytes = append(b.waiting, line), b.bytes+len(line.text)
	if b.stream == nil {
		b.open()
	}
	if !b.send(line) || len(b.sent) == maxBatch {
		return b.finish()
	}
	for {
		select {
		case r, open := <-b.stream.Results():
			if !open {
				return b.finish()
			}
			if !b.accept(r) {
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
	return append(text, '\n'), err // the caller names the job
}

// finish waits until every job has a result, and sends those without one again. It returns false if the loop has ended.
func (b *batch) finish() bool {
	for {
		if b.stream == nil && len(b.waiting) > 0 {
			b.open()
			for _, line := range b.waiting {
				if !b.send(line) {
					break
				}
			}
		}
		before := len(b.waiting)
		if b.stream != nil && !b.drain() {
			return false
		}
		if len(b.waiting) == 0 {
			b.bytes, b.stream, b.pause = 0, nil, retry.Backoff{}
			return true
		}
		cause := cmp.Or(b.stream.Err(), b.unavailable, ndjson.ErrEnded)
		b.stream, b.unavailable = nil, nil
		if !isTemporary(cause) {
			b.yield(Result{}, cause)
			return false
		}
		if len(b.sent) > 1 && len(b.waiting) == 1 && b.waiting[0].index == b.sent[len(b.sent)-1] {
			b.pause = retry.Backoff{} // the sequence paused, and the server ended a stream whose jobs all had results
			continue
		}
		if len(b.waiting) < before { // what was registered is progress
			b.pause = retry.Backoff{}
		}
		if err := b.client.waitBefore(b.ctx, &b.pause, cause); err != nil {
			b.yield(Result{}, err)
			return false
		}
	}
}

// drain ends the stream, and passes on its results. It returns false if the loop has ended.
func (b *batch) drain() bool {
	b.stream.CloseSend()
	for {
		r, open := b.stream.Receive()
		if !open {
			return true
		}
		if !b.accept(r) {
			return false
		}
	}
}

// accept passes on a result, unless its job is sent again. It returns false if the loop has ended.
func (b *batch) accept(r batchResult) bool {
	if r.Error != nil && isTemporary(r.Error) {
		b.unavailable = r.Error
		return true
	}
	if *r.Index < 0 || *r.Index >= len(b.sent) {
		return true
	}
	index := b.sent[*r.Index]
	i := slices.IndexFunc(b.waiting, func(l batchLine) bool { return l.index == index })
	if i < 0 {
		return true
	}
	result := Result{Index: index, ID: b.waiting[i].id, Created: r.Status == http.StatusCreated, Durability: r.Durability}
	if r.Error != nil {
		result.Err = r.Error
	}
	b.waiting = slices.Delete(b.waiting, i, i+1)
	return b.yield(result, nil)
}

// close ends the stream, if there is one, and waits for its end.
func (b *batch) close() {
	if b.stream != nil {
		b.stream.Close()
	}
}

// batchResult is a line of the answer.
type batchResult struct {
	Index      *int        `json:"index"` // of the line; nil: why the stream ended
	ID         string      `json:"id"`
	Status     int         `json:"status"`
	Durability *Durability `json:"durability"`
	Error      *Problem    `json:"error"`
}

// open begins a request.
func (b *batch) open() {
	b.sent = b.sent[:0]
	b.stream = ndjson.Open(b.ctx, ndjson.Options[batchResult]{
		Name: "POST /v1/batch", Post: b.client.postBatch, Read: readBatchResult, Timeout: b.client.opts.Timeout,
		MaxLines: maxBatch, MaxLineBytes: maxProblem,
	})
}

// send sends a line. It returns false if the stream has ended.
func (b *batch) send(line batchLine) bool {
	b.sent = append(b.sent, line.index)
	return b.stream.Send(line.text)
}

// postBatch begins a request of lines.
func (c *Client) postBatch(ctx context.Context, body io.Reader) (io.ReadCloser, error) {
	res, err := c.Do(ctx, http.MethodPost, "/v1/batch", body, http.Header{"Content-Type": {"application/x-ndjson"}})
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer func() { _ = res.Body.Close() }()
		return nil, ReadProblem(res)
	}
	return res.Body, nil
}

// readBatchResult reads a line of the answer. An error ends the stream.
func readBatchResult(line []byte) (batchResult, error) {
	var r batchResult
	if err := wire.Decode(line, &r); err != nil {
		return r, retry.Incomplete(fmt.Errorf("client: a result of POST /v1/batch cannot be read: %w", err)) // it was cut off
	}
	if r.Index == nil {
		if r.Error == nil || r.Status == http.StatusBadRequest { // the request was cut off on its way
			return r, ndjson.ErrEnded
		}
		return r, r.Error
	}
	return r, nil
}
