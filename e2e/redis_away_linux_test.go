package e2e

import (
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/redistest"
)

// ticks is the number of kernel clock ticks per second, the unit of CPU times.
const ticks = 100

// cpu returns the CPU time of a process, user and system.
func (p *process) cpu(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	require.NoError(t, err)
	// The second field is the program's name in parentheses, which may hold spaces; utime and stime are the 14th and
	// 15th.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	var sum int
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		require.NoError(t, err)
		sum += n
	}
	return time.Duration(sum) * time.Second / ticks
}

// TestRedis_OutageLeavesTheProcessIdle: with pending work, and Redis refusing connections or hanging.
func TestRedis_OutageLeavesTheProcessIdle(t *testing.T) {
	ways := []struct {
		name       string
		away, back func(*redistest.Server)
	}{
		{"refuses", (*redistest.Server).Kill, (*redistest.Server).Restart},
		{"is silent", (*redistest.Server).Pause, (*redistest.Server).Resume},
	}
	t.Parallel()
	for _, way := range ways {
		t.Run(way.name, func(t *testing.T) {
			onShards(t, func(t *testing.T, shards string) {
				const (
					topics = 300
					window = 3 * time.Second
					// The goal is 2 % of a core. The limit tolerates a machine that is fifteen times slower, but no hot
					// loop.
					mostCPU   = window * 30 / 100
					mostLines = 250 * int(window/time.Second)
				)
				server, r := durableRedis(t), newReceiver(t)
				p := start(t, server.URL(), shards)
				keepBusy(t, p, r, topics)
				way.away(server)
				eventually(t, func() bool { return p.unready() != "" })
				r.until(t, "the slow attempts end", func() bool { return r.ended >= slowJobs })
				cpu, lines := p.cpu(t), p.log.written()
				<-time.After(window)
				cpu, lines = p.cpu(t)-cpu, p.log.written()-lines
				t.Logf("while redis %s: %.1f %% of a core, %d lines of log in %s",
					way.name, 100*cpu.Seconds()/window.Seconds(), lines, window)
				require.Less(t, cpu, mostCPU, "a hot loop")
				require.Less(t, lines, mostLines, "a flood of lines")
				way.back(server)
				l := newLoad(t, p, 2, func(int) obj { return obj{"topic": "after", "url": r.URL + "/ok"} })
				takes, delivers := carriesOn(t, p, l, r)
				t.Logf("afterwards it takes after %s and delivers after %s", takes, delivers)
			})
		})
	}
}

// slowJobs is the number of attempts that end during the outage.
const slowJobs = 200

// keepBusy creates work of every kind: many topics, jobs that come due soon, a topic with one busy worker and many
// waiting lanes, and attempts that end during the outage.
func keepBusy(t *testing.T, p *process, r *receiver, topics int) {
	t.Helper()
	jobs := make([]obj, 0, 10*topics)
	for n := range topics {
		topic := fmt.Sprintf("topic-%d", n)
		jobs = append(jobs, obj{"topic": topic, "url": r.URL + "/ok", "delay": "1h"})
		for k := range 4 {
			jobs = append(jobs, obj{"topic": topic, "url": r.URL + "/ok", "delay": fmt.Sprintf("%dms", 2000+500*k)})
		}
	}
	for n := range slowJobs {
		lane := fmt.Sprintf("lane-%d", n)
		jobs = append(jobs,
			obj{"topic": "full", "lane": lane, "url": r.URL + "/hold/1m", "timeout": "1m"},
			obj{"topic": "slow", "lane": lane, "url": r.URL + "/hold/2s"})
	}
	call[obj](t, p, http.MethodPut, "/v1/topics/full", obj{"workers": 1}, http.StatusOK)
	answer := call[batchAnswer](t, p, http.MethodPost, "/v1/batch", obj{"jobs": jobs}, http.StatusOK)
	for _, result := range answer.Results {
		require.Equal(t, http.StatusCreated, result.Status)
	}
	r.until(t, "the slow ones are in flight", func() bool { return r.all > slowJobs })
}
