package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStop_UnderLoadLosesAndRepeatsNothing(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const grace = 15 * time.Second
		r := newReceiver(t)
		p := start(t, store, "--grace="+grace.String())
		l := newLoad(t, p, 8, func(n int) obj {
			j := obj{"topic": "stop", "url": r.URL + "/hold/50ms"}
			if n%4 == 0 {
				j["delay"] = "500ms"
			}
			return j
		})
		for stops := range 3 {
			l.reaches(t, (stops+1)*300)
			code, took := p.terminate(grace + 5*time.Second)
			require.Zero(t, code, "the exit code of an orderly stop")
			require.Less(t, took, grace)
			p = start(t, store)
			l.url.Store(&p.url)
		}
		l.reaches(t, 4*300)
		l.end()
		require.Empty(t, l.faults)
		require.Eventually(t, func() bool { return count(t, p).pending() == 0 }, time.Minute, 50*time.Millisecond)
		for _, id := range l.accepted {
			require.Len(t, r.of(id), 1, "job %s", id)
		}
	})
}

func TestStop_ReleasesAttemptsThatOutliveTheGrace(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		const grace = 6 * time.Second
		r := newReceiver(t)
		p := start(t, store, "--grace="+grace.String())
		job := register(t, p, obj{"topic": "slow", "url": r.URL + "/gate", "timeout": "1m", "retries": 0})
		r.arrives(t, job.ID, 1)
		code, took := p.terminate(grace + 5*time.Second)
		require.Zero(t, code)
		require.Less(t, took, grace)

		p = start(t, store)
		r.arrives(t, job.ID, 2)
		r.open(job.ID)
		done := await(t, p, job.ID, "delivered")
		require.Equal(t, []string{"released", "attempt"}, done.kinds())
		require.Equal(t, 1, done.AttemptsMade)
	})
}

func TestStop_SecondSignalExitsAtOnce(t *testing.T) {
	t.Parallel()
	r := newReceiver(t)
	p := start(t, newSQLite(t))
	job := register(t, p, obj{"url": r.URL + "/gate", "timeout": "1m"})
	r.arrives(t, job.ID, 1)
	require.NoError(t, p.cmd.Process.Signal(syscall.SIGTERM))
	require.Eventually(t, func() bool { return strings.Contains(p.log.text(), `"msg":"stopping"`) }, 5*time.Second, 5*time.Millisecond)
	// A signal that follows at once counts as the same one; so the second is sent until it is heard.
	require.Eventually(t, func() bool {
		_ = p.cmd.Process.Signal(syscall.SIGINT) // an error means that the process has gone
		select {
		case <-p.gone:
			return true
		default:
			return false
		}
	}, 5*time.Second, 50*time.Millisecond, "a second signal did not end the process")
	require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
}
