package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// ledgerLanes is the number of lanes of a ledger: enough for each of three servers.
const ledgerLanes = 24

// ledgerPause is a client's pause between two requests, to leave CPU time to the processes.
const ledgerPause = 10 * time.Millisecond

// acceptedJob is an accepted job as its client knows it.
type acceptedJob struct {
	lane            string
	delayed         bool
	asked, answered time.Time // of the request that was accepted
	replicas        int       // that had the job before the response, as reported in it
}

// ledger is a set of clients of several processes that record all responses. Half of the clients choose ids, and repeat
// a job at the next process until it is accepted. The others use generated ids and continue with another lane after a
// refusal, to find the lanes that are available.
type ledger struct {
	all  []*process
	name string // all ids that the clients choose begin so
	stop context.CancelFunc
	over sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]acceptedJob
	refused  int           // answers of 503
	longest  time.Duration // that a client waited for an answer
	faults   []string      // other answers than 200, 201 and 503
}

// newLedger starts the clients. Their jobs have the topic "ledger": every fourth is due a little later, every tenth
// fails first.
func newLedger(t testing.TB, r *receiver, clients int, all ...*process) *ledger {
	ctx, cancel := context.WithCancel(t.Context())
	l := &ledger{
		all: all, name: fmt.Sprintf("g%d-", loads.Add(1)), stop: cancel,
		accepted: make(map[string]acceptedJob),
	}
	for c := range clients {
		l.over.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Each client begins with another lane, and comes to all.
				lane := fmt.Sprintf("lane-%d", (c*5+n)%ledgerLanes)
				j := obj{
					"topic": "ledger", "lane": lane, "url": r.URL + "/ok", "timeout": "4s",
					"ladder": []string{"100ms"}, "retries": 20,
				}
				if n%4 == 0 {
					j["delay"] = "300ms"
				}
				if n%10 == 0 {
					j["url"] = r.URL + "/fail/1"
				}
				if c%2 == 0 {
					j["id"] = fmt.Sprintf("%sc%d-%d", l.name, c, n)
				}
				l.register(ctx, c, j)
			}
		})
	}
	t.Cleanup(func() {
		l.end()
		if t.Failed() {
			t.Logf("the clients had %d jobs accepted and %d refused with 503; the longest wait was %s; other "+
				"answers: %q",
				len(l.accepted), l.refused, l.longest.Round(time.Millisecond), l.faults[:min(len(l.faults), 10)])
		}
	})
	return l
}

// register sends a job: once, or with an id until it is accepted.
func (l *ledger) register(ctx context.Context, client int, j obj) {
	for try := 0; ctx.Err() == nil; try++ {
		asked := time.Now()
		p := l.all[(client+try)%len(l.all)]
		status, answer, err := send(p.url, http.MethodPost, "/v1/jobs", j)
		accepted := l.note(j, asked, status, answer, err)
		select {
		case <-time.After(ledgerPause):
		case <-ctx.Done():
		}
		if accepted || j["id"] == nil {
			return
		}
	}
}

// note records a response.
func (l *ledger) note(j obj, asked time.Time, status int, answer []byte, err error) (accepted bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.longest = max(l.longest, time.Since(asked))
	switch {
	case err != nil:
		return false // no answer is no promise
	case status == http.StatusServiceUnavailable:
		l.refused++
		return false
	case status != http.StatusCreated && status != http.StatusOK:
		l.faults = append(l.faults, fmt.Sprintf("%d %s", status, answer))
		return true
	}
	var job struct {
		ID         string
		Durability struct{ Replicas int }
	}
	if err := json.Unmarshal(answer, &job); err != nil {
		l.faults = append(l.faults, err.Error())
		return true
	}
	l.accepted[job.ID] = acceptedJob{
		lane: j["lane"].(string), delayed: j["delay"] != nil, asked: asked, answered: time.Now(),
		replicas: job.Durability.Replicas,
	}
	return true
}

// end stops the clients and waits for them.
func (l *ledger) end() {
	l.stop()
	l.over.Wait()
}

// snapshot returns the jobs accepted so far.
func (l *ledger) snapshot() map[string]acceptedJob {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.accepted)
}

// grows waits until a number of further jobs are accepted.
func (l *ledger) grows(t testing.TB, by int) {
	t.Helper()
	size := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.accepted)
	}
	until := size() + by
	eventually(t, func() bool { return size() >= until }, "the clients get no answers")
}

// carriesOn waits until jobs of some lanes, sent after a fault, are accepted and one of them is delivered. It returns
// the times from the fault to each.
func (l *ledger) carriesOn(
	t testing.TB, r *receiver, lanes map[string]bool, fault time.Time,
) (takes, delivers time.Duration) {
	t.Helper()
	eventually(t, func() bool {
		takes, delivers = 0, 0
		for id, job := range l.snapshot() {
			if !lanes[job.lane] || job.asked.Before(fault) {
				continue
			}
			if after := job.answered.Sub(fault); takes == 0 || after < takes {
				takes = after
			}
			for _, a := range r.of(id) {
				// A job that was delivered before the fault has its first answer lost, and is accepted when it is
				// repeated.
				if after := a.began.Sub(fault); after > 0 && (delivers == 0 || after < delivers) {
					delivers = after
				}
			}
		}
		return takes > 0 && delivers > 0
	}, "what a fault took away does not come back")
	return takes.Round(time.Millisecond), delivers.Round(time.Millisecond)
}

