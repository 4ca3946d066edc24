package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// handle starts a dispatcher without a deliverer that handles the topic orders.
func handle(t *testing.T, f dispatcher.HandlerFunc) *fixture {
	t.Helper()
	return start(t, dispatcher.Options{}, func(d *dispatcher.Dispatcher) { d.Handle("orders", f) })
}

// order registers a job of the topic orders, without a URL.
func (r *fixture) order(t *testing.T, change ...func(*job.New)) job.Job {
	t.Helper()
	n := job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}}}
	for _, c := range change {
		c(&n)
	}
	got := r.Register(t.Context(), []job.New{n})[0]
	require.NoError(t, got.Err)
	return got.Job
}

// change changes the policy of the topic orders.
func (r *fixture) change(t *testing.T, change func(*policy.Topic)) {
	t.Helper()
	_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
		func(p *policy.Topic) error { change(p); return nil })
	require.NoError(t, err)
}

func TestHandle_CallsTheFunctionOfTheTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		jobs := make(chan *dispatcher.Job, 1)
		r := handle(t, func(_ context.Context, j *dispatcher.Job) error { jobs <- j; return nil })
		made := r.order(t, func(n *job.New) {
			n.Lane, n.Body, n.BodyKind, n.ContentType = "eu", []byte("42"), job.BodyText, "text/plain"
			n.Labels = map[string]string{"a": "b"}
			n.Header, n.Delay = map[string][]string{"X-A": {"1"}, "Authorization": {"Bearer s3cret"}}, time.Minute
		})
		require.Equal(t, &dispatcher.Job{
			ID: made.ID, Namespace: job.DefaultNamespace, Topic: "orders", Lane: "eu", Attempt: 1,
			RetriesLeft: 9, DueAt: made.DueAt, Body: []byte("42"), ContentType: "text/plain",
			Header: map[string][]string{"X-A": {"1"}, "Authorization": {"Bearer s3cret"}},
			Labels: map[string]string{"a": "b"},
		}, <-jobs)
		require.False(t, time.Now().Before(made.DueAt))
		synctest.Wait()
		got := r.get(t, made.Ref())
		require.Equal(t, job.Delivered, got.State)
		require.Len(t, got.History, 1)
		require.Empty(t, got.History[0].Error)
		topic, err := r.Topic(t.Context(), job.DefaultNamespace, "orders")
		require.NoError(t, err)
		require.Equal(t, policy.DeliverHandler, topic.Policy.Deliver, "other processes leave it to this one")
	})
}

// shipError is an error whose methods panic: Error for nil, Unwrap always.
type shipError struct{ order string }

func (e *shipError) Error() string { return "order " + e.order }

func (e *shipError) Unwrap() error { panic("no cause of order " + e.order) }

func TestHandle_KeepsJobsWithURLsFromBeingSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		register := start(t, dispatcher.Options{Store: m, RegisterOnly: true})
		before := register.order(t, func(n *job.New) { n.URL = "https://shop.example/before" })

		var handled atomic.Int64
		count := func(context.Context, *dispatcher.Job) error { handled.Add(1); return nil }
		r := start(t, dispatcher.Options{Store: m, Deliverer: rec},
			func(d *dispatcher.Dispatcher) { d.Handle("orders", count) })
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1, handled.Load(), "a job that was there before")
		require.Equal(t, job.Delivered, r.get(t, before.Ref()).State)

		register.change(t,
			func(p *policy.Topic) { p.Deliver, p.URL = policy.DeliverPush, "https://shop.example/topic" })
		register.order(t)
		time.Sleep(30 * time.Second)
		require.EqualValues(t, 1, handled.Load(), "other processes would send it")
		time.Sleep(35 * time.Second)
		require.EqualValues(t, 2, handled.Load(), "the topic is set again within a minute")

		r.change(t, func(p *policy.Topic) { p.Deliver = policy.DeliverPush })
		r.order(t, func(n *job.New) { n.URL = "https://shop.example/own" })
		synctest.Wait()
		require.EqualValues(t, 3, handled.Load(), "a registration sets it at once")
		require.Empty(t, rec.calls())
	})
}

