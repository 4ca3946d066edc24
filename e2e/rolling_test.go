package e2e

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

const (
	// checkEvery is how often a balancer asks each process whether it is ready, as load balancers do.
	checkEvery = 100 * time.Millisecond
	// checkLasts is how long an answer counts, from the moment the question was asked: far less than the drain in the
	// tests, so that a slow machine does not send a client to a port that is closed.
	checkLasts = 500 * time.Millisecond
)

// balancer sends each request to a ready process.
type balancer struct {
	t      testing.TB
	ctx    context.Context
	checks sync.WaitGroup
	mu     sync.Mutex
	ready  map[*process]time.Time // time of the last successful check
}

func newBalancer(t testing.TB) *balancer {
	ctx, cancel := context.WithCancel(t.Context())
	b := &balancer{t: t, ctx: ctx, ready: make(map[*process]time.Time)}
	t.Cleanup(func() {
		cancel()
		b.checks.Wait()
	})
	return b
}

// add checks a process until it exits.
func (b *balancer) add(p *process) {
	b.checks.Go(func() {
		tick := time.NewTicker(checkEvery)
		defer tick.Stop()
		for {
			asked := time.Now()
			yes := b.check(p)
			b.mu.Lock()
			if delete(b.ready, p); yes {
				b.ready[p] = asked
			}
			b.mu.Unlock()
			select {
			case <-tick.C:
			case <-p.gone:
				return
			case <-b.ctx.Done():
				return
			}
		}
	})
}

// check updates the readiness of a process.
func (b *balancer) check(p *process) bool {
	ctx, cancel := context.WithTimeout(b.ctx, checkLasts)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	resp, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = resp.Body.Close() // only the status matters
	return resp.StatusCode == http.StatusOK
}

// pick returns a ready process.
func (b *balancer) pick() (*process, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	var all []*process
	for p, asked := range b.ready {
		if time.Since(asked) < checkLasts {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil, false
	}
	return all[rand.N(len(all))], true
}

// sees waits until the balancer finds a process ready.
func (b *balancer) sees(p *process) {
	b.t.Helper()
	eventually(b.t, func() bool {
		b.mu.Lock()
		defer b.mu.Unlock()
		return !b.ready[p].IsZero()
	})
}

// traffic is a number of clients behind a balancer that register jobs one by one. They retry after 503 only.
type traffic struct {
	*balancer
	over    atomic.Bool
	clients sync.WaitGroup
	mu      sync.Mutex
	ids     []string
	again   int     // answers of 503
	faults  []error // what a client may not meet
}

// newTraffic starts traffic. job returns the n-th job of a client, without its id.
func newTraffic(t testing.TB, b *balancer, clients int, job func(n int) obj) *traffic {
	tr := &traffic{balancer: b}
	for c := range clients {
		tr.clients.Go(func() {
			for n := 0; !tr.over.Load(); n++ {
				j, id := job(n), fmt.Sprintf("client-%d-%d", c, n)
				j["id"] = id
				err := tr.register(j)
				tr.mu.Lock()
				if err != nil {
					tr.faults = append(tr.faults, err)
				} else {
					tr.ids = append(tr.ids, id)
				}
				tr.mu.Unlock()
			}
		})
	}
	t.Cleanup(tr.end)
	return tr
}

// end stops the clients between two jobs and waits for them.
func (tr *traffic) end() {
	tr.over.Store(true)
	tr.clients.Wait()
}

// register registers a job.
func (tr *traffic) register(job obj) error {
	for giveUp := time.Now().Add(testkit.MustCome); time.Now().Before(giveUp); <-time.After(5 * time.Millisecond) {
		p, ok := tr.pick()
		if !ok {
			continue // no process is ready: see the end of this loop
		}
		status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", job)
		switch {
		case err != nil:
			return err
		case status == http.StatusServiceUnavailable:
			tr.mu.Lock()
			tr.again++
			tr.mu.Unlock()
		case status == http.StatusCreated || status == http.StatusOK:
			return nil
		default:
			return fmt.Errorf("%d %s", status, answer)
		}
	}
	return errors.New("no process accepted the job")
}

// grows waits until some more jobs are accepted.
func (tr *traffic) grows(t testing.TB, by int) {
	t.Helper()
	size := func() int {
		tr.mu.Lock()
		defer tr.mu.Unlock()
		require.Empty(t, tr.faults)
		return len(tr.ids)
	}
	for until := size() + by; size() < until; {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.FailNow()
		}
	}
}

