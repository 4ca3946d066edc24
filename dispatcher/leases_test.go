package dispatcher_test

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/storetest"
)

// A process that registers only leases what others carry. The policy and the callback of the end are those of push.
func TestLease_FromAProcessThatDoesNotDeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{Shards: 2})
		posted := make(chan job.Request, 10)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		start := func(o dispatcher.Options) *dispatcher.Dispatcher {
			o.Store = s
			d, err := dispatcher.New(o)
			require.NoError(t, err)
			running.Go(func() { _ = d.Run(ctx) })
			return d
		}
		start(dispatcher.Options{Deliverer: deliverFunc(func(_ context.Context, r job.Request) policy.Result {
			posted <- r
			return policy.Result{Status: 200, StartedAt: time.Now()}
		})})
		d := start(dispatcher.Options{RegisterOnly: true})
		synctest.Wait()
		_, err := d.ChangeTopic(t.Context(), job.DefaultNamespace, "reports", store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.Deliver, p.OnDead = policy.DeliverPull, &policy.Callback{URL: "https://a.example/dead"}
				return nil
			})
		require.NoError(t, err)
		require.Equal(t, []store.Readiness{{Store: job.MainStore}}, d.Readiness(t.Context()))
		spec := job.Spec{ID: "a", Queue: job.Queue{Topic: "reports"}, BodyKind: job.BodyText, Body: []byte("7")}
		require.NoError(t, d.Register(t.Context(), []job.New{{Spec: spec}})[0].Err)

		leased, err := d.Lease(t.Context(),
			store.LeaseRequest{Namespace: job.DefaultNamespace, Topic: "reports", Max: 10, Wait: time.Minute})
		require.NoError(t, err)
		require.Len(t, leased, 1)
		require.Equal(t, "7", string(leased[0].Body))
		require.Equal(t, policy.Builtin().Timeout, leased[0].Until.Sub(leased[0].Now()))
		require.Empty(t, posted)
		errs, _, err := d.SettleLeases(t.Context(), job.DefaultNamespace, []store.LeaseReport{
			{Lease: leased[0].ClientLease, Result: store.LeaseDead, Error: "no such customer"},
		}, nil)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs)
		callback := <-posted
		require.Contains(t, string(callback.Body), `"no such customer"`)
		require.Contains(t, string(callback.Body), `"reason":"nonretryable"`)
		got, err := d.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "a"})
		require.NoError(t, err)
		require.Equal(t, job.Dead, got.State)
		require.NotEmpty(t, got.History[0].Process)
		stop()
		running.Wait()
	})
}

// Jobs that wait when their topic is pulled no more are sent, those that wait when it becomes pulled are leased.
func TestLease_ChangesOfDeliverApplyToWaitingJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := storetest.NewModel(storetest.ModelOptions{})
		posted := make(chan string, 10)
		d, err := dispatcher.New(
			dispatcher.Options{Store: s, Deliverer: deliverFunc(func(_ context.Context, r job.Request) policy.Result {
				posted <- r.Ref.ID
				return policy.Result{Status: 200, StartedAt: time.Now()}
			})},
		)
		require.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		var running sync.WaitGroup
		running.Go(func() { _ = d.Run(ctx) })
		synctest.Wait()
		put := func(deliver policy.Deliver) {
			_, err := d.ChangeTopic(t.Context(), job.DefaultNamespace, "reports", store.ChangeOptions{},
				func(p *policy.Topic) error {
					p.Deliver, p.URL = deliver, "https://a.example"
					return nil
				})
			require.NoError(t, err)
		}
		register := func(id string) {
			require.NoError(t, d.Register(t.Context(),
				[]job.New{{Spec: job.Spec{ID: id, Queue: job.Queue{Topic: "reports", Lane: "a"}}}})[0].Err)
		}
		put(policy.DeliverPull)
		register("pulled-first")
		time.Sleep(time.Minute)
		require.Empty(t, posted)
		request := store.LeaseRequest{
			Namespace: job.DefaultNamespace, Topic: "reports", Max: 1,
			Wait: 5 * time.Second, Lease: time.Hour,
		}
		leased, err := d.Lease(t.Context(), request)
		require.NoError(t, err)
		require.Len(t, leased, 1)
		register("waiting")
		time.Sleep(time.Minute)
		put(policy.DeliverPush)
		require.Equal(t, "waiting", <-posted)
		errs, _, err := d.SettleLeases(t.Context(), job.DefaultNamespace, []store.LeaseReport{
			{Lease: leased[0].ClientLease, Result: store.LeaseDone},
		}, nil)
		require.NoError(t, err)
		require.Equal(t, []error{nil}, errs, "a lease outlives the change")
		_, err = d.Lease(t.Context(), request)
		require.Error(t, err)

		put(policy.DeliverPull)
		register("again")
		leased, err = d.Lease(t.Context(), request)
		require.NoError(t, err)
		require.Len(t, leased, 1)
		require.Empty(t, posted)
		stop()
		running.Wait()
	})
}

// deliverFunc is a pool.Deliverer.
type deliverFunc func(context.Context, job.Request) policy.Result

func (f deliverFunc) Deliver(ctx context.Context, r job.Request) policy.Result { return f(ctx, r) }

// A consumer that hears nothing of its report repeats it, and must not undo work that counts.
func TestSettleLeases_AnswersARepeatAfterARestartOnSQLite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ringback.db")
	synctest.Test(t, func(t *testing.T) {
		open := func() *fixture {
			s, err := sqlite.Open(t.Context(),
				sqlite.Options{Path: path, Limits: policy.Builtin().Limits(), Logger: quiet})
			require.NoError(t, err)
			return start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		}
		d := open()
		pulled := func(p *policy.Topic) error {
			p.Deliver, p.KeepDelivered = policy.DeliverPull, policy.Retention{Max: new(int64(0))}
			return nil
		}
		_, err := d.ChangeTopic(t.Context(), job.DefaultNamespace, "reports", store.ChangeOptions{}, pulled)
		require.NoError(t, err)
		for range 3 {
			spec := job.Spec{Queue: job.Queue{Topic: "reports", Lane: "a"}}
			require.NoError(t, d.Register(t.Context(), []job.New{{Spec: spec}})[0].Err)
		}
		leased, err := d.Lease(t.Context(), store.LeaseRequest{
			Namespace: job.DefaultNamespace, Topic: "reports", Max: 3, Wait: time.Minute, Lease: time.Hour,
		})
		require.NoError(t, err)
		require.Len(t, leased, 3)
		reports := []store.LeaseReport{
			{Lease: leased[0].ClientLease, Result: store.LeaseDone},
			{Lease: leased[1].ClientLease, Result: store.LeaseRetry, Error: "no disk space"},
		}
		settle := func(reports ...store.LeaseReport) []error {
			errs, _, err := d.SettleLeases(t.Context(), job.DefaultNamespace, reports, nil)
			require.NoError(t, err)
			return errs
		}
		require.Equal(t, []error{nil, nil}, settle(reports...))
		require.NoError(t, d.stop())
		time.Sleep(50 * time.Second)
		d = open()
		require.Equal(t, []error{nil, nil}, settle(reports...))
		require.Equal(t, []error{store.ErrLeaseLost},
			settle(store.LeaseReport{Lease: leased[2].ClientLease, Result: store.LeaseDone}), "it was not recorded")
		require.Len(t, d.get(t, leased[1].Ref()).History, 1)
	})
}