func TestHandle_IsSetByARegistrationBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		start(t, dispatcher.Options{Store: m, Deliverer: rec})
		d, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet})
		require.NoError(t, err)
		defer d.Close()
		d.Handle("orders", func(context.Context, *dispatcher.Job) error { return nil })
		made := (&fixture{Dispatcher: d}).order(t, func(n *job.New) { n.URL = "https://shop.example/own" })
		time.Sleep(time.Minute)
		require.Empty(t, rec.calls(), "it waits for Run")
		require.Equal(t, job.Ready, (&fixture{Dispatcher: d}).get(t, made.Ref()).State)
	})
}

func TestHandle_ATopicThatCannotBeSetKeepsNoOtherFromIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := &damagedSettings{
			Store:   storetest.NewModel(storetest.ModelOptions{}),
			damaged: map[store.DocumentKey]bool{},
		}
		register := start(t, dispatcher.Options{Store: damaged, RegisterOnly: true})
		register.change(t, func(p *policy.Topic) { p.Retries = new(3) })
		key := store.DocumentKey{Namespace: job.DefaultNamespace, Kind: store.KindTopic, Name: "orders"}
		damaged.damage(key)
		mail := register.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "mails"}}})

		calls := make(chan string, 2)
		ignore := func(_ context.Context, j *dispatcher.Job) error { calls <- j.ID; return nil }
		r := start(t, dispatcher.Options{Store: damaged},
			func(d *dispatcher.Dispatcher) { d.Handle("orders", ignore); d.Handle("mails", ignore) })
		next := func() string {
			select {
			case id := <-calls:
				return id
			case <-time.After(time.Minute):
				return "none"
			}
		}
		require.Equal(t, mail.ID, next())
		order := r.order(t, func(n *job.New) { n.URL = "https://shop.example/own" })
		_, err := r.ReplaceTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			func(p *policy.Topic) error { *p = policy.Topic{}; return nil })
		require.NoError(t, err)
		require.Equal(t, order.ID, next(), "the topic is set when it can be")
	})
}

