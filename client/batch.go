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

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// Result is what became of a job of RegisterAll.
type Result struct {
	// Index is the job's position in the sequence, from 0.
	Index int
	ID    string
	// Created is false if the job was registered before. Repeated is true if RegisterAll has sent it again after a try
	// that may have registered it, and whose answer was lost.
	Created, Repeated bool
	// State is the job's state now. If Created is false it may have ended, and is not sent again: see Revive. Empty: it
	// was refused.
	State      State
	Durability *Durability
	// Err says why the job was refused, as a *Problem if the server did; nil: it is registered.
	Err error
}

// RegisterAll registers a sequence of any length in streams, and returns a result for each job. Of the jobs it keeps at
// most 1,000 or 4 MiB, or one that is larger. A job is sent as soon as the sequence yields it; results are passed on
// between jobs, so a sequence that waits holds them up. Jobs without a result, because a connection broke, and those
// with a 429 or 503 are sent again under their ids, until ctx ends. What is refused is the Err of its result, and does
// not concern the others. An error is the last pair: then jobs that have no result may be registered or not, and can be
// registered again under their ids.
//
// The sequence and the loop over the results run in turn in the caller's goroutine. After a break the sequence is not
// continued, and jobs without a result may be registered.
func (c *Client) RegisterAll(ctx context.Context, jobs iter.Seq[Job]) iter.Seq2[Result, error] {
	return registerAll(ctx, c, jobs, encodeJob)
}

// RegisterLines is RegisterAll for jobs that are JSON already. Each must be an object on one line, and have an id.
func (c *Client) RegisterLines(ctx context.Context, lines iter.Seq[[]byte]) iter.Seq2[Result, error] {
	return registerAll(ctx, c, lines, encodeLine)
}

// registerAll registers items, which encode makes lines.
func registerAll[T any](
	ctx context.Context, c *Client, items iter.Seq[T], encode func(T) (id string, line []byte, err error),
) iter.Seq2[Result, error] {
	return func(yield func(Result, error) bool) {
		b := stream.NewBatch(stream.BatchOptions[batchResult]{
			Open: func() *stream.Stream[stream.BatchAnswer[batchResult]] { return c.openBatch(ctx) },
			Done: func(l stream.BatchLine, r batchResult) bool {
				result := Result{
					Index: l.Index, ID: l.ID, Created: r.Status == http.StatusCreated, Repeated: l.Repeated,
					State: r.State, Durability: r.Durability,
				}
				if r.Error != nil {
					result.Err = r.Error
				}
				return yield(result, nil)
			},
			Failed:      func(err error) { yield(Result{}, err) },
			IsTemporary: isTemporary,
			IsUnprocessed: func(err error) bool {
				_, ended := errors.AsType[streamEndError](err)
				return ended || isUnprocessed(err)
			},
			Wait: func(b *stream.Backoff, cause error) error { return c.waitBefore(ctx, b, cause) },
		})
		defer b.Close()
		index := 0
		for item := range items {
			id, text, err := encode(item)
			var more bool
			if err != nil {
				more = yield(Result{Index: index, ID: id, Err: fmt.Errorf("client: job %d: %w", index, err)}, nil)
			} else {
				more = b.Add(stream.BatchLine{Index: index, ID: id, Text: text})
			}
			if !more {
				return
			}
			index++
		}
		b.Finish()
	}
}

// encodeJob returns a job as a line. JSON of several lines is sent as bytes with its type, so that it is delivered as
// it is.
func encodeJob(j Job) (id string, line []byte, err error) {
	if j.ID == "" {
		j.ID = NewID()
	}
	if raw, ok := j.Body.(json.RawMessage); ok && bytes.ContainsAny(raw, "\r\n") {
		if !json.Valid(raw) {
			return j.ID, nil, errors.New("body: is not JSON")
		}
		j.Body, j.ContentType = []byte(raw), cmp.Or(j.ContentType, "application/json")
	}
	text, err := wire.Encode(j)
	return j.ID, append(text, '\n'), err // the caller names the job
}

// encodeLine returns a job that is JSON as a line.
func encodeLine(text []byte) (id string, line []byte, err error) {
	var j struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return j.ID, nil, fmt.Errorf("is not a JSON object with an id: %w", err)
	}
	switch {
	case bytes.ContainsAny(text, "\r\n"):
		return j.ID, nil, errors.New("must be on one line")
	case j.ID == "":
		return "", nil, errors.New("id: is required, so that a repeat registers it once")
	}
	return j.ID, append(bytes.Clone(text), '\n'), nil
}

// batchResult is a line of the answer.
type batchResult struct {
	Index      *int        `json:"index"` // of the line; nil: why the stream ended
	ID         string      `json:"id"`
	Status     int         `json:"status"`
	State      State       `json:"state"`
	Durability *Durability `json:"durability"`
	Error      *Problem    `json:"error"`
}

// streamEndError is why the server ended a stream: lines without a result are not registered.
type streamEndError struct{ *Problem }

func (p streamEndError) Unwrap() error { return p.Problem }

// openBatch begins a request.
func (c *Client) openBatch(ctx context.Context) *stream.Stream[stream.BatchAnswer[batchResult]] {
	return stream.OpenStream(ctx, stream.Options[stream.BatchAnswer[batchResult]]{
		Name: "POST /v1/batch", Post: c.postBatch, Read: readBatchResult, Timeout: c.opts.Timeout,
		MaxLines: stream.MaxLines, MaxLineBytes: maxProblem,
	})
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
func readBatchResult(line []byte) (a stream.BatchAnswer[batchResult], err error) {
	r := &a.Result
	if err := wire.Decode(line, r); err != nil {
		// it was cut off
		return a, stream.Incomplete(fmt.Errorf("client: a result of POST /v1/batch cannot be read: %w", err))
	}
	if r.Index == nil {
		if r.Error == nil || r.Status == http.StatusBadRequest { // the request was cut off on its way
			return a, stream.ErrEnded
		}
		return a, streamEndError{r.Error}
	}
	a.Line = *r.Index
	if r.Error != nil && isTemporary(r.Error) {
		a.Again = r.Error
	}
	return a, nil
}
