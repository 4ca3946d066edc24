package pool_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store/storetest"
)

// flakyDeliverer answers every third attempt of a lane with a 500, and is interrupted in every seventh.
type flakyDeliverer struct{ *gaugeDeliverer }

func (f flakyDeliverer) Deliver(ctx context.Context, r job.Request) policy.Result {
	result := f.gaugeDeliverer.Deliver(ctx, r)
	switch n := f.count(r.Queue.Topic + "/" + r.Queue.Lane); {
	case n%7 == 0:
		return policy.Result{Class: policy.ClassShutdown}
	case n%3 == 0:
		return policy.Result{Status: 500}
	}
	return result
}

// Pools come and go, so that lanes change between them.
func TestOrdered_DeliversOneJobAtATimeInOrderOverPools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const jobs = 60
		topicPolicy := policy.Topic{
			Ordered: true, LaneConcurrency: 8, Ladder: policy.Ladder{20 * time.Millisecond}, Retries: new(100),
			Breaker: policy.Breaker{Failures: new(0)},
		}.WithDefaults(policy.Builtin())
		s := storetest.NewModel(storetest.ModelOptions{Defaults: topicPolicy})
		f := flakyDeliverer{newGauge(10 * time.Millisecond)}
		carry(t, s)
		fill(t, s, jobs, "orders/x", "orders/y")
		for range 5 {
			stops := []func() error{}
			for range 2 {
				stops = append(stops, run(t, s, f, func(o *pool.Options) { o.Policies = fixedPolicy(topicPolicy) }))
			}
			time.Sleep(400 * time.Millisecond)
			require.NoError(t, stops[0]())
			time.Sleep(100 * time.Millisecond)
			require.NoError(t, stops[1]())
		}
		run(t, s, f, func(o *pool.Options) { o.Policies = fixedPolicy(topicPolicy) })
		time.Sleep(time.Minute)
		for _, lane := range []string{"x", "y"} {
			require.Equal(t, 1, f.peak("orders/"+lane))
			next := 0
			for _, r := range f.started("orders/" + lane) {
				if r.Ref.ID == fmt.Sprintf("orders-%s-%d", lane, next+1) {
					next++
				}
				require.Equal(t, fmt.Sprintf("orders-%s-%d", lane, next), r.Ref.ID,
					"the attempt after that of %d", next)
			}
			require.Equal(t, jobs-1, next)
		}
	})
}

// started returns the attempts of a lane, in order.
func (g *gaugeDeliverer) started(lane string) (attempts []job.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, r := range g.starts {
		if r.Queue.Topic+"/"+r.Queue.Lane == lane {
			attempts = append(attempts, r)
		}
	}
	return attempts
}