func TestRollingRestart_LosesAndRepeatsNothing(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		const (
			processes = 3
			drain     = 8 * checkLasts
		)
		flags := []string{"--grace=10m", "--drain=" + drain.String()}
		r, b := newReceiver(t), newBalancer(t)
		var all []*process
		launched := func() {
			p := start(t, store, flags...)
			b.add(p)
			b.sees(p)
			all = append(all, p)
		}
		for range processes {
			launched()
		}
		tr := newTraffic(t, b, 6, func(n int) obj {
			j := obj{"topic": "rolling", "lane": fmt.Sprintf("lane-%d", n%8), "url": r.URL + "/hold/50ms"}
			if n%4 == 0 {
				j["delay"] = "500ms"
			}
			return j
		})
		var stops []time.Duration
		for range processes {
			tr.grows(t, 100)
			launched()
			code, took := all[0].terminate()
			require.Zero(t, code, "the exit code of an orderly stop")
			require.GreaterOrEqual(t, took, drain)
			stops = append(stops, took.Round(time.Millisecond))
			all = all[1:]
		}
		tr.grows(t, 100)
		tr.end()
		require.Empty(t, tr.faults, "an insert failed with something else than 503")

		eventually(t, func() bool { return count(t, all[0]).pending() == 0 })
		sum := count(t, all[1])
		require.EqualValues(t, len(tr.ids), sum.Registered, sum.String())
		require.EqualValues(t, len(tr.ids), sum.Delivered, sum.String())
		for _, id := range tr.ids {
			require.Len(t, r.of(id), 1, "job %s", id)
		}
		t.Logf("%d jobs, %d answers of 503, stops took %v", len(tr.ids), tr.again, stops)
	})
}

func TestDrain_AcceptsJobsWhileUnready(t *testing.T) {
	t.Parallel()
	const drain = 8 * time.Second
	r := newReceiver(t)
	p := start(t, newSQLite(t), "--grace=10m", "--drain="+drain.String())
	slow := register(t, p, obj{"url": r.URL + "/gate", "timeout": "1m"})
	r.arrives(t, slow.ID, 1)
	began := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	eventually(t, func() bool { return p.unready() != "" }, "it must be unready at once")
	resp, err := client.Post(p.url+"/v1/jobs", "application/json",
		strings.NewReader(`{"id": "late", "url": "`+r.URL+`/ok"}`))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Equal(t, http.StatusCreated, resp.StatusCode)
	require.True(t, resp.Close, "the answer must ask for the connection to be given up")
	r.open(slow.ID) // an attempt in flight ends meanwhile
	await(t, p, slow.ID, "delivered")
	select {
	case <-p.gone:
	case <-time.After(testkit.MustCome):
		t.Fatal("it does not stop")
	}
	require.Zero(t, p.cmd.ProcessState.ExitCode())
	require.GreaterOrEqual(t, time.Since(began), drain)
	require.Empty(t, r.of("late"), "nothing is claimed any more")
}

func TestDrain_EndsAtASecondSignal(t *testing.T) {
	t.Parallel()
	const drain = 2 * testkit.MustCome
	p := start(t, newSQLite(t), "--grace=1h", "--drain="+drain.String())
	began := time.Now()
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	eventually(t, func() bool { return p.unready() != "" })
	// A signal that follows at once counts as the same one; so the second is sent until it is heard.
	eventually(t, func() bool {
		_ = p.cmd.Process.Signal(syscall.SIGTERM) // an error means that the process has gone
		select {
		case <-p.gone:
			return true
		default:
			return false
		}
	}, "a second signal did not end the process")
	require.Less(t, time.Since(began), drain)
	require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
}
