package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

// load is a number of clients that each register jobs one by one until it is stopped. A request without a response, or
// with 503, is repeated with the same id. Ids are unique over all loads.
type load struct {
	url     atomic.Pointer[string] // of the API, which moves when ringback starts again
	stop    context.CancelFunc
	width   int // number of clients
	clients sync.WaitGroup

	mu       sync.Mutex
	accepted []string
	refused  int           // answers of 503
	longest  time.Duration // that a client waited for an answer
	faults   []string      // answers that are none of 200, 201 and 503, and 503 without Retry-After
}

// loads is the number of loads of all tests.
var loads atomic.Int64

// newLoad starts a load. make returns the n-th job of a client, without its id.
func newLoad(t testing.TB, p *process, clients int, job func(n int) obj) *load {
	ctx, cancel := context.WithCancel(t.Context())
	l := &load{stop: cancel, width: clients}
	l.url.Store(&p.url)
	name := loads.Add(1)
	for c := range clients {
		l.clients.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				j := job(n)
				j["id"] = fmt.Sprintf("l%d-c%d-%d", name, c, n)
				l.register(ctx, j)
			}
		})
	}
	t.Cleanup(l.end)
	return l
}

// paced limits the rate of a load, over all its clients: enough work to interrupt a process in the middle of it,
// without using all CPU time.
func paced(t testing.TB, every time.Duration, job func(n int) obj) func(n int) obj {
	tick := time.NewTicker(every)
	t.Cleanup(tick.Stop)
	return func(n int) obj {
		<-tick.C
		return job(n)
	}
}

// register sends one job until it has a response, or the load ends.
func (l *load) register(ctx context.Context, job obj) {
	for ctx.Err() == nil {
		began := time.Now()
		status, header, answer, err := exchange(*l.url.Load(), http.MethodPost, "/v1/jobs", job)
		if l.note(job["id"].(string), time.Since(began), status, header, answer, err) {
			return
		}
		// A short pause, so that the clients do not take the machine from what they wait for.
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// note records a response; false: the request must be repeated.
func (l *load) note(id string, took time.Duration, status int, header http.Header, answer []byte, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, took)
	switch {
	case err != nil:
		return false
	case status == http.StatusServiceUnavailable:
		l.refused++
		if header.Get("Retry-After") == "" {
			l.faults = append(l.faults, fmt.Sprintf("503 without Retry-After: %s", answer))
		}
		return false
	case status == http.StatusCreated || status == http.StatusOK:
		l.accepted = append(l.accepted, id)
	default:
		l.faults = append(l.faults, fmt.Sprintf("%d %s", status, answer))
	}
	return true
}

// end stops the clients and waits for them.
func (l *load) end() {
	l.stop()
	l.clients.Wait()
}

// size returns the number of accepted jobs.
func (l *load) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted)
}

// refusals returns the number of 503 responses.
func (l *load) refusals() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refused
}

// grows waits until a request made from now on is accepted.
func (l *load) grows(t testing.TB) {
	t.Helper()
	l.reaches(t, l.size()+l.width+1)
}

// settles ends the load and waits until all jobs have ended, without a dead one. The process's counts must agree.
func (l *load) settles(t testing.TB, p *process) counts {
	t.Helper()
	l.end()
	require.Empty(t, l.faults)
	sum := ended(t, p)
	require.Zero(t, sum.Dead+sum.Cancelled, sum.String())
	require.GreaterOrEqual(t, sum.Registered, int64(len(l.accepted)), sum.String())
	return sum
}

// reaches waits until the load has grown by some jobs.
func (l *load) reaches(t testing.TB, size int) {
	t.Helper()
	eventually(t, func() bool { return l.size() >= size },
		"the clients get no answers")
}

func TestCrash_LosesNothingAndRepeatsOnlyJobsInFlight(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const (
			clients = 8
			perLife = 200
		)
		kills := testkit.Of(4, 10)
		r := newReceiver(t)
		p := start(t, store)
		// Most jobs are due at once, every fourth soon, every tenth fails first. The timeout is short, since a lease
		// lasts as long and a margin, and what a killed process held comes back after that.
		l := newLoad(t, p, clients, func(n int) obj {
			j := obj{
				"topic": "crash", "url": r.URL + "/ok", "timeout": "5s", "ladder": []string{"100ms"}, "retries": 20,
			}
			if n%4 == 0 {
				j["delay"] = "700ms"
			}
			if n%10 == 0 {
				j["url"] = r.URL + "/fail/1"
			}
			return j
		})
		var deaths []disturbance
		for life := range kills {
			l.reaches(t, (life+1)*perLife)
			deaths = append(deaths, r.disturb("", p.kill, func() { p = start(t, store) }))
			l.url.Store(&p.url)
		}
		l.reaches(t, (kills+1)*perLife)
		l.settles(t, p)
		repeated := r.repeated(t, l.accepted)
		for _, a := range repeated {
			require.True(t, mayRepeat(a, deaths),
				"job %s arrived again, though it was answered at %s, long before any death", a.id, a.answered)
		}
		t.Logf("%d jobs accepted over %d kills, %d arrived again", len(l.accepted), kills, len(repeated))
	})
}
