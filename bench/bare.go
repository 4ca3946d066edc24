package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// A poster sends bodies to one URL. It keeps a connection for each worker and reads each answer to its end, so that the
// connection is reused. The bare loop and the handlers of asynq and River use it.
type poster struct {
	client *http.Client
	url    string
}

func newPoster(url string, workers int) *poster {
	return &poster{url: url, client: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: workers, DisableCompression: true,
	}}}
}

func (p *poster) post(ctx context.Context, text []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	req.Header["Content-Type"] = []string{"application/json"}
	return p.do(req, http.StatusOK)
}

// do sends a request, which must be answered with status.
func (p *poster) do(req *http.Request, status int) error {
	resp, err := p.client.Do(req)
	if err != nil {
		return fmt.Errorf("post: %w", err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if resp.StatusCode != status {
		return fmt.Errorf("answered %s", resp.Status)
	}
	return nil
}

// spread calls do for 0 to n-1 from a number of goroutines, until one of them fails.
func spread(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if err := do(ctx, i); err != nil {
					cancel(err)
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// turnJobs is how many bodies a worker of the bare loop sends to a lane before it takes the next, as Ringback's do. It
// divides all numbers of jobs.
const turnJobs = 8

// asBare is the role of the bare loop, the limit of the machine: workers that POST the same body in a loop, without a
// queue. Each lane has its own connections.
func asBare() (func(context.Context, order) (answer, error), error) {
	text := body(time.Now())
	return func(ctx context.Context, o order) (answer, error) {
		lanes := make([]*poster, max(1, o.Lanes))
		for i := range lanes {
			lanes[i] = newPoster(o.URL, o.Concurrency)
			defer lanes[i].client.CloseIdleConnections()
		}
		return answer{}, spread(ctx, o.Concurrency, o.Jobs/turnJobs, func(ctx context.Context, i int) error {
			for range turnJobs {
				if err := lanes[i%len(lanes)].post(ctx, text); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// A newJob has the fields of a registration that this program sends.
type newJob struct {
	Topic string          `json:"topic"`
	URL   string          `json:"url"`
	Body  json.RawMessage `json:"body"`
	Delay string          `json:"delay"`
}

// A jobAnswer has the fields of Ringback's answer, in the same order.
type jobAnswer struct {
	ID            string          `json:"id"`
	Topic         string          `json:"topic"`
	Lane          string          `json:"lane"`
	URL           string          `json:"url"`
	Method        string          `json:"method"`
	ContentType   string          `json:"content_type"`
	State         string          `json:"state"`
	Made          int             `json:"attempts_made"`
	NextAttemptAt time.Time       `json:"next_attempt_at"`
	CreatedAt     time.Time       `json:"created_at"`
	Version       int             `json:"revision"`
	Generation    int             `json:"generation"`
	Body          json.RawMessage `json:"body"`
}

// asHandler is the role of the bare handler, the limit of registrations: it decodes and answers the same JSON, and
// stores nothing.
func asHandler() (func(context.Context, order) (answer, error), error) {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/jobs", func(w http.ResponseWriter, r *http.Request) {
		var n newJob
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		delay, err := time.ParseDuration(n.Delay)
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		now := time.Now().UTC().Truncate(time.Millisecond)
		id := rand.Text()
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Location", "/v1/jobs/"+id)
		w.Header().Set("ETag", `"1"`)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(jobAnswer{ // an error means that the client has left
			ID: id, Topic: n.Topic, Lane: "127.0.0.1:9", URL: n.URL, Method: http.MethodPost,
			ContentType: "application/json", State: "scheduled", NextAttemptAt: now.Add(delay), CreatedAt: now,
			Version: 1, Body: n.Body,
		})
	})
	url, err := serve(mux)
	if err != nil {
		return nil, err
	}
	return func(context.Context, order) (answer, error) { return answer{URL: url}, nil }, nil
}
