package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// mostProcesses bounds the processes of one store in a test.
const mostProcesses = 3

// programs are copies of ringback with different versions, which receivers see in the User-Agent. So a receiver can
// distinguish the processes of one store. It is linked once: the copies differ in the text of their version.
var programs = sync.OnceValues(func() ([]string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), testkit.MustCome)
	defer cancel()
	path := filepath.Join(filepath.Dir(binary), "ringback-process")
	build := goBuild(ctx, "-ldflags=-s -w -X main.version="+version(0), "-o", path, "../cmd/ringback")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build ringback: %w\n%s", err, out)
	}
	program, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var all []string
	for i := range mostProcesses {
		copied := fmt.Sprintf("%s-%d", path, i)
		text := bytes.ReplaceAll(program, []byte(version(0)), []byte(version(i)))
		if err := os.WriteFile(copied, text, 0o700); err != nil {
			return nil, err
		}
		all = append(all, copied)
	}
	return all, nil
})

// version returns the version of the n-th program, of the same length for each.
func version(n int) string { return fmt.Sprintf("process-of-a-test-%d", n) }

// agent returns the User-Agent of the n-th process of startNth.
func agent(n int) string { return "Ringback/" + version(n) }

// startNth is start with a program whose requests carry agent(n).
func startNth(t testing.TB, n int, store string, flags ...string) *process {
	t.Helper()
	all, err := programs()
	require.NoError(t, err)
	return startProgram(t, all[n], store, flags...)
}

// fleet starts several processes on one store, one after the other. The policy of the topic "shared" is put before:
// later changes reach a process with its first claim.
func fleet(t testing.TB, n int, store string, topic obj) []*process {
	t.Helper()
	all := []*process{startNth(t, 0, store)}
	call[obj](t, all[0], http.MethodPut, "/v1/topics/shared", topic, http.StatusOK)
	for i := 1; i < n; i++ {
		all = append(all, startNth(t, i, store))
	}
	return all
}

// stay is one request at a gauge.
type stay struct {
	who      string // User-Agent
	lane     string
	from, to time.Time // to is before the answer is on its way, so that no stay seems longer than it was
}

// gauge is a receiver that responds after the duration in /{lane}/{duration}, and records the sender and the times of
// requests.
type gauge struct {
	*receiver
	mu       sync.Mutex
	stays    []stay
	known    map[string]int // requests by job
	inFlight int
	passing  int            // requests that are answered before the gauge holds
	first    int            // requests of each process in each lane that are answered while it holds
	begun    map[string]int // requests by process and lane
	full     int            // requests in flight that open it again; 0: it is open
	opened   chan struct{}  // closed when it opens
}

// newGauge starts a gauge. Its receiver serves all other paths.
func newGauge(t testing.TB) *gauge {
	g := &gauge{receiver: newReceiver(t), known: make(map[string]int), begun: make(map[string]int)}
	mux := http.NewServeMux()
	mux.Handle("/", g.Config.Handler)
	mux.HandleFunc("/gauge/{lane}/{hold}", func(_ http.ResponseWriter, r *http.Request) {
		s := stay{who: r.UserAgent(), lane: r.PathValue("lane"), from: time.Now()}
		hold, _ := time.ParseDuration(r.PathValue("hold"))
		g.awaitFull(r.Context(), s.who+" "+s.lane)
		timer := time.NewTimer(hold)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
		case <-g.end:
		}
		s.to = time.Now()
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inFlight--
		g.stays = append(g.stays, s)
		g.known[r.Header.Get("webhook-id")]++
	})
	g.Config.Handler = mux
	return g
}

// holdUntilFull lets some requests pass, since a lane gets more slots with its answers, and then holds all until a
// number of them are in flight: however slow the machine, that many have to come.
func (g *gauge) holdUntilFull(passing, full int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.passing, g.full, g.opened = passing, full, make(chan struct{})
}

