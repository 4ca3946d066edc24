package e2e

import (
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// settling bounds the stop of a process.
const settling = 250 * time.Millisecond

// carried starts three processes, the first of which carries every shard, and a load of jobs that need a carrier: each
// is due a little later, in a different lane.
func carried(t *testing.T, store string, g *gauge) ([]*process, *load) {
	t.Helper()
	options, err := redis.ParseURL(store)
	require.NoError(t, err)
	c := redis.NewClient(options)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	first := startNth(t, 0, store)
	eventually(t, func() bool {
		shards, err := c.HGet(t.Context(), "rb:meta", "shards").Int()
		require.NoError(t, err)
		locks, err := c.Keys(t.Context(), "{rb:*}:carrier").Result()
		require.NoError(t, err)
		return len(locks) == shards
	}, "the first process does not carry")
	all := []*process{first, startNth(t, 1, store), startNth(t, 2, store)}
	return all, delayed(t, all[1], g)
}

// lanes counts lanes, so that every job has a different one.
var lanes atomic.Int64

// delayed starts a load of jobs that are due after 100 ms and take 50 ms.
func delayed(t *testing.T, p *process, g *gauge) *load {
	return newLoad(t, p, 4, paced(t, 4*time.Millisecond, func(int) obj {
		return obj{
			"topic": "takeover", "lane": fmt.Sprintf("lane-%d", lanes.Add(1)), "url": g.URL + "/hold/50ms",
			"delay": "100ms", "timeout": "10s", "ladder": []string{"100ms"},
		}
	}))
}

// carriesOn waits until other processes than the first deliver jobs that came due after a time, and returns how long
// that took. Jobs due within settling of that time may have been carried before.
func (r *receiver) carriesOn(t *testing.T, after time.Time) time.Duration {
	t.Helper()
	var took time.Duration
	r.until(t, "a job that came due after its carrier went", func() bool {
		for _, arrivals := range r.byID {
			for _, a := range arrivals {
				if a.due.After(after.Add(settling)) && a.agent != agent(0) {
					took = a.began.Sub(after)
					return true
				}
			}
		}
		return false
	})
	return took
}

// lateness returns the longest delay of a job's first request after its due time.
func (r *receiver) lateness(ids []string) time.Duration {
	var most time.Duration
	for _, id := range ids {
		first := r.of(id)[0]
		most = max(most, first.began.Sub(first.due))
	}
	return most
}

func TestTakeover_AfterAKilledProcess(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		g := newGauge(t)
		all, l := carried(t, store, g)
		l.reaches(t, 200)
		var took time.Duration
		began := time.Now()
		death := g.disturb(agent(0), all[0].kill, func() { took = g.carriesOn(t, began) })
		l.reaches(t, l.size()+200)
		l.settles(t, all[1])
		again := g.repeated(t, l.accepted)
		for _, a := range again {
			require.Equal(t, agent(0), a.agent,
				"job %s came again, though it was not the dead process's: %+v, arrivals %+v", a.id,
				get(t, all[1], a.id).Attempts, g.of(a.id))
			require.True(t, mayRepeat(a, []disturbance{death}), "job %s came again, though it was not in flight", a.id)
		}
		t.Logf("carried on after %s; at most %s late; %d of %d jobs came again",
			took.Round(time.Millisecond), g.lateness(l.accepted).Round(time.Millisecond), len(again), len(l.accepted))
	})
}

func TestTakeover_AfterASuspendedProcess(t *testing.T) {
	onRedis(t, func(t *testing.T, store string) {
		g := newGauge(t)
		all, l := carried(t, store, g)
		l.reaches(t, 200)
		var took time.Duration
		began := time.Now()
		// The receiver may read a request that was sent before the stop a while later.
		stop := g.disturb(agent(0), func() { require.NoError(t, all[0].cmd.Process.Signal(syscall.SIGSTOP)) },
			func() { took = g.carriesOn(t, began) })
		l.reaches(t, l.size()+200)
		// Everything ends without the first process, also what it held.
		l.settles(t, all[1])
		gone := time.Since(stop.from)

		woken := time.Now()
		require.NoError(t, all[0].cmd.Process.Signal(syscall.SIGCONT))
		second := delayed(t, all[2], g)
		g.until(t, "a request of the process that goes on", func() bool {
			for _, id := range second.names() {
				for _, a := range g.byID[id] {
					if a.agent == agent(0) {
						return true
					}
				}
			}
			return false
		})
		second.settles(t, all[0])
		sum := count(t, all[0])
		require.Equal(t, sum.Registered, sum.Delivered, sum.String())

		// Between the last look at the clock and the first byte on the wire are a few instructions, and it may have
		// been stopped right there. What only waited for its turn must not start any more.
		late := make(map[string]bool)
		for _, id := range l.accepted {
			for _, a := range g.of(id) {
				late[id] = late[id] || a.agent == agent(0) && a.began.After(woken)
			}
			if !late[id] {
				delete(late, id)
			}
		}
		require.LessOrEqual(t, len(late), 3, "jobs had ended, and attempts started: %v", late)
		again := g.repeated(t, l.accepted)
		for _, a := range again {
			if !late[a.id] {
				require.Equal(t, agent(0), a.agent, "job %s came again, though it was not the stopped process's", a.id)
				require.True(t, mayRepeat(a, []disturbance{stop}),
					"job %s came again, though it was not in flight", a.id)
			}
		}
		require.Empty(t, g.repeated(t, second.accepted), "a job came again after the process went on")
		t.Logf("carried on after %s; at most %s late; %d of %d jobs came again, %d of them late; stopped for %s",
			took.Round(time.Millisecond), g.lateness(l.accepted).Round(time.Millisecond), len(again),
			len(l.accepted), len(late), gone.Round(time.Millisecond))
	})
}

// names returns the ids of the accepted jobs.
func (l *load) names() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string(nil), l.accepted...)
}