func TestHandle_HoldsATopicWhosePolicyIsNotReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		damaged := &damagedSettings{
			Store:   storetest.NewModel(storetest.ModelOptions{}),
			damaged: map[store.DocumentKey]bool{},
		}
		register := start(t, dispatcher.Options{Store: damaged, RegisterOnly: true})
		register.change(t, func(p *policy.Topic) { p.Deliver, p.Retries = policy.DeliverHandler, new(3) })
		damaged.damage(store.DocumentKey{Namespace: job.DefaultNamespace, Kind: store.KindTopic, Name: "orders"})
		var calls atomic.Int64
		r := start(t, dispatcher.Options{Store: damaged}, func(d *dispatcher.Dispatcher) {
			d.Handle("orders", func(context.Context, *dispatcher.Job) error { calls.Add(1); return nil })
		})
		register.order(t)
		time.Sleep(time.Minute)
		require.Zero(t, calls.Load(), "it would be handled under default retries")
		_, err := r.ReplaceTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			func(p *policy.Topic) error {
				*p = policy.Topic{Deliver: policy.DeliverHandler, Retries: new(3)}
				return nil
			})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestHandle_Errors(t *testing.T) {
	long := strings.Repeat("long\n", 1000)
	for name, c := range map[string]struct {
		fail   func() error
		wait   time.Duration // of the retry; zero: the job is dead
		reason policy.Reason
		text   string
	}{
		"an error climbs the " +
			"ladder": {fail: func() error { return errors.New("no\ndisk") }, wait: 3 * time.Minute, text: "no disk"},
		"a panic is an " +
			"error": {fail: func() error { panic("nil map") }, wait: 3 * time.Minute, text: "panic: nil map"},
		"the end of the goroutine": {
			fail: func() error { runtime.Goexit(); return nil }, wait: 3 * time.Minute,
			text: "the handler ended its goroutine",
		},
		"a long text": {fail: func() error {
			return errors.New(long)
		}, wait: 3 * time.Minute, text: strings.Repeat("long ", 204) + "l…"},
		"Retry": {fail: func() error {
			return dispatcher.Retry(5 * time.Second)
		}, wait: 5 * time.Second, text: "retry after 5s"},
		"Retry at once": {
			fail: func() error { return dispatcher.Retry(0) }, wait: time.Millisecond, text: "retry after 0s",
		},
		"a wrapped Retry": {
			fail: func() error { return fmt.Errorf("busy: %w", dispatcher.Retry(time.Hour)) }, wait: time.Hour,
			text: "busy: retry after 1h0m0s",
		},
		"a typed nil": {
			fail: func() error { var e *shipError; return e }, wait: 3 * time.Minute,
			text: "panic: runtime error: invalid memory address or nil pointer dereference",
		},
		"an error that cannot be unwrapped": {
			fail: func() error { return &shipError{order: "7"} }, wait: 3 * time.Minute,
			text: "panic: no cause of order 7",
		},
		"a nil RetryError": {
			fail: func() error { return (*dispatcher.RetryError)(nil) }, wait: 3 * time.Minute, text: "retry",
		},
		"a nil DeadError": {fail: func() error {
			return (*dispatcher.DeadError)(nil)
		}, reason: policy.ReasonNonRetryable, text: "given up"},
		"a DeadError without a cause": {
			fail: func() error { return &dispatcher.DeadError{} }, reason: policy.ReasonNonRetryable, text: "given up",
		},
		"Dead": {fail: func() error {
			return dispatcher.Dead("no such order")
		}, reason: policy.ReasonNonRetryable, text: "no such order"},
		"a wrapped Dead": {fail: func() error {
			return fmt.Errorf("order 7: %w", dispatcher.Dead("gone"))
		}, reason: policy.ReasonNonRetryable, text: "order 7: gone"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var calls []time.Time
				r := handle(t, func(_ context.Context, j *dispatcher.Job) error {
					calls = append(calls, time.Now())
					if j.Attempt > 1 {
						return nil
					}
					return c.fail()
				})
				r.change(t, func(p *policy.Topic) { p.Ladder, p.Jitter = policy.Ladder{3 * time.Minute}, new(0.0) })
				made := r.order(t)
				time.Sleep(c.wait + time.Minute)
				synctest.Wait()
				got := r.get(t, made.Ref())
				first := got.History[0]
				require.Equal(t, policy.ClassConsumer, first.ErrorClass)
				require.Equal(t, c.text, first.Error)
				if c.wait == 0 {
					require.Equal(t, job.Dead, got.State)
					require.Equal(t, c.reason, got.Reason)
					require.Len(t, calls, 1)
					return
				}
				require.Equal(t, job.Delivered, got.State)
				require.Len(t, calls, 2)
				require.GreaterOrEqual(t, calls[1].Sub(calls[0]), c.wait-time.Millisecond,
					"the model's clock has milliseconds")
				require.Less(t, calls[1].Sub(calls[0]), c.wait+time.Second)
			})
		})
	}
}

func TestHandle_MayRetryAfterDays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := handle(t, func(context.Context, *dispatcher.Job) error { return dispatcher.Retry(31 * 24 * time.Hour) })
		made := r.order(t)
		time.Sleep(time.Second)
		got := r.get(t, made.Ref())
		require.Equal(t, job.Scheduled, got.State)
		require.InDelta(t, 30*24, got.DueAt.Sub(made.DueAt).Hours(), 0.01, "the longest rung")
		require.Equal(t, "retry after 720h0m0s", got.History[0].Error)

		r.change(t, func(p *policy.Topic) { p.MaxAge = 48 * time.Hour })
		bounded := r.order(t)
		time.Sleep(time.Second)
		require.Equal(t, policy.ReasonMaxAge, r.get(t, bounded.Ref()).Reason, "a max_age that is set wins")
	})
}

