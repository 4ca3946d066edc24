package pool_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// atConcurrency returns a model with slow calls, and a pool option: a lane may have as many attempts as its topic
// workers.
func atConcurrency(n int) (*settleCounter, func(*pool.Options)) {
	topicPolicy := policy.Topic{Workers: n, LaneConcurrency: n}.WithDefaults(policy.Builtin())
	s := storetest.NewModel(storetest.ModelOptions{Defaults: topicPolicy})
	return &settleCounter{Store: s, took: 20 * time.Millisecond},
		func(o *pool.Options) { o.Policies = fixedPolicy(topicPolicy) }
}

// The store is away half of the time.
func TestPrefetch_KeepsALaneAtItsConcurrencyBusyDuringCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs, n = 2000, 10
		s, option := atConcurrency(n)
		g := newGauge(10 * time.Millisecond)
		fill(t, s, jobs, "orders/x")
		stop := run(t, s, g, option)
		time.Sleep(jobs / n * 10 * time.Millisecond * 5 / 4) // a quarter more than slots that never wait
		require.Equal(t, jobs, g.count(""))
		require.Equal(t, n, g.peak(""), "no more than the lane's concurrency")
		require.NoError(t, stop())
	})
}

// The lane is empty again and again, so that now one pool, now another claims from it first.
func TestPrefetch_KeepsToTheConcurrencyOfALaneOverPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const batches, jobs, n = 40, 100, 10
		s, option := atConcurrency(n)
		g := newGauge(10 * time.Millisecond)
		carry(t, s)
		var stops []func() error
		for batch := range batches {
			if batch%10 == 0 {
				stops = append(stops, run(t, s, g, option))
			}
			if batch == 25 {
				require.NoError(t, stops[0]())
			}
			fillFrom(t, s, batch*jobs, jobs, "orders/x")
			time.Sleep(time.Duration(batch) * 10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		require.Equal(t, batches*jobs, g.count(""))
		require.Equal(t, n, g.peak(""), "of all pools")
	})
}

func TestPrefetch_KeepsToALoweredConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		s, option := atConcurrency(n)
		g := newGauge(10 * time.Millisecond)
		carry(t, s)
		fill(t, s, 3000, "orders/x")
		run(t, s, g, option)
		time.Sleep(time.Second)
		require.Equal(t, n, g.peak(""))
		lane := store.Lane{
			Queue:    job.Queue{Namespace: "default", Topic: "orders", Lane: "x"},
			Settings: policy.Lane{LaneConcurrency: 2},
		}
		_, err := store.PutLane(t.Context(), s.Shards()[0], store.NewToken(), lane)
		require.NoError(t, err)
		time.Sleep(100 * time.Millisecond) // the next claim brings the settings
		g.reset()
		time.Sleep(time.Second)
		require.Equal(t, 2, g.peak(""))
		require.Greater(t, g.count(""), 100)
	})
}

func TestPrefetch_OfALaneAtItsConcurrencyLeavesRoomForOtherLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const n = 10
		s, option := atConcurrency(n)
		g := newGauge(10 * time.Millisecond)
		fill(t, s, 5000, "orders/x")
		run(t, s, g, option)
		time.Sleep(500 * time.Millisecond)
		fill(t, s, 200, "orders/y", "mail/z")
		before := g.count("orders/x")
		time.Sleep(time.Second)
		require.Equal(t, 200, g.count("mail/z"))
		require.Equal(t, 200, g.count("orders/y"))
		require.Greater(t, g.count("orders/x")-before, 600)
	})
}
