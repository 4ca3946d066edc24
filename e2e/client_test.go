package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// client calls the API. It keeps enough connections for all clients of a test.
var client = &http.Client{
	Timeout:   testkit.MustCome,
	Transport: &http.Transport{MaxIdleConnsPerHost: 256, MaxIdleConns: 1024},
}

// obj is a JSON object.
type obj map[string]any

// view is a job in the API's form.
type view struct {
	ID              string    `json:"id"`
	Topic           string    `json:"topic"`
	State           string    `json:"state"`
	Reason          string    `json:"reason"`
	URL             string    `json:"url"`
	Version         int64     `json:"revision"`
	Generation      int       `json:"generation"`
	AttemptsMade    int       `json:"attempts_made"`
	CancelRequested bool      `json:"cancel_requested"`
	NextAttemptAt   time.Time `json:"next_attempt_at"`
	Attempts        []struct {
		N          int       `json:"n"`
		Kind       string    `json:"kind"`
		StartedAt  time.Time `json:"started_at"`
		DurationMS float64   `json:"duration_ms"`
		Status     int       `json:"status"`
		Verdict    string    `json:"verdict"`
		ErrorClass string    `json:"error_class"`
	} `json:"attempts"`
	Events []struct {
		Kind string `json:"kind"`
	} `json:"events"`
}

// changes returns the kinds of the job's events.
func (v view) changes() []string {
	var all []string
	for _, e := range v.Events {
		all = append(all, e.Kind)
	}
	return all
}

// kinds returns the kinds of the job's attempts.
func (v view) kinds() []string {
	var all []string
	for _, a := range v.Attempts {
		all = append(all, a.Kind)
	}
	return all
}

// send makes one request. A body other than a string is sent as JSON.
func send(url, method, path string, body any) (status int, answer []byte, err error) {
	status, _, answer, err = exchange(url, method, path, body)
	return status, answer, err
}

// exchange is send with the response's header.
func exchange(url, method, path string, body any) (status int, header http.Header, answer []byte, err error) {
	var text []byte
	switch b := body.(type) {
	case nil:
	case string:
		text = []byte(b)
	default:
		if text, err = json.Marshal(b); err != nil {
			return 0, nil, nil, err
		}
	}
	req, err := http.NewRequest(method, url+path, bytes.NewReader(text))
	if err != nil {
		return 0, nil, nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if answer, err = io.ReadAll(resp.Body); err != nil {
		return 0, nil, nil, err
	}
	return resp.StatusCode, resp.Header, answer, nil
}

// call makes one request, requires a status, and decodes the response.
func call[T any](t testing.TB, p *process, method, path string, body any, status int) T {
	t.Helper()
	got, answer, err := send(p.url, method, path, body)
	require.NoError(t, err)
	require.Equal(t, status, got, "%s %s: %s", method, path, answer)
	var into T
	if len(answer) > 0 {
		require.NoError(t, json.Unmarshal(answer, &into), "%s %s: %s", method, path, answer)
	}
	return into
}

// register registers a new job.
func register(t testing.TB, p *process, job obj) view {
	t.Helper()
	return call[view](t, p, http.MethodPost, "/v1/jobs", job, http.StatusCreated)
}

// get returns a job.
func get(t testing.TB, p *process, id string) view {
	t.Helper()
	return call[view](t, p, http.MethodGet, "/v1/jobs/"+id, nil, http.StatusOK)
}

// await waits until a job has a state, and returns it.
func await(t testing.TB, p *process, id, state string) view {
	t.Helper()
	var last view
	eventually(t, func() bool {
		last = get(t, p, id)
		return last.State == state
	}, "job %s does not become %s", id, state)
	return last
}

// counts are the API's totals of all topics.
type counts struct {
	Registered, Scheduled, Ready, Running, Delivered, Dead, Cancelled int64
}

func (c counts) pending() int64 { return c.Scheduled + c.Ready + c.Running }

// agree reports whether the counts of all states add up to the registered jobs.
func (c counts) agree() bool { return c.Registered == c.Delivered+c.Dead+c.Cancelled+c.pending() }

func (c counts) String() string {
	return fmt.Sprintf("registered %d = delivered %d + dead %d + cancelled %d + pending %d",
		c.Registered, c.Delivered, c.Dead, c.Cancelled, c.pending())
}