func TestHandle_OpensNoBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		r := handle(t, func(context.Context, *dispatcher.Job) error { calls.Add(1); return errors.New("no") })
		for range 50 {
			r.order(t)
		}
		time.Sleep(time.Second)
		require.EqualValues(t, 50, calls.Load())
	})
}

func TestHandle_EndsTheContextAfterTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var began time.Time
		var took time.Duration
		r := handle(t, func(ctx context.Context, j *dispatcher.Job) error {
			if j.Attempt > 1 {
				return nil
			}
			began = time.Now()
			<-ctx.Done()
			took = time.Since(began)
			return ctx.Err()
		})
		made := r.order(t, func(n *job.New) { n.Timeout = 7 * time.Second })
		time.Sleep(time.Minute)
		synctest.Wait()
		require.Equal(t, 7*time.Second, took)
		got := r.get(t, made.Ref())
		require.Equal(t, job.Delivered, got.State)
		require.Equal(t, "context deadline exceeded", got.History[0].Error)
	})
}

func TestHandle_LeavesStuckFunctionsToThemselves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		r := handle(t, func(_ context.Context, j *dispatcher.Job) error {
			if j.Attempt == 1 {
				<-release
			}
			return nil
		})
		made := r.order(t, func(n *job.New) { n.Timeout = time.Second })
		time.Sleep(time.Minute)
		got := r.get(t, made.Ref())
		require.Equal(t, job.Delivered, got.State)
		require.Equal(t, "the handler has not returned within its timeout of 1s", got.History[0].Error)
		require.Equal(t, job.KindAttempt, got.History[0].Kind, "its lease had not ended")
		close(release)
	})
}

func TestHandle_LeavesATopicToOthersWhileAThousandCallsAreStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec, release := &receiver{answer: status(200)}, make(chan struct{})
		var calls, others atomic.Int64
		stuck := start(t, dispatcher.Options{Store: shared{m}, Deliverer: rec}, func(d *dispatcher.Dispatcher) {
			d.Handle("orders", func(context.Context, *dispatcher.Job) error { calls.Add(1); <-release; return nil })
		})
		stuck.change(t, func(p *policy.Topic) {
			p.Workers, p.LaneConcurrency, p.Timeout, p.Ladder = 1000, 2000, time.Second,
				policy.Ladder{30 * 24 * time.Hour}
		})
		for range 1000 {
			stuck.order(t)
		}
		time.Sleep(20 * time.Second)
		require.EqualValues(t, 1000, calls.Load())

		waiting := stuck.order(t)
		time.Sleep(10 * time.Second)
		got := stuck.get(t, waiting.Ref())
		require.Equal(t, job.Ready, got.State)
		require.Empty(t, got.History, "it is not claimed")
		require.EqualValues(t, 1000, calls.Load())
		require.Equal(t, 2048, stuck.State().Workers, "requests of the process are as many as before")
		stuck.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "mails"}}})
		synctest.Wait()
		require.Len(t, rec.calls(), 1)

		other := start(t, dispatcher.Options{Store: shared{m}}, func(d *dispatcher.Dispatcher) {
			d.Handle("orders", func(context.Context, *dispatcher.Job) error { others.Add(1); return nil })
		})
		time.Sleep(5 * time.Second)
		require.Equal(t, job.Delivered, stuck.get(t, waiting.Ref()).State)
		require.EqualValues(t, 1, others.Load(), "another process takes it")
		require.NoError(t, other.stop())

		close(release)
		stuck.order(t)
		time.Sleep(2 * time.Second)
		require.EqualValues(t, 1001, calls.Load(), "calls begin again")
		require.NoError(t, stuck.stop())
		require.NoError(t, m.Close())
	})
}

func TestHandle_ReleasesJobsWhenTheProcessStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		defer func() { require.NoError(t, m.Close()) }()
		begun, ctxErr := make(chan struct{}), error(nil)
		d, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet, Grace: 10 * time.Second})
		require.NoError(t, err)
		d.Handle("orders", func(ctx context.Context, _ *dispatcher.Job) error {
			close(begun)
			<-ctx.Done()
			ctxErr = ctx.Err()
			return ctxErr
		})
		ended := make(chan error, 1)
		go func() { ended <- d.Run(t.Context()) }()
		r := &fixture{Dispatcher: d}
		made := r.order(t, func(n *job.New) { n.Timeout = time.Minute })
		<-begun
		stopped := time.Now()
		d.Close()
		require.NoError(t, <-ended)
		require.LessOrEqual(t, time.Since(stopped), 10*time.Second)
		require.ErrorIs(t, ctxErr, context.Canceled)
		got := r.get(t, made.Ref())
		require.Equal(t, job.Ready, got.State)
		require.Zero(t, got.Attempts, "it costs no retry")
		d.Close() // does nothing
		require.Error(t, d.Run(t.Context()))
	})
}

func TestHandle_HearsDecisionsWhileTheProcessStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		defer func() { require.NoError(t, m.Close()) }()
		begun := make(chan struct{}, 3)
		d, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet, Grace: 10 * time.Second})
		require.NoError(t, err)
		decisions := map[string]error{
			"none": errors.New("cut off"), "dead": dispatcher.Dead("no such order"),
			"later": dispatcher.Retry(time.Hour),
		}
		d.Handle("orders", func(ctx context.Context, j *dispatcher.Job) error {
			begun <- struct{}{}
			<-ctx.Done()
			return decisions[j.ID]
		})
		go func() { _ = d.Run(t.Context()) }()
		r := &fixture{Dispatcher: d}
		jobs := map[string]job.Job{}
		for id := range decisions {
			jobs[id] = r.order(t, func(n *job.New) { n.ID, n.Lane, n.Timeout = id, id, time.Minute })
		}
		for range decisions {
			<-begun
		}
		d.Close()
		require.Zero(t, r.get(t, jobs["none"].Ref()).Attempts, "it is released")
		require.Equal(t, policy.ReasonNonRetryable, r.get(t, jobs["dead"].Ref()).Reason)
		later := r.get(t, jobs["later"].Ref())
		require.Equal(t, 1, later.FailedAttempts)
		require.InDelta(t, time.Hour, time.Until(later.DueAt), float64(time.Second))
	})
}

func TestHandle_RunsBesidePush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		var handled atomic.Int64
		r := start(t, dispatcher.Options{Deliverer: rec}, func(d *dispatcher.Dispatcher) {
			d.Handle("orders",
				func(context.Context, *dispatcher.Job) error { handled.Add(1); return dispatcher.Dead("no") })
		})
		r.order(t, func(n *job.New) { n.OnDead = &policy.Callback{URL: "https://shop.example/dead"} })
		r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "mails"}}})
		time.Sleep(time.Second)
		require.EqualValues(t, 1, handled.Load())
		var urls []string
		for _, c := range rec.calls() {
			urls = append(urls, c.URL)
		}
		require.ElementsMatch(t, []string{"https://shop.example/hook", "https://shop.example/dead"}, urls,
			"the callback of a handled job is sent")
	})
}

