package e2e

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/testkit"
)

func TestStop_UnderLoadLosesAndRepeatsNothing(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		p := start(t, store, "--grace=10m")
		l := newLoad(t, p, 8, func(n int) obj {
			j := obj{"topic": "stop", "url": r.URL + "/hold/50ms"}
			if n%4 == 0 {
				j["delay"] = "500ms"
			}
			return j
		})
		const perLife = 150
		lives := testkit.Of(2, 4)
		for life := 1; life < lives; life++ {
			l.reaches(t, life*perLife)
			code, _ := p.terminate()
			require.Zero(t, code, "the exit code of an orderly stop")
			p = start(t, store, "--grace=10m")
			l.url.Store(&p.url)
		}
		l.reaches(t, lives*perLife)
		l.end()
		require.Empty(t, l.faults)
		eventually(t, func() bool { return count(t, p).pending() == 0 })
		for _, id := range l.accepted {
			require.Len(t, r.of(id), 1, "job %s", id)
		}
	})
}

func TestStop_ReleasesAttemptsThatOutliveTheGrace(t *testing.T) {
	onEngines(t, func(t *testing.T, store string) {
		r := newReceiver(t)
		p := start(t, store, "--grace=6s") // of which five are for settling
		job := register(t, p, obj{"topic": "slow", "url": r.URL + "/gate", "timeout": "1m", "retries": 0})
		r.arrives(t, job.ID, 1)
		code, _ := p.terminate()
		require.Zero(t, code)

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
	eventually(t, func() bool { return strings.Contains(p.log.text(), `"msg":"stopping"`) })
	// A signal that follows at once counts as the same one; so the second is sent until it is heard.
	eventually(t, func() bool {
		_ = p.cmd.Process.Signal(syscall.SIGINT) // an error means that the process has gone
		select {
		case <-p.gone:
			return true
		default:
			return false
		}
	}, "a second signal did not end the process")
	require.Equal(t, 1, p.cmd.ProcessState.ExitCode())
}
