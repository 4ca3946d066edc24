package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const (
	sqliteEngine = "SQLite"
	redisEngine  = "Redis"

	// batchJobs is the number of jobs of a batch, batchClients the number of concurrent requests.
	batchJobs    = 5000
	batchClients = 4
	// readyTime bounds the wait until Ringback is ready.
	readyTime = time.Minute
)

var engines = []string{redisEngine, sqliteEngine}

// obj is a JSON object.
type obj map[string]any

// isOurs reports whether a contestant is Ringback, by its name.
func isOurs(name string) bool { return strings.HasPrefix(name, "Ringback") }

func ours(engine string) string { return "Ringback, " + engine }

// A store is a store of Ringback.
type store struct {
	url   string
	dir   string       // of SQLite
	redis *redisServer // nil for SQLite
}

// newStore returns an empty store.
func (b *bench) newStore(ctx context.Context, engine string) (*store, error) {
	if engine == sqliteEngine {
		dir, err := b.folder("sqlite")
		return &store{url: "sqlite:" + filepath.Join(dir, "ringback.db"), dir: dir}, err
	}
	s, err := b.startRedis(ctx)
	if err != nil {
		return nil, err
	}
	return &store{url: "redis://" + s.addr, redis: s}, nil
}

// end also removes the stored data.
func (s *store) end() {
	if s.redis != nil {
		s.redis.end()
		return
	}
	remove(s.dir)
}

// A ringback is a process of the real binary with its defaults, except that receivers on loopback are allowed.
type ringback struct {
	*process
	url    string
	took   time.Duration // from its start until it was ready
	client *http.Client
}

var listening = regexp.MustCompile(`msg=listening addr=(\S+)`)

func (b *bench) startRingback(ctx context.Context, s *store, args ...string) (*ringback, error) {
	cmd := exec.CommandContext(context.WithoutCancel(ctx), b.program, //nolint:gosec // built by us
		append([]string{"serve", "--addr=127.0.0.1:0", "--store=" + s.url, "--allow-private"}, args...)...)
	for _, pair := range os.Environ() {
		if !strings.HasPrefix(pair, "RINGBACK_") {
			cmd.Env = append(cmd.Env, pair)
		}
	}
	began := time.Now()
	p, err := b.start("ringback", cmd, syscall.SIGTERM)
	if err != nil {
		return nil, err
	}
	r := &ringback{process: p, client: &http.Client{
		Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: 2 * workers},
	}}
	if err := r.becomesReady(ctx); err != nil {
		p.kill()
		return nil, p.failed(err)
	}
	r.took = time.Since(began)
	return r, nil
}

// openedRingback starts Ringback on a new store, and returns a function that ends both.
func (b *bench) openedRingback(ctx context.Context, engine string) (*ringback, func(), error) {
	s, err := b.newStore(ctx, engine)
	if err != nil {
		return nil, nil, err
	}
	r, err := b.startRingback(ctx, s)
	if err != nil {
		s.end()
		return nil, nil, err
	}
	return r, func() {
		r.kill()
		s.end()
	}, nil
}

// becomesReady waits until the log has the address at which the process listens, and /readyz answers 200.
func (r *ringback) becomesReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if r.url == "" {
			text, err := os.ReadFile(r.log)
			if err != nil {
				return fmt.Errorf("read its log: %w", err)
			}
			if found := listening.FindSubmatch(text); found != nil {
				r.url = "http://" + string(found[1])
			}
		}
		if r.url != "" && r.call(ctx, http.MethodGet, "/readyz", nil, http.StatusOK, nil) == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.gone:
			return errors.New("ended at its start")
		case <-ctx.Done():
			return errors.New("is not ready")
		}
	}
}

// call makes one request, which must be answered with status. It decodes the answer into into, unless that is nil.
func (r *ringback) call(ctx context.Context, method, path string, in any, status int, into any) error {
	var text []byte
	switch in := in.(type) {
	case nil:
	case []byte:
		text = in
	default:
		var err error
		if text, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, r.url+path, bytes.NewReader(text))
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if text != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }() // read to its end
	got, err := io.ReadAll(resp.Body)
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, path, err)
	case resp.StatusCode != status:
		return fmt.Errorf("%s %s: answered %s: %.300s", method, path, resp.Status, got)
	case into == nil:
		return nil
	}
	if raw, ok := into.(*[]byte); ok {
		*raw = got
		return nil
	}
	if err := json.Unmarshal(got, into); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// topic makes a topic with a policy and a secret, so that every attempt is signed.
func (r *ringback) topic(ctx context.Context, name string, policy obj) error {
	if err := r.call(ctx, http.MethodPut, "/v1/topics/"+name, policy, http.StatusOK, nil); err != nil {
		return err
	}
	return r.call(ctx, http.MethodPost, "/v1/topics/"+name+"/secrets", nil, http.StatusCreated, nil)
}

// fill registers n jobs in batches; job appends the i-th as JSON.
func (r *ringback) fill(ctx context.Context, n int, job func(text []byte, i int) []byte) error {
	return spread(ctx, batchClients, (n+batchJobs-1)/batchJobs, func(ctx context.Context, k int) error {
		return r.batch(ctx, batchText(k*batchJobs, min(n, (k+1)*batchJobs), job))
	})
}

// A batch is the text of a batch and its number of jobs.
type batch struct {
	text []byte
	jobs int
}

// batchText returns the batch of the jobs from one index to before another.
func batchText(from, to int, job func(text []byte, i int) []byte) batch {
	text := append(make([]byte, 0, 512*(to-from)), `{"jobs":[`...)
	for i := from; i < to; i++ {
		if i > from {
			text = append(text, ',')
		}
		text = job(text, i)
	}
	return batch{append(text, "]}"...), to - from}
}

// batch registers jobs, all of which must be accepted.
func (r *ringback) batch(ctx context.Context, b batch) error {
	var got []byte
	if err := r.call(ctx, http.MethodPost, "/v1/batch", b.text, http.StatusOK, &got); err != nil {
		return err
	}
	if taken := bytes.Count(got, []byte(`"status":201`)); taken != b.jobs {
		return fmt.Errorf("%d of %d jobs of a batch were taken: %.300s", taken, b.jobs, got)
	}
	return nil
}

// delivered waits until all jobs of a topic are recorded as delivered.
func (r *ringback) delivered(ctx context.Context, topic string, jobs int) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		var counts struct{ Delivered, Dead, Registered int }
		if err := r.call(ctx, http.MethodGet, "/v1/topics/"+topic+
			"/stats?limit=1", nil, http.StatusOK, &counts); err != nil {
			return err
		}
		if counts.Delivered == jobs && counts.Registered == jobs {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("of %d jobs, %+v are recorded", jobs, counts)
		}
	}
}