func TestDeliver_ChangesWhileJobsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		pusher := start(t, dispatcher.Options{Store: m, Deliverer: rec})
		pusher.change(t, func(p *policy.Topic) { p.Deliver = policy.DeliverPull })
		pulled := pusher.order(t)
		keeps := pusher.order(t,
			func(n *job.New) { n.Header = map[string][]string{"Authorization": {"Bearer s3cret"}} })
		time.Sleep(time.Minute)
		require.Empty(t, rec.calls(), "a job that waits for a client is not sent")
		for _, j := range []job.Job{pulled, keeps} {
			require.Equal(t, job.Ready, pusher.get(t, j.Ref()).State)
		}
		noURL := pusher.Register(t.Context(), []job.New{{Spec: job.Spec{Queue: job.Queue{Topic: "mails"}}}})[0].Err
		require.ErrorContains(t, noURL, "is required")

		pusher.change(t, func(p *policy.Topic) { p.Deliver, p.URL = policy.DeliverPush, "https://shop.example/late" })
		time.Sleep(5 * time.Second)
		require.Len(t, rec.calls(), 1)
		require.Equal(t, "https://shop.example/late", rec.calls()[0].URL)
		require.Equal(t, job.Delivered, pusher.get(t, pulled.Ref()).State)
		got := pusher.get(t, keeps.Ref())
		require.Equal(t, policy.ReasonInvalid, got.Reason, "its secret header was set for no URL")

		pusher.change(t, func(p *policy.Topic) { p.Deliver, p.URL = policy.DeliverPull, "" })
		late := pusher.order(t)
		pusher.change(t, func(p *policy.Topic) {
			p.Deliver, p.Ladder, p.Jitter = policy.DeliverPush, policy.Ladder{time.Minute}, new(0.0)
		})
		time.Sleep(5 * time.Second)
		got = pusher.get(t, late.Ref())
		require.Equal(t, job.Scheduled, got.State, "the operator has the ladder's time to set a URL")
		require.Equal(t, 1, got.FailedAttempts)
		require.Equal(t, policy.ClassNoURL, got.History[len(got.History)-1].ErrorClass)
		require.Len(t, rec.calls(), 1)
		pusher.change(t, func(p *policy.Topic) { p.URL = "https://shop.example/set" })
		time.Sleep(time.Minute)
		require.Equal(t, job.Delivered, pusher.get(t, late.Ref()).State)
		require.Equal(t, "https://shop.example/set", rec.calls()[1].URL)
	})
}

func TestDeliver_IsPushForCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: status(200)}})
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, job.CallbackTopic, store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.Deliver = policy.DeliverPull
				return nil
			})
		invalid, ok := errors.AsType[*job.InvalidError](err)
		require.True(t, ok)
		require.Equal(t, "/deliver", invalid.Errors[0].Field)
	})
}

func TestHandle_IsSafeBesideRegister(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	defer func() { require.NoError(t, m.Close()) }()
	d, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet})
	require.NoError(t, err)
	defer d.Close()
	var calls sync.WaitGroup
	for n := range 8 {
		calls.Go(func() {
			for k := range 20 {
				d.Handle(fmt.Sprintf("topic-%d-%d", n, k), func(context.Context, *dispatcher.Job) error { return nil })
			}
		})
		calls.Go(func() {
			for range 20 {
				(&fixture{Dispatcher: d}).register(t, job.New{})
			}
		})
	}
	calls.Wait()
}

func TestHandle_RejectsMistakes(t *testing.T) {
	m := storetest.NewModel(storetest.ModelOptions{})
	defer func() { require.NoError(t, m.Close()) }()
	ignore := func(context.Context, *dispatcher.Job) error { return nil }
	d, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet})
	require.NoError(t, err)
	require.ErrorContains(t, d.Run(t.Context()), "a deliverer or a handler")
	_, err = dispatcher.New(dispatcher.Options{
		Store: m, Logger: quiet,
		Defaults: policy.Topic{Deliver: policy.DeliverHandler},
	})
	require.ErrorContains(t, err, "are of topics that are pushed", "callbacks would wait for ever")
	d.Handle("orders", ignore)
	for _, topic := range []string{"orders", "", "_callbacks", "a b"} {
		require.Panics(t, func() { d.Handle(topic, ignore) }, topic)
	}
	d.Close()
	require.Panics(t, func() { d.Handle("late", ignore) })
	only, err := dispatcher.New(dispatcher.Options{Store: m, Logger: quiet, RegisterOnly: true})
	require.NoError(t, err)
	require.Panics(t, func() { only.Handle("orders", ignore) })
	only.Close()
}
