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
	maxHealthWait    = 10 * time.Minute
	healthAgain      = 100 * time.Millisecond // between two questions
	healthAnswer     = 4 << 10                // bytes of an answer that are read
)

// healthCommand is ringback health: for people, and for what runs containers, whose images need no shell and no curl.
// It reads serve's own variable for the address, since both see the same environment inside a container.
type healthCommand struct {
	Addr    string        `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of the API to ask, as serve has it; 0.0.0.0 and [::] are asked on loopback."`
	Live    bool          `variable:"RINGBACK_HEALTH_LIVE" help:"Ask whether the process is alive, not whether it takes and delivers jobs."`
	Timeout time.Duration `default:"3s" placeholder:"DURATION" variable:"RINGBACK_HEALTH_TIMEOUT" help:"How long an answer may take, up to 1m."`
	Wait    time.Duration `default:"0s" placeholder:"DURATION" variable:"RINGBACK_HEALTH_WAIT" help:"For how long to ask again until the answer is yes, up to 10m, for a service that is just starting."`
}

// Run asks until the answer is yes or there is no time left. An error says why the last one was no.
func (c *healthCommand) Run(ctx context.Context, p *process) error {
	q, err := c.question()
	if err != nil {
		return &usageError{err}
	}
	for began := time.Now(); ; {
		if err := q.ask(ctx, c.Timeout); err == nil {
			_, err = fmt.Fprintln(p.stdout, q.yes)
			return err
		} else if time.Since(began)+healthAgain > c.Wait {
			return err
		}
		select {
		case <-time.After(healthAgain):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// A healthQuestion is what is asked where, and the status that is a yes.
type healthQuestion struct{ at, yes string }

// question is what the flags ask for. An error says which of them cannot be used.
func (c *healthCommand) question() (healthQuestion, error) {
	if c.Timeout <= 0 || c.Timeout > maxHealthTimeout {
		return healthQuestion{}, fmt.Errorf("timeout: %s is not above 0s and up to %s", c.Timeout, maxHealthTimeout)
	}
	if c.Wait < 0 || c.Wait > maxHealthWait {
		return healthQuestion{}, fmt.Errorf("wait: %s is not in 0s to %s", c.Wait, maxHealthWait)
	}
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil {
		return healthQuestion{}, fmt.Errorf("addr: %q is not host:port", c.Addr)
	}
	if host == "" { // serve takes that for everywhere
		host = "0.0.0.0"
	}
	q := healthQuestion{"/readyz", "ready"}
	if c.Live {
		q = healthQuestion{"/healthz", "alive"}
	}
	q.at = "http://" + reachable(net.JoinHostPort(host, port)) + q.at
	if _, err := url.Parse(q.at); err != nil {
		return healthQuestion{}, fmt.Errorf("addr: %q is not host:port", c.Addr)
	}
	return q, nil
}

// ask is nil when Ringback answers yes.
func (q healthQuestion) ask(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no answer within %s", timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, q.at, http.NoBody)
	if err != nil {
		return fmt.Errorf("ask %s: %w", q.at, err)
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
		return fmt.Errorf("ask %s: %w", q.at, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s%s", q.at, resp.Status, reason(resp.Body))
	}
	// Anybody may answer 200: the inbox does, and so does many another server.
	var answer struct {
		Status string `json:"status"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, healthAnswer)).Decode(&answer) != nil || answer.Status != q.yes {
		return fmt.Errorf("%s answers %s, but not that it is %s: something else than Ringback listens there", q.at, resp.Status, q.yes)
	}
	return nil
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