// holdButFirst is holdUntilFull that lets the first requests of each process in each lane pass.
func (g *gauge) holdButFirst(first, full int) {
	g.holdUntilFull(0, full)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.first = first
}

// awaitFull counts a request of a process in a lane, and waits until the gauge is open.
func (g *gauge) awaitFull(ctx context.Context, of string) {
	g.mu.Lock()
	g.inFlight++
	g.passing--
	g.begun[of]++
	passes := g.passing >= 0 || g.begun[of] <= g.first || g.full == 0
	if !passes && g.inFlight >= g.full {
		close(g.opened)
		g.full, passes = 0, true
	}
	g.mu.Unlock()
	if passes {
		return
	}
	select {
	case <-g.opened:
	case <-ctx.Done():
	case <-g.end:
	}
}

// edge is the start or the end of a stay.
type edge struct {
	stay
	at   time.Time
	step int // 1 or -1
}

// edges returns all starts and ends in order; at equal times ends come first.
func (g *gauge) edges() []edge {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []edge
	for _, s := range g.stays {
		all = append(all, edge{s, s.from, 1}, edge{s, s.to, -1})
	}
	slices.SortFunc(all, func(a, b edge) int {
		if c := a.at.Compare(b.at); c != 0 {
			return c
		}
		return a.step - b.step
	})
	return all
}

// peaks returns the largest number of concurrent requests, by key.
func (g *gauge) peaks(key func(stay) string) map[string]int {
	now, most := make(map[string]int), make(map[string]int)
	for _, e := range g.edges() {
		k := key(e.stay)
		now[k] += e.step
		most[k] = max(most[k], now[k])
	}
	return most
}

func bySender(s stay) string { return s.who }
func byLane(s stay) string   { return s.lane }

// idled returns the largest number of requests that others began while a process had none in flight, another was full
// and jobs waited. It counts requests rather than time, which depends on the machine.
func (g *gauge) idled(processes, full, total int) (longest int, who string) {
	now, since := make(map[string]int), make(map[string]int)
	started := 0
	for _, e := range g.edges() {
		now[e.who] += e.step
		if e.step > 0 {
			started++
		}
		if started == total {
			break
		}
		someFull := false
		for _, n := range now {
			someFull = someFull || n >= full
		}
		for p := range processes {
			a := agent(p)
			if now[a] > 0 || !someFull {
				delete(since, a)
				continue
			}
			if _, idle := since[a]; !idle {
				since[a] = started
			}
			if n := started - since[a]; n > longest {
				longest, who = n, a
			}
		}
	}
	return longest, who
}

// backlog pauses the topic "shared", registers jobs in it, round robin over lanes, and resumes it.
func backlog(t testing.TB, p *process, g *gauge, lanes, jobs int, hold time.Duration) {
	t.Helper()
	call[obj](t, p, http.MethodPost, "/v1/topics/shared/pause", nil, http.StatusOK)
	batch := make([]obj, jobs)
	for i := range batch {
		lane := fmt.Sprintf("lane-%d", i%lanes)
		batch[i] = obj{"topic": "shared", "lane": lane, "url": fmt.Sprintf("%s/gauge/%s/%s", g.URL, lane, hold)}
	}
	answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": batch}, http.StatusOK)
	for _, result := range answer.Results {
		require.Equal(t, http.StatusCreated, result.Status)
	}
	call[obj](t, p, http.MethodPost, "/v1/topics/shared/resume", nil, http.StatusOK)
}

// delivered waits until every job is delivered, and requires that none was repeated.
func (g *gauge) delivered(t testing.TB, p *process, jobs int) {
	t.Helper()
	eventually(t, func() bool { return count(t, p).Delivered == int64(jobs) },
		"every job must be delivered")
	g.mu.Lock()
	defer g.mu.Unlock()
	require.Len(t, g.known, jobs)
	require.Equal(t, jobs, len(g.stays), "a job came twice") //nolint:testifylint // Len prints them all
}

