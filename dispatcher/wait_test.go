package dispatcher_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// The bounds in which the end of a job must be answered: by the process that ends it, and by others.
const (
	withinHere  = 20 * time.Millisecond
	withinThere = 300 * time.Millisecond
)

func TestWaitForEnd_ReturnsTheAnswerOfTheReceiverInAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storetest.NewModel(storetest.ModelOptions{Shards: 2})
		answers := []policy.Result{{Status: 503}, {Status: 200, Body: []byte("done")}}
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
			time.Sleep(500 * time.Millisecond)
			defer func() { answers = answers[1:] }()
			return answers[0]
		}}
		worker := start(t, dispatcher.Options{Store: shared{model}, Deliverer: rec})
		other := start(t, dispatcher.Options{Store: shared{model}, RegisterOnly: true})
		n := job.New{Spec: job.Spec{ID: "a"}}
		n.Ladder = policy.Ladder{10 * time.Second}
		other.register(t, n)
		var waiting sync.WaitGroup
		for p, within := range map[*fixture]time.Duration{worker: withinHere, other: withinThere} {
			waiting.Go(func() {
				found, err := p.WaitForEnd(t.Context(), jobOf("a"), time.Minute)
				returned := time.Now()
				if assert.NoError(t, err) && assert.Equal(t, job.Delivered, found.State) {
					last := found.History[len(found.History)-1]
					assert.Equal(t, []any{2, 200, "done"}, []any{last.N, last.Status, string(last.Body)})
					assert.WithinRange(t, returned, found.FinishedAt, found.FinishedAt.Add(within))
				}
			})
		}
		waiting.Wait()
		require.Len(t, rec.calls(), 2)
	})
}

func TestWaitForEnd_ReturnsAtOnceWhenAClientOfTheProcessEndsTheJob(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, d *dispatcher.Dispatcher) job.State{
		"cancelled": func(t *testing.T, d *dispatcher.Dispatcher) job.State {
			_, err := d.Cancel(t.Context(), jobOf("a").Ref(), store.Cancellation{})
			require.NoError(t, err)
			return job.Cancelled
		},
		"leased and done": func(t *testing.T, d *dispatcher.Dispatcher) job.State {
			leased, err := d.Lease(t.Context(), store.LeaseRequest{
				Namespace: job.DefaultNamespace, Topic: "pulled", Max: 1, Wait: time.Minute, Lease: time.Minute,
			})
			require.NoError(t, err)
			require.Len(t, leased, 1)
			errs, _, err := d.SettleLeases(t.Context(), job.DefaultNamespace,
				[]store.LeaseReport{{Lease: leased[0].ClientLease, Result: store.LeaseDone}}, nil)
			require.NoError(t, err)
			require.NoError(t, errs[0])
			return job.Delivered
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := start(t, dispatcher.Options{
					Store: storetest.NewModel(storetest.ModelOptions{}), RegisterOnly: true, OneProcess: true,
				})
				_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "pulled", store.ChangeOptions{},
					func(p *policy.Topic) error {
						p.Deliver = policy.DeliverPull
						return nil
					})
				require.NoError(t, err)
				r.register(t, job.New{Spec: job.Spec{ID: "a", Queue: job.Queue{Topic: "pulled"}}})
				waited := make(chan job.State)
				go func() {
					found, err := r.WaitForEnd(t.Context(), jobOf("a"), time.Minute)
					assert.NoError(t, err)
					waited <- found.State
				}()
				synctest.Wait()
				state, began := end(t, r.Dispatcher), time.Now()
				require.Equal(t, state, <-waited)
				require.Less(t, time.Since(began), withinHere)
			})
		})
	}
}

func TestWaitForEnd_ReturnsTheJobAsItIsWhenTheProcessStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storetest.NewModel(storetest.ModelOptions{})
		r := start(t, dispatcher.Options{
			Store: shared{model}, Deliverer: &receiver{answer: func(ctx context.Context, _ job.Request) policy.Result {
				<-ctx.Done()
				return policy.Result{}
			}},
		})
		running := r.register(t, job.New{})
		later := r.register(t, job.New{Delay: time.Hour})
		states := make(chan job.State, 2)
		began := time.Now()
		for _, j := range []job.Job{running, later} {
			go func() {
				found, err := r.WaitForEnd(t.Context(), j, time.Minute)
				assert.NoError(t, err)
				assert.Less(t, time.Since(began), 10*time.Second+withinHere, "before the attempt ends")
				states <- found.State
			}()
		}
		time.Sleep(10 * time.Second)
		require.Empty(t, states)
		require.NoError(t, r.stop())
		require.ElementsMatch(t, []job.State{job.Running, job.Scheduled}, []job.State{<-states, <-states})
	})
}

// jobOf returns a job with a Ref.
func jobOf(id string) (j job.Job) {
	j.Namespace, j.ID = job.DefaultNamespace, id
	return j
}
