package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/ringback/ringback/client"
)

// Bounds of requests and answers. A batch has at most 16 MiB.
const (
	maxRequestBytes = 4 << 20 // of several jobs; one may have up to maxJobBytes
	maxAnswerBytes  = 16 << 20
)

// register registers the jobs of rows in one request. It sets registered or problem of every row that has a result,
// also if it returns an error. Of a request that is refused as a whole, for one job that cannot be read or for its
// size, both halves are sent alone. A proxy in front of Ringback refuses jobs only for their size.
func (r *Relay) register(ctx context.Context, rows []*row) error {
	err := r.post(ctx, rows)
	problem, _ := errors.AsType[*client.Problem](err)
	if !errors.Is(err, client.ErrInvalid) || problem.Code == "" && problem.Status != http.StatusRequestEntityTooLarge {
		return err
	}
	if half := len(rows) / 2; half > 0 {
		if err := r.register(ctx, rows[:half]); err != nil {
			return err
		}
		return r.register(ctx, rows[half:])
	}
	rows[0].problem = problem
	return nil
}

// result is the result of a job in a batch.
type result struct {
	Error *client.Problem `json:"error"`
}

// post makes one request, without repeats: rows without a result are released, and are tried again with the next batch.
func (r *Relay) post(ctx context.Context, rows []*row) error {
	body := []byte(`{"jobs":[`)
	sent := make([]*row, 0, len(rows))
	for _, w := range rows {
		if w.job == nil {
			continue
		}
		if len(sent) > 0 {
			body = append(body, ',')
		}
		body = append(body, w.job...)
		sent = append(sent, w)
	}
	if len(sent) == 0 {
		return nil
	}
	res, err := r.client.Do(ctx, http.MethodPost, "/v1/batch", bytes.NewReader(append(body, `]}`...)), nil)
	if err != nil {
		return fmt.Errorf("register jobs: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("register jobs: %w", client.ReadProblem(res))
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswerBytes))
	if err != nil {
		return fmt.Errorf("register jobs: read the results: %w", err)
	}
	var answer struct {
		Results []result `json:"results"`
	}
	if err := json.Unmarshal(text, &answer); err != nil || len(answer.Results) != len(sent) {
		return fmt.Errorf("register jobs: the answer has %d results for %d jobs: is there a proxy in front of "+
			"Ringback?", len(answer.Results), len(sent))
	}
	for i, w := range sent {
		w.problem, w.registered = answer.Results[i].Error, answer.Results[i].Error == nil
	}
	return nil
}

// isTemporary reports whether a problem may pass without a change of the job.
func isTemporary(p *client.Problem) bool {
	return p.Status == http.StatusRequestTimeout || p.Status == http.StatusTooManyRequests ||
		p.Status >= http.StatusInternalServerError
}
