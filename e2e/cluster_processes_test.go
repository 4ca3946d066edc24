package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// Several installations with different prefixes use one cluster: the tests of one server also run on a cluster.
func TestCluster_ProcessesShareTheWorkAndCrashWithoutLoss(t *testing.T) {
	t.Parallel()
	store := redistest.StartCluster(t, 3, 0).URL()
	sharesWork(t, store)
	for name, test := range map[string]func(*testing.T, string, string){"killed": diesOnACluster, "stopped": stopsOnACluster} {
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
	all := fleet(t, processes, store, obj{"workers": workers, "lane_concurrency": workers * processes})
	backlog(t, all[0], g, jobs/4, jobs, hold)
	g.delivered(t, all[1], jobs)
	peaks := g.peaks(bySender)
	longest, who, busy := g.idled(processes, workers, jobs)
	t.Logf("at most in flight %v; idle while another was full %s (%s) at most; %.0f%% of the workers' time used",
		peaks, longest.Round(time.Millisecond), who, 100*busy)
	for n := range processes {
		require.Equal(t, workers, peaks[agent(n)], "process %d neither reaches nor exceeds its workers", n)
		all[n].kill()
	}
	require.Less(t, longest, 700*time.Millisecond, "%s is idle while another process is full", who)
	require.Greater(t, busy, 0.4)
}

// diesOnACluster kills a process repeatedly under load: no job is lost, and only jobs in flight are repeated.
func diesOnACluster(t *testing.T, store, prefix string) {
	const kills, perLife = 5, 200
	r := newReceiver(t)
	p := start(t, store, prefix)
	l := newLoad(t, p, 8, func(n int) obj {
		j := busyJobs(r)(n)
		j["timeout"] = "3s" // what a killed process held comes back when its lease ends, which lasts as long and a margin
		return j
	})
	var deaths []time.Time
	for life := range kills {
		l.reaches(t, (life+1)*perLife)
		deaths = append(deaths, time.Now())
		p.kill()
		p = start(t, store, prefix)
		l.url.Store(&p.url)
	}
	l.reaches(t, (kills+1)*perLife)
	l.settles(t, p)
	repeated := r.repeated(t, l.accepted)
	for _, a := range repeated {
		require.True(t, inFlight(a, deaths), "job %s arrived again, though it was answered at %s, long before any death (%s)",
			a.id, a.answered, deaths)
	}
	t.Logf("%d jobs accepted over %d kills, %d arrived again", len(l.accepted), kills, len(repeated))
}

// stopsOnACluster stops a process repeatedly under load: no job is lost or repeated.
func stopsOnACluster(t *testing.T, store, prefix string) {
	const (
		stops, perLife = 3, 200
		grace          = 15 * time.Second
	)
	r := newReceiver(t)
	p := start(t, store, prefix, "--grace="+grace.String())
	l := newLoad(t, p, 8, func(n int) obj {
		j := busyJobs(r)(n)
		j["url"] = r.URL + "/hold/50ms"
		return j
	})
	for life := range stops {
		l.reaches(t, (life+1)*perLife)
		code, took := p.terminate(grace + 5*time.Second)
		require.Zero(t, code, "the exit code of an orderly stop")
		require.Less(t, took, grace)
		p = start(t, store, prefix, "--grace="+grace.String())
		l.url.Store(&p.url)
	}
	l.reaches(t, (stops+1)*perLife)
	sum := l.settles(t, p)
	require.Empty(t, r.repeated(t, l.accepted), sum.String())
}
