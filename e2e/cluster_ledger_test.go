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

// ledgerLanes is over how many lanes a ledger spreads its jobs: enough that each of three servers has some.
const ledgerLanes = 24

// ledgerPause is a client's between two requests, so that the clients leave the machine to what they test.
const ledgerPause = 10 * time.Millisecond

// A taken is what a client knows of a job that was accepted.
type taken struct {
	lane            string
	delayed         bool
	asked, answered time.Time // of the request that was accepted
	replicas        int       // that had the job before the answer, as the answer says
}

// A ledger is clients of several processes that write down what they were answered. Every other client chooses ids, and
// sends a job again under its id, to the next process, until it is accepted. The rest leave ids to the server and go on
// with another lane when a job was refused, so that they find out what is still taken.
type ledger struct {
	all  []*process
	name string // all ids that the clients choose begin so
	stop context.CancelFunc
	over sync.WaitGroup

	mu      sync.Mutex
	taken   map[string]taken
	refused int           // answers of 503
	longest time.Duration // that a client waited for an answer
	faults  []string      // other answers than 200, 201 and 503
}

// newLedger begins. The jobs are of the topic "ledger": every fourth is due a little later, every tenth fails first.
func newLedger(t testing.TB, r *receiver, clients int, all ...*process) *ledger {
	ctx, cancel := context.WithCancel(t.Context())
	l := &ledger{all: all, name: fmt.Sprintf("g%d-", loads.Add(1)), stop: cancel, taken: make(map[string]taken)}
	for c := range clients {
		l.over.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				// Each client begins with another lane, and comes to all.
				lane := fmt.Sprintf("lane-%d", (c*5+n)%ledgerLanes)
				j := obj{"topic": "ledger", "lane": lane, "url": r.URL + "/ok", "timeout": "4s", "ladder": []string{"100ms"}, "retries": 20}
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
	t.Cleanup(l.end)
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

// note writes an answer down.
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
	l.taken[job.ID] = taken{
		lane: j["lane"].(string), delayed: j["delay"] != nil, asked: asked, answered: time.Now(), replicas: job.Durability.Replicas,
	}
	return true
}

// end stops the clients and waits for them.
func (l *ledger) end() {
	l.stop()
	l.over.Wait()
}

// snapshot is what was accepted so far.
func (l *ledger) snapshot() map[string]taken {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.taken)
}

// grows waits until so many more jobs are accepted.
func (l *ledger) grows(t testing.TB, by int) {
	t.Helper()
	size := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.taken)
	}
	until := size() + by
	require.Eventually(t, func() bool { return size() >= until }, 30*time.Second, 5*time.Millisecond, "the clients get no answers")
}

// carriesOn waits until jobs of some lanes that were sent after a fault are accepted, and until one of them has arrived.
// It tells how long after the fault that was.
func (l *ledger) carriesOn(t testing.TB, r *receiver, lanes map[string]bool, fault time.Time) (takes, delivers time.Duration) {
	t.Helper()
	require.Eventually(t, func() bool {
		takes, delivers = 0, 0
		for id, job := range l.snapshot() {
			if !lanes[job.lane] || job.asked.Before(fault) {
				continue
			}
			if after := job.answered.Sub(fault); takes == 0 || after < takes {
				takes = after
			}
			for _, a := range r.of(id) {
				if after := a.began.Sub(fault); delivers == 0 || after < delivers {
					delivers = after
				}
			}
		}
		return takes > 0 && delivers > 0
	}, time.Minute, 20*time.Millisecond, "what a fault took away does not come back")
	return takes.Round(time.Millisecond), delivers.Round(time.Millisecond)
}

// A fared tells what became of jobs while others were away.
type fared struct {
	accepted, named, delayed int // named: with an id that the client chose
	latest                   time.Duration
}

func (f fared) String() string {
	return fmt.Sprintf("meanwhile the others took %d jobs, %d of them with ids of the clients', %d delayed; the latest came %s late",
		f.accepted, f.named, f.delayed, f.latest.Round(time.Millisecond))
}

// meanwhile tells how jobs of other lanes than some fared that were sent and accepted between two moments.
func (l *ledger) meanwhile(r *receiver, but map[string]bool, from, to time.Time) (f fared) {
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
			f.latest = max(f.latest, all[0].began.Sub(all[0].due))
		}
	}
	return f
}

// settles ends the clients, waits until no job is pending, and checks the sums, which all processes must tell alike. It
// returns the accepted jobs of which no request was answered 200, and those that came again after one was.
func (l *ledger) settles(t testing.TB, r *receiver) (sum counts, lost map[string]taken, again []arrival) {
	t.Helper()
	l.end()
	require.Empty(t, l.faults)
	sum = ended(t, l.all[0])
	require.Zero(t, sum.Dead+sum.Cancelled, sum.String())
	for _, p := range l.all[1:] {
		require.Equal(t, sum, ended(t, p), "the processes count alike")
	}
	lost = make(map[string]taken)
	for id, job := range l.taken {
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

// keepsAll is settles where nothing may be lost.
func (l *ledger) keepsAll(t testing.TB, r *receiver) (sum counts, again []arrival) {
	t.Helper()
	sum, lost, again := l.settles(t, r)
	require.Empty(t, lost, "answered 201 and never delivered")
	require.GreaterOrEqual(t, sum.Registered, int64(len(l.taken)), sum.String())
	return sum, again
}

// covered counts the jobs that a replica had before their answer.
func covered(jobs map[string]taken) (n int) {
	for _, job := range jobs {
		if job.replicas > 0 {
			n++
		}
	}
	return n
}

// placement tells on which servers of a cluster the lanes of the topic "ledger" are, by a key of theirs.
func placement(t testing.TB, c *redistest.Cluster) (servers map[string]*redistest.Server, keys map[string]string) {
	t.Helper()
	servers, keys = make(map[string]*redistest.Server), make(map[string]string)
	for _, master := range c.Masters() {
		nodeClient := redis.NewClient(&redis.Options{Addr: master.Addr()})
		found, err := nodeClient.Keys(t.Context(), "*:queues:default/ledger").Result()
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

// on are the lanes that are on a server.
func on(server *redistest.Server, servers map[string]*redistest.Server) map[string]bool {
	lanes := make(map[string]bool)
	for _, lane := range slices.Collect(maps.Keys(servers)) {
		if servers[lane] == server {
			lanes[lane] = true
		}
	}
	return lanes
}
