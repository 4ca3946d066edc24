package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
	"github.com/ringback/ringback/internal/testkit"
)

// Several installations with different prefixes use one cluster: the tests of one server also run on a cluster.
func TestCluster_ProcessesShareTheWorkAndCrashWithoutLoss(t *testing.T) {
	t.Parallel()
	store := redistest.StartCluster(t, 3, 0).URL()
	sharesWork(t, store)
	for name, test := range map[string]func(*testing.T, string, string){
		"killed": diesOnACluster, "stopped": stopsOnACluster,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, store, "--redis-prefix="+name)
		})
	}
}

// sharesWork runs three processes that share a topic of many lanes.
func sharesWork(t *testing.T, store string) {
	t.Helper()
	const (
		processes = 3
		workers   = 8
		jobs      = 400
		hold      = 100 * time.Millisecond
	)
	g := newGauge(t)
	g.holdUntilFull(jobs/2, workers*(processes-1))
	all := fleet(t, processes, store, obj{
		"workers": workers, "lane_concurrency": workers * processes, "timeout": "10m",
	})
	backlog(t, all[0], g, jobs/4, jobs, hold)
	g.delivered(t, all[1], jobs)
	peaks := g.peaks(bySender)
	longest, who := g.idled(processes, workers, jobs)
	t.Logf("at most in flight %v; idle while another was full for %d requests (%s) at most", peaks, longest, who)
	for n := range processes {
		require.GreaterOrEqual(t, peaks[agent(n)], workers/2, "process %d does not use its workers", n)
		require.LessOrEqual(t, peaks[agent(n)], workers, "process %d exceeds its workers", n)
		all[n].kill()
	}
	require.Less(t, longest, jobs/4, "%s is idle while another process is full", who)
}

// diesOnACluster kills a process repeatedly under load: no job is lost, and only jobs in flight are repeated.
func diesOnACluster(t *testing.T, store, prefix string) {
	const perLife = 150
	kills := testkit.Of(3, 5)
	r := newReceiver(t)
	p := start(t, store, prefix)
	l := newLoad(t, p, 8, func(n int) obj {
		j := busyJobs(r)(n)
		j["timeout"] = "5s" // what a killed process held comes back when its lease ends, a margin later
		return j
	})
	var deaths []disturbance
	for life := range kills {
		l.reaches(t, (life+1)*perLife)
		deaths = append(deaths, r.disturb("", p.kill, func() { p = start(t, store, prefix) }))
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
}

// stopsOnACluster stops a process repeatedly under load: no job is lost or repeated.
func stopsOnACluster(t *testing.T, store, prefix string) {
	const perLife, grace = 100, "10m"
	stops := testkit.Of(2, 3)
	r := newReceiver(t)
	p := start(t, store, prefix, "--grace="+grace)
	l := newLoad(t, p, 8, func(n int) obj {
		j := busyJobs(r)(n)
		j["url"] = r.URL + "/hold/50ms"
		return j
	})
	for life := range stops {
		l.reaches(t, (life+1)*perLife)
		code, _ := p.terminate()
		require.Zero(t, code, "the exit code of an orderly stop")
		p = start(t, store, prefix, "--grace="+grace)
		l.url.Store(&p.url)
	}
	l.reaches(t, (stops+1)*perLife)
	sum := l.settles(t, p)
	require.Empty(t, r.repeated(t, l.accepted), sum.String())
}
