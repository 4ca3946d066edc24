package e2e

import (
	"fmt"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestRoles_WorkersDeliverJobsOfAnAPIProcess(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		const jobs = 60
		r := newReceiver(t)
		front := startNth(t, 0, store, "--roles=api")
		batch := func(name string) (ids []string) {
			for i := range jobs {
				job := obj{
					"id": fmt.Sprintf("%s-%d", name, i), "lane": fmt.Sprintf("lane-%d", i%7),
					"url": r.URL + "/hold/20ms",
				}
				if i%2 == 0 {
					job["delay"] = "50ms"
				}
				ids = append(ids, register(t, front, job).ID)
			}
			return ids
		}
		// No process delivers: the jobs wait and are counted.
		first := batch("first")
		<-time.After(1500 * time.Millisecond) // longer than anything that looks for lost work
		sum := count(t, front)
		require.EqualValues(t, jobs, sum.Scheduled+sum.Ready, sum.String())
		require.Zero(t, r.size(), "an api process delivers nothing")

		workers := []*process{startNth(t, 1, store, "--roles=worker"), startNth(t, 2, store, "--roles=worker")}
		second := batch("second")
		eventually(t, func() bool { return count(t, front).Delivered == 2*jobs })
		for _, id := range append(first, second...) {
			require.Len(t, r.of(id), 1, id)
			require.NotEqual(t, agent(0), r.of(id)[0].agent, "an api process delivers nothing")
		}

		for _, w := range workers {
			refused := call[obj](t, w, http.MethodPost, "/v1/jobs", obj{"url": r.URL + "/ok"},
				http.StatusMisdirectedRequest)
			require.Contains(t, refused["detail"], "role api")
			require.Equal(t, "alive", call[obj](t, w, http.MethodGet, "/healthz", nil, http.StatusOK)["status"])
		}

		// Without workers jobs wait again, with one they go on.
		for _, w := range workers {
			code, _ := w.terminate()
			require.Zero(t, code)
		}
		before := r.size()
		third := batch("third")
		require.True(t, front.ready(), "an api process is ready without workers")
		require.EqualValues(t, jobs, count(t, front).pending())
		require.Equal(t, before, r.size())
		startNth(t, 1, store, "--roles=worker")
		eventually(t, func() bool { return count(t, front).Delivered == 3*jobs })
		for _, id := range third {
			require.Len(t, r.of(id), 1, id)
		}
		code, _ := front.terminate()
		require.Zero(t, code)
	})
}

func TestRoles_InvalidOnesAreRejected(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag, says string
		code       int
	}{
		{"--roles=worker", "roles: a sqlite store needs one process with both api and worker, not worker alone", 2},
		{"--roles=api", "not api alone", 2},
		{"--roles=", "is not api, worker or api,worker", 2},
		{"--roles=api,carrier", `"api,carrier" is not api, worker or api,worker`, 2},
		{"--drain=26s", "drain: 26s is not between 0s and 25s, the grace of 30s less the time for settling", 2},
	} {
		cmd := exec.CommandContext(t.Context(), binary, "serve", "--addr=127.0.0.1:0", "--store="+newSQLite(t), c.flag)
		cmd.Env = cleanEnv()
		out, err := cmd.CombinedOutput()
		require.Error(t, err, c.flag)
		require.Contains(t, string(out), c.says)
		require.Equal(t, c.code, cmd.ProcessState.ExitCode(), c.flag)
	}
}