// outageResult is the outcome of the jobs of lanes that were not affected by an outage.
type outageResult struct {
	accepted, named, delayed int // named: with an id that the client chose
	carried                  int // delayed ones that arrived during the outage
	latest                   time.Duration
}

func (f outageResult) String() string {
	return fmt.Sprintf("meanwhile the others took %d jobs, %d of them with ids of the clients', %d delayed, %d of "+
		"which came; "+
		"the latest came %s late", f.accepted, f.named, f.delayed, f.carried, f.latest.Round(time.Millisecond))
}

// meanwhile returns the outcome of jobs of unaffected lanes, sent and accepted between two times.
func (l *ledger) meanwhile(r *receiver, but map[string]bool, from, to time.Time) (f outageResult) {
	for id, job := range l.snapshot() {
		if but[job.lane] || job.asked.Before(from) || job.answered.After(to) {
			continue
		}
		f.accepted++
		if strings.HasPrefix(id, l.name) {
			f.named++
		}
		if job.delayed {
			f.delayed++
		}
		if all := r.of(id); len(all) > 0 {
			if job.delayed && all[0].began.Before(to) {
				f.carried++
			}
			f.latest = max(f.latest, all[0].began.Sub(all[0].due))
		}
	}
	return f
}

// settles stops the clients, waits until no job is pending, and checks the counts, which must be equal at all
// processes. It returns the accepted jobs without a delivery, and those repeated after their delivery.
func (l *ledger) settles(t testing.TB, r *receiver) (sum counts, lost map[string]acceptedJob, again []arrival) {
	t.Helper()
	l.end()
	require.Empty(t, l.faults)
	sum = ended(t, l.all[0])
	require.Zero(t, sum.Dead+sum.Cancelled, sum.String())
	for _, p := range l.all[1:] {
		require.Equal(t, sum, ended(t, p), "the processes count alike")
	}
	lost = make(map[string]acceptedJob)
	for id, job := range l.accepted {
		var delivered []arrival
		for _, a := range r.of(id) {
			if a.status == http.StatusOK {
				delivered = append(delivered, a)
			}
		}
		if len(delivered) == 0 {
			lost[id] = job
			continue
		}
		again = append(again, delivered[:len(delivered)-1]...)
	}
	return sum, lost, again
}

// keepsAll is settles without any loss.
func (l *ledger) keepsAll(t testing.TB, r *receiver) (sum counts, again []arrival) {
	t.Helper()
	sum, lost, again := l.settles(t, r)
	require.Empty(t, lost, "answered 201 and never delivered")
	require.GreaterOrEqual(t, sum.Registered, int64(len(l.accepted)), sum.String())
	return sum, again
}

// mayRepeat is mayRepeat for servers whose replicas take over: what a replica did not have yet is repeated, too. It had
// the settlement of a job if it had many jobs that were accepted later, in lanes of the same server (nil: all), unless
// calls took as long in this run.
func (l *ledger) mayRepeat(a arrival, d disturbance, lanes map[string]bool) bool {
	if mayRepeat(a, []disturbance{d}) {
		return true
	}
	later := 0
	for _, job := range l.accepted {
		between := job.asked.After(a.answered) && job.answered.Before(d.from)
		if between && job.replicas > 0 && (lanes == nil || lanes[job.lane]) {
			later++
		}
	}
	return a.answered.Before(d.from) && (later < unsettled || d.from.Sub(a.answered) < l.longest)
}

// covered counts the jobs that a replica had before their response.
func covered(jobs map[string]acceptedJob) (n int) {
	for _, job := range jobs {
		if job.replicas > 0 {
			n++
		}
	}
	return n
}

// placement returns the server of each lane of the topic "ledger", by one of its keys.
func placement(t testing.TB, c *redistest.Cluster) (servers map[string]*redistest.Server, keys map[string]string) {
	t.Helper()
	servers, keys = make(map[string]*redistest.Server), make(map[string]string)
	for _, master := range c.Masters() {
		nodeClient := redis.NewClient(&redis.Options{Addr: master.Addr()})
		found, err := nodeClient.Keys(t.Context(), "*:topic_lanes:default/ledger").Result()
		require.NoError(t, err)
		for _, key := range found {
			members, err := nodeClient.ZRange(t.Context(), key, 0, -1).Result()
			require.NoError(t, err)
			for _, m := range members {
				lane, _, _ := strings.Cut(m, "\x00")
				servers[lane], keys[lane] = master, key
			}
		}
		require.NoError(t, nodeClient.Close())
	}
	require.Len(t, servers, ledgerLanes)
	return servers, keys
}

// on returns the lanes of a server.
func on(server *redistest.Server, servers map[string]*redistest.Server) map[string]bool {
	lanes := make(map[string]bool)
	for _, lane := range slices.Collect(maps.Keys(servers)) {
		if servers[lane] == server {
			lanes[lane] = true
		}
	}
	return lanes
}
