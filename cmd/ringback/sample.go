package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ringback/ringback/internal/inbox"
)

// sampleTimeout bounds each of the sample's two requests.
const sampleTimeout = 10 * time.Second

// sample registers a job to /flaky with a short ladder through the API, unless the store has ever had a job.
func (g banner) sample(ctx context.Context) (registered bool, err error) {
	var stats struct {
		Totals struct {
			Registered int64 `json:"registered"`
		} `json:"totals"`
	}
	if err := g.call(ctx, http.MethodGet, "/v1/stats", "", http.StatusOK, &stats); err != nil {
		return false, err
	}
	if stats.Totals.Registered > 0 {
		return false, nil
	}
	body := fmt.Sprintf(`{"id": "sample", "topic": "sample", "url": "http://%s/flaky", "ladder": ["1s", "2s"], `+
		`"body": {"hello": "from the sample job"}}`, g.inbox)
	return true, g.call(ctx, http.MethodPost, "/v1/jobs", body, http.StatusCreated, nil)
}

// call makes one request to the API.
func (g banner) call(ctx context.Context, method, path, body string, want int, into any) error {
	ctx, cancel := context.WithTimeoutCause(ctx, sampleTimeout, errors.New("no response in time"))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://"+g.api+path, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("call the API: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if len(g.tokens) > 0 {
		req.Header.Set("Authorization", "Bearer "+string(g.tokens[0]))
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("call the API: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return fmt.Errorf("read the API's response: %w", err)
	}
	if resp.StatusCode != want {
		return fmt.Errorf("%s %s: %s: %s", method, path, resp.Status, inbox.Printable(string(text)))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("read the API's response: %w", err)
	}
	return nil
}
