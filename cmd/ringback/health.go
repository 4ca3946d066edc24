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

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/internal/inbox"
)

// Bounds of a health check.
const (
	maxHealthTimeout = time.Minute
	maxHealthWait    = 10 * time.Minute
	healthInterval   = 100 * time.Millisecond // between two requests
	maxHealthBody    = 4 << 10                // bytes of a response body that are read
)

// healthCommand is ringback health, which needs no shell or curl in a container. Its address has serve's variable,
// since both run in the same environment there.
type healthCommand struct {
	// Address of the API, as given to serve. 0.0.0.0 and [::] are called on loopback.
	Addr string `default:"127.0.0.1:8080" placeholder:"HOST:PORT"`
	// Check /healthz (the process is alive) instead of /readyz (it accepts and delivers jobs).
	Live bool `variable:"RINGBACK_HEALTH_LIVE"`
	// Timeout of one request, above 0s and up to 1m.
	Timeout time.Duration `default:"3s" placeholder:"DURATION" variable:"RINGBACK_HEALTH_TIMEOUT"`
	// How long to retry until the check passes, 0s to 10m, for a service that is starting.
	Wait time.Duration `default:"0s" placeholder:"DURATION" variable:"RINGBACK_HEALTH_WAIT"`
}

// RunCommand probes until one succeeds or the wait has passed. It returns the last probe's error.
func (c *healthCommand) RunCommand(ctx context.Context, p *process) error {
	q, err := c.probe()
	if err != nil {
		return &usageError{err}
	}
	for began := time.Now(); ; {
		if err := q.run(ctx, c.Timeout); err == nil {
			_, err = fmt.Fprintln(p.stdout, q.want)
			return err
		} else if time.Since(began)+healthInterval > c.Wait {
			return err
		}
		select {
		case <-time.After(healthInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// healthProbe is a path of a server and the status value that it must report.
type healthProbe struct {
	server     *client.Client
	path, want string
}

// probe returns the probe of the flags, or an error that names the invalid flag.
func (c *healthCommand) probe() (healthProbe, error) {
	if c.Timeout <= 0 || c.Timeout > maxHealthTimeout {
		return healthProbe{}, fmt.Errorf("timeout: %s is not above 0s and at most %s", c.Timeout, maxHealthTimeout)
	}
	if c.Wait < 0 || c.Wait > maxHealthWait {
		return healthProbe{}, fmt.Errorf("wait: %s is not between 0s and %s", c.Wait, maxHealthWait)
	}
	// No proxy of the environment: only the process itself may respond.
	server, err := client.New("http://"+callableAddr(c.Addr),
		client.Options{HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}})
	if _, _, split := net.SplitHostPort(c.Addr); err != nil || split != nil {
		return healthProbe{}, fmt.Errorf("addr: %q is not host:port", c.Addr)
	}
	if c.Live {
		return healthProbe{server, "/healthz", "alive"}, nil
	}
	return healthProbe{server, "/readyz", "ready"}, nil
}

// run makes the request; nil: Ringback reported the wanted status.
func (q healthProbe) run(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no response within %s", timeout))
	defer cancel()
	target := q.server.String() + q.path
	resp, err := q.server.Do(ctx, http.MethodGet, q.path, nil, nil)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the URL
		}
		return fmt.Errorf("GET %s: %w", target, err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("GET %s: %s%s", target, resp.Status, problemDetail(resp.Body))
	}
	// A 200 is not enough: other servers send it as well.
	var answer struct {
		Status string `json:"status"`
	}
	if json.NewDecoder(io.LimitReader(resp.Body, maxHealthBody)).Decode(&answer) != nil || answer.Status != q.want {
		return fmt.Errorf("GET %s: %s without status %q: the server is not Ringback", target, resp.Status, q.want)
	}
	return nil
}

// problemDetail returns ": " and the detail of a problem document, or nothing.
func problemDetail(body io.Reader) string {
	var problem struct {
		Detail string `json:"detail"`
	}
	// Another server may have sent anything.
	if json.NewDecoder(io.LimitReader(body, maxHealthBody)).Decode(&problem) != nil || problem.Detail == "" {
		return ""
	}
	return ": " + inbox.Printable(problem.Detail)
}
