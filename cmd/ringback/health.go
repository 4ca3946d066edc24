package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"
)

// Bounds of a health check.
const (
	maxHealthTimeout = time.Minute
	healthAnswer     = 4 << 10 // bytes of an answer that are read
)

// healthCommand is ringback health: for people, and for what runs containers, whose images need no shell and no curl.
// It reads serve's own variable for the address, since both see the same environment inside a container.
type healthCommand struct {
	Addr    string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the API to ask, as serve has it; 0.0.0.0 and [::] are asked on loopback."`
	Live    bool          `variable:"RINGBACK_HEALTH_LIVE" help:"Ask whether the process is alive, not whether it takes and delivers jobs."`
	Timeout time.Duration `default:"3s" placeholder:"DURATION" variable:"RINGBACK_HEALTH_TIMEOUT" help:"How long the whole check may take, up to 1m."`
}

// Run asks once. An error says why the answer is no.
func (c *healthCommand) Run(ctx context.Context, p *process) error {
	if c.Timeout <= 0 || c.Timeout > maxHealthTimeout {
		return fmt.Errorf("timeout: %s is not above 0s and up to %s", c.Timeout, maxHealthTimeout)
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return fmt.Errorf("addr: %q is not host:port", c.Addr)
	}
	if host == "" { // serve takes that for everywhere
		host = "0.0.0.0"
	}
	path, yes := "/readyz", "ready"
	if c.Live {
		path, yes = "/healthz", "alive"
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.Timeout, fmt.Errorf("no answer within %s", c.Timeout))
	defer cancel()
	if err := askHealth(ctx, "http://"+reachable(net.JoinHostPort(host, port))+path); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.stdout, yes)
	return err
}

// askHealth is nil when url answers 200.
func askHealth(ctx context.Context, at string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", at, err)
	}
	// A transport of its own: neither a proxy of the environment nor a redirect may answer for the process.
	transport := &http.Transport{DisableKeepAlives: true}
	client := &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // it names the address once more
		}
		return fmt.Errorf("ask %s: %w", at, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusOK {
		return nil
	}
	return fmt.Errorf("%s answers %s%s", at, resp.Status, reason(resp.Body))
}

// reason is what a problem says in detail, as the end of a sentence; nothing when it says nothing.
func reason(body io.Reader) string {
	var problem struct {
		Detail string `json:"detail"`
	}
	// Whoever else listens there may answer anything; the status is said in any case.
	if json.NewDecoder(io.LimitReader(body, healthAnswer)).Decode(&problem) != nil || problem.Detail == "" {
		return ""
	}
	return ": " + printable([]byte(problem.Detail))
}