// onRedis runs a test on Redis with 16 shards and, with make test-all, with one, in parallel.
func onRedis(t *testing.T, test func(t *testing.T, store string)) {
	t.Helper()
	t.Parallel()
	for _, e := range testkit.Of(engines[2:], engines[1:]) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.store(t))
		})
	}
}

func TestProcesses_ShareATopicsWork(t *testing.T) {
	const (
		workers = 8
		hold    = 150 * time.Millisecond
	)
	for _, c := range []struct {
		name                   string
		processes, lanes, jobs int
	}{
		{"two, many lanes", 2, 64, 240},
		{"three, more lanes than a process names when it hands back", 3, 400, 400},
		{"three, one lane", 3, 1, 360},
	} {
		t.Run(c.name, func(t *testing.T) {
			onRedis(t, func(t *testing.T, store string) {
				g := newGauge(t)
				g.holdUntilFull(c.jobs/2, (c.processes-1)*workers)
				all := fleet(t, c.processes, store, obj{
					"workers": workers, "lane_concurrency": workers * c.processes, "timeout": "10m",
				})
				backlog(t, all[0], g, c.lanes, c.jobs, hold)
				g.delivered(t, all[0], c.jobs)
				peaks := g.peaks(bySender)
				longest, who := g.idled(c.processes, workers, c.jobs)
				t.Logf("at most in flight %v; idle while another was full for %d requests (%s) at most",
					peaks, longest, who)
				for n := range c.processes {
					require.GreaterOrEqual(t, peaks[agent(n)], workers/2, "process %d does not use its workers", n)
					require.LessOrEqual(t, peaks[agent(n)], workers, "process %d exceeds its workers", n)
				}
				require.Less(t, longest, c.jobs/4, "%s is idle while another process is full", who)
			})
		})
	}
}

func TestProcesses_HoldALanesConcurrencyLimit(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		const (
			processes = 3
			limit     = 9 // more than the workers of a process, less than those of all
			lanes     = 2
			jobs      = 200
		)
		g := newGauge(t)
		// A process gives a lane two slots first, and more with its answers. With full lanes the limit is reached.
		g.holdButFirst(3, lanes*limit)
		all := fleet(t, processes, store, obj{"workers": 8, "lane_concurrency": limit, "timeout": "10m"})
		backlog(t, all[1], g, lanes, jobs, 40*time.Millisecond)
		g.delivered(t, all[2], jobs)
		for lane, most := range g.peaks(byLane) {
			require.Equal(t, limit, most, "attempts at once to %s", lane)
		}
	})
}

// Quick receivers have jobs claimed ahead by a process that has a lane alone. More processes serve the lanes than one
// of them has workers for, so that they share and leave lanes all the time. One is killed and started again.
func TestProcesses_HoldTheLimitOfLanesTheyClaimAheadFrom(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		const (
			processes = 3
			limit     = 10
			lanes     = 3
			rounds    = 8
		)
		jobs := testkit.Of(300, 900) // of a round
		g := newGauge(t)
		all := fleet(t, processes, store, obj{
			"workers": 12, "lane_concurrency": limit, "timeout": "5s", "ladder": []string{"100ms"}, "retries": 20,
		})
		for round := range rounds {
			backlog(t, all[0], g, lanes, jobs, time.Duration(1+round%3)*2*time.Millisecond)
			<-time.After(time.Duration(round%4) * 150 * time.Millisecond)
			switch round {
			case 3:
				all[1].kill()
			case 5:
				all[1] = startNth(t, 1, store)
			}
		}
		eventually(t, func() bool { return count(t, all[0]).Delivered == int64(rounds*jobs) },
			"every job must be delivered")
		t.Logf("at most in flight %v, %v", g.peaks(byLane), g.peaks(bySender))
		for lane, most := range g.peaks(byLane) {
			require.LessOrEqual(t, most, limit, "attempts at once to %s", lane)
		}
	})
}
