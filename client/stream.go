package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/ringback/ringback/client/internal/stream"
	"github.com/ringback/ringback/client/internal/wire"
)

// StreamOptions select the updates of a stream.
type StreamOptions struct {
	Topic   string `json:"topic"`
	Lane    string `json:"lane"`
	Verdict string `json:"verdict"` // delivered, again, dead or released: only attempts with it
}

// StreamUpdate is something that happened: one of its fields is set, or none if the update is of a kind that this
// version does not know.
type StreamUpdate struct {
	// attempt, change, skipped, or another; connected and resumed: there is a connection, or another one
	Kind    string
	Data    json.RawMessage // as it was sent
	Attempt *StreamAttempt
	Change  *StreamChange
	Skipped int64 // updates that the server left out
	// Resumed: the connection broke and there is a new one. The updates between them are missing.
	Resumed bool
}

// StreamAttempt is an attempt without its response, and its job.
type StreamAttempt struct {
	AttemptSummary

	ID     string            `json:"id"` // of the job
	Topic  string            `json:"topic"`
	Lane   string            `json:"lane"`
	Labels map[string]string `json:"labels"`
	LateMS *float64          `json:"late_ms"` // from when the attempt was due to its start; nil: not known
}

// StreamChange is a change of a job, a lane or a topic.
type StreamChange struct {
	At     time.Time         `json:"at"`
	Kind   string            `json:"kind"` // created, edited, run, revived, cancelled, dead, paused, resumed
	ID     string            `json:"id"`   // of the job; empty: a lane or a topic
	Topic  string            `json:"topic"`
	Lane   string            `json:"lane"` // empty: a topic
	Labels map[string]string `json:"labels"`
	Fields []string          `json:"fields"` // that were edited
	Actor  string            `json:"actor"`
	Reason string            `json:"reason"`
}

// streamSkipped is the data of an update skipped.
type streamSkipped struct {
	Skipped int64 `json:"skipped"`
}

// idleTimeout is the least time without a byte after which a stream is broken: servers send a comment every 15 s.
const idleTimeout = 45 * time.Second

// Stream returns attempts and changes as they happen, until ctx ends or the loop breaks. A broken connection is
// replaced, which an update with Resumed says. It is a view, not a queue: the server leaves out updates of fast times,
// and those of a pause in the connection.
func (c *Client) Stream(ctx context.Context, o StreamOptions) iter.Seq2[*StreamUpdate, error] {
	return func(yield func(*StreamUpdate, error) bool) {
		target := "/v1/stream"
		if q := wire.Values(o); len(q) > 0 {
			target += "?" + q.Encode()
		}
		var pause stream.Backoff
		for first := true; ; first = false {
			more, began, err := c.stream(ctx, target, first, yield)
			if !more {
				return
			}
			if began {
				pause = stream.Backoff{}
			}
			if isTemporary(err) {
				err = c.waitBefore(ctx, &pause, err)
			}
			if err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// stream reads one connection until it ends. more is false if the loop has ended, and began true if the server has
// begun to send.
func (c *Client) stream(
	ctx context.Context, target string, first bool, yield func(*StreamUpdate, error) bool,
) (more, began bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	bound := c.opts.Timeout
	idle := time.AfterFunc(bound, func() { cancel(stream.ErrNoAnswer) })
	defer idle.Stop()
	res, err := c.Do(ctx, http.MethodGet, target, nil, nil)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode != http.StatusOK {
			return true, false, ReadProblem(res)
		}
		kind := "connected"
		if !first {
			kind = "resumed"
		}
		if !yield(&StreamUpdate{Kind: kind, Resumed: !first}, nil) {
			return false, true, nil
		}
		began, bound = true, max(bound, idleTimeout)
		idle.Reset(bound)
		more, err = readUpdates(res.Body, func() { idle.Reset(bound) }, yield)
		if !more {
			return false, true, nil
		}
	}
	if errors.Is(context.Cause(ctx), stream.ErrNoAnswer) {
		err = fmt.Errorf("client: GET %s: %w within %s", target, stream.ErrNoAnswer, bound)
	}
	return true, began, err
}

// readUpdates reads updates. It returns why they end, or false if the loop has ended.
func readUpdates(from io.Reader, heard func(), yield func(*StreamUpdate, error) bool) (more bool, _ error) {
	for e, err := range stream.Events(from, heard) {
		if err != nil {
			return true, stream.Incomplete(fmt.Errorf("client: read the stream: %w", err))
		}
		update, err := newStreamUpdate(e.Kind, e.Data)
		if err != nil {
			return true, err
		}
		if !yield(update, nil) {
			return false, nil
		}
	}
	return false, nil
}

// newStreamUpdate returns an update; an update problem is an error.
func newStreamUpdate(kind string, data []byte) (*StreamUpdate, error) {
	e := &StreamUpdate{Kind: kind, Data: data}
	var into any
	var skipped streamSkipped
	p := new(Problem)
	switch kind {
	case "attempt":
		e.Attempt = new(StreamAttempt)
		into = e.Attempt
	case "change":
		e.Change = new(StreamChange)
		into = e.Change
	case "skipped":
		into = &skipped
	case "problem":
		into = p
	default:
		return e, nil
	}
	if err := wire.Decode(data, into); err != nil {
		return nil, fmt.Errorf("client: an update %s of the stream cannot be read: %w", kind, err)
	}
	if kind == "problem" {
		return nil, p
	}
	e.Skipped = skipped.Skipped
	return e, nil
}
