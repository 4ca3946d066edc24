package dispatcher_test

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/sqlite"
	"github.com/ringback/ringback/store/storetest"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(handlerProcess); dir != "" {
		runHandlerProcess(dir)
		return
	}
	goleak.VerifyTestMain(m)
}

var quiet = slog.New(slog.DiscardHandler)

// receiver is a deliverer that records attempts and responds as configured.
type receiver struct {
	answer func(ctx context.Context, r job.Request) policy.Result

	mu   sync.Mutex
	seen []call
}

type call struct {
	job.Request
	at time.Time
}

func (r *receiver) Deliver(ctx context.Context, request job.Request) policy.Result {
	began := time.Now()
	r.mu.Lock()
	r.seen = append(r.seen, call{request, began})
	r.mu.Unlock()
	result := r.answer(ctx, request)
	result.StartedAt, result.Duration = began, time.Since(began)
	return result
}

func (r *receiver) calls() []call {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]call(nil), r.seen...)
}

func status(code int) func(context.Context, job.Request) policy.Result {
	return func(context.Context, job.Request) policy.Result { return policy.Result{Status: code} }
}

// fixture is a running dispatcher with its store and receiver.
type fixture struct {
	*dispatcher.Dispatcher
	stop func() error
}

// Stats counts the jobs of one topic.
func (r *fixture) Stats(ctx context.Context, namespace, topic string) ([]store.TopicStats, error) {
	return r.TopicStats(ctx, store.StatsFilter{Namespace: namespace, Topics: []string{topic}})
}

func start(t *testing.T, opts dispatcher.Options, prepare ...func(*dispatcher.Dispatcher)) *fixture {
	t.Helper()
	if opts.Store == nil {
		opts.Store = storetest.NewModel(storetest.ModelOptions{})
	}
	opts.Logger = cmp.Or(opts.Logger, quiet)
	d, err := dispatcher.New(opts)
	require.NoError(t, err)
	for _, p := range prepare {
		p(d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	var once sync.Once
	r := &fixture{Dispatcher: d}
	r.stop = func() (err error) {
		once.Do(func() {
			cancel()
			err = <-ended
			require.NoError(t, opts.Store.Close())
		})
		return err
	}
	t.Cleanup(func() { _ = r.stop() })
	return r
}

// register takes one job and returns it as registered.
func (r *fixture) register(t *testing.T, n job.New) job.Job {
	t.Helper()
	if n.URL == "" {
		n.URL = "https://shop.example/hook"
	}
	got := r.Register(t.Context(), []job.New{n})[0]
	require.NoError(t, got.Err)
	require.Equal(t, store.Created, got.Outcome)
	return got.Job
}

// registerAll takes jobs, as many at once as a store does.
func (r *fixture) registerAll(t *testing.T, jobs []job.New) {
	t.Helper()
	for part := range slices.Chunk(jobs, store.MaxBatch) {
		for _, got := range r.Register(t.Context(), part) {
			require.NoError(t, got.Err)
		}
	}
}

func (r *fixture) get(t *testing.T, ref job.Ref) job.Job {
	t.Helper()
	got, err := r.Get(t.Context(), ref)
	require.NoError(t, err)
	return got
}

func TestDelivery_IsMadeWhenDueAndNotBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		began := time.Now()
		made := r.register(t,
			job.New{Spec: job.Spec{Body: []byte(`{"order":4711}`), BodyKind: job.BodyJSON}, Delay: 90 * time.Second})
		time.Sleep(89_999 * time.Millisecond)
		synctest.Wait()
		require.Empty(t, rec.calls())
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		calls := rec.calls()
		require.Len(t, calls, 1)
		require.GreaterOrEqual(t, calls[0].at.Sub(began), 90*time.Second)
		require.Less(t, calls[0].at.Sub(began), 90*time.Second+10*time.Millisecond,
			"the carrier sleeps until the due time, not for an interval")
		require.Equal(t, []byte(`{"order":4711}`), calls[0].Body)
		require.Equal(t, "shop.example:443", calls[0].Queue.Lane)
		got := r.get(t, made.Ref())
		require.Equal(t, job.Delivered, got.State)
		require.Equal(t, 1, got.Attempts)
		require.Len(t, got.History, 1)
	})
}

func TestRegister_EarliestDueJobWakesTheCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		r.register(t, job.New{Delay: time.Hour})
		time.Sleep(10500 * time.Millisecond) // the carrier is in the middle of a sleep
		began := time.Now()
		r.register(t, job.New{Delay: 5 * time.Millisecond})
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		require.Len(t, rec.calls(), 1)
		require.Less(t, rec.calls()[0].at.Sub(began), 20*time.Millisecond)
	})
}

func TestRegister_WakesANewCarrier(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storetest.NewModel(storetest.ModelOptions{})
		rec := &receiver{answer: status(200)}
		first := start(t, dispatcher.Options{Store: shared{model}, Deliverer: rec})
		synctest.Wait()
		second := start(t, dispatcher.Options{Store: shared{model}, Deliverer: rec})
		time.Sleep(10 * time.Second)
		require.NoError(t, first.stop())
		time.Sleep(1100 * time.Millisecond) // the second leads now, and has looked once
		synctest.Wait()
		for range 20 {
			second.register(t, job.New{Delay: 5 * time.Millisecond})
			time.Sleep(97 * time.Millisecond)
			synctest.Wait()
		}
		require.Len(t, rec.calls(), 20)
		for _, c := range rec.calls() {
			require.Less(t, c.at.Sub(c.DueAt), 20*time.Millisecond)
		}
		require.NoError(t, second.stop())
		require.NoError(t, model.Close())
	})
}

// onStores runs a test in fake time over every store whose clock follows the process's. Redis owns its clock.
func onStores(t *testing.T, test func(t *testing.T, s store.Store)) {
	t.Helper()
	t.Run("model", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			test(t, storetest.NewModel(storetest.ModelOptions{}))
		})
	})
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "ringback.db")
		synctest.Test(t, func(t *testing.T) {
			s, err := sqlite.Open(t.Context(),
				sqlite.Options{Path: path, Limits: policy.Builtin().Limits(), Logger: quiet})
			require.NoError(t, err)
			test(t, s)
		})
	})
}

func TestDelivery_ConsecutiveDueTimesAreOnTime(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		for i := range 500 {
			r.register(t, job.New{Delay: time.Duration(1000+i*37%1000) * time.Millisecond})
			time.Sleep(2 * time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		synctest.Wait()
		calls := rec.calls()
		require.Len(t, calls, 500)
		for _, c := range calls {
			require.GreaterOrEqual(t, c.at.Sub(c.DueAt), time.Duration(0))
			require.Less(t, c.at.Sub(c.DueAt), 10*time.Millisecond)
		}
		require.NoError(t, r.stop())
	})
}

func TestLadder_IsFollowedToItsEnd(t *testing.T) {
	onStores(t, func(t *testing.T, s store.Store) {
		testLadder(t, s,
			policy.Terms{Ladder: policy.Ladder{15 * time.Second, 3 * time.Minute, 10 * time.Minute}, Retries: new(4)},
			"15s", "3m", "10m", "10m")
	})
}

func TestLadder_BuiltinOneIsFollowedToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		testLadder(t, model(), policy.Terms{}, "15s", "3m", "10m", "30m", "30m", "1h", "2h", "6h", "15h")
	})
}

// testLadder requires that a job with these terms is attempted at once and then after each wait, until it is dead. In a
// wait of more than ten minutes the dispatcher starts anew, so that the hours without work cost no processor time; s
// must be shared then.
func testLadder(t *testing.T, s store.Store, terms policy.Terms, waits ...string) {
	t.Helper()
	const took = 700 * time.Millisecond
	rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
		time.Sleep(took)
		return policy.Result{Status: 500}
	}}
	opts := dispatcher.Options{Store: s, Deliverer: rec, Random: func() float64 { return 0 }}
	r := start(t, opts)
	made := r.register(t, job.New{Spec: job.Spec{Terms: terms}})
	for _, wait := range waits {
		d, err := time.ParseDuration(wait)
		require.NoError(t, err)
		if d > 10*time.Minute {
			time.Sleep(time.Minute)
			require.NoError(t, r.stop())
			time.Sleep(d - 2*time.Minute)
			r = start(t, opts)
			time.Sleep(time.Minute)
		} else {
			time.Sleep(d)
		}
		time.Sleep(took)
	}
	time.Sleep(time.Minute)
	synctest.Wait()

	calls := rec.calls()
	require.Len(t, calls, 1+len(waits))
	for i, c := range calls {
		require.Equal(t, i+1, c.Attempt)
		require.Equal(t, len(waits)-i, c.RetriesLeft)
		if i == 0 {
			continue
		}
		wait, err := time.ParseDuration(waits[i-1])
		require.NoError(t, err)
		waited := c.at.Sub(calls[i-1].at.Add(took)) // counted from the end of the failed attempt
		require.GreaterOrEqual(t, waited, wait, "attempt %d came early", i+1)
		require.Less(t, waited, wait+20*time.Millisecond, "attempt %d came late", i+1)
	}
	got := r.get(t, made.Ref())
	require.Equal(t, job.Dead, got.State)
	require.Equal(t, policy.ReasonExhausted, got.Reason)
	require.Equal(t, len(calls), got.Attempts)
	require.Len(t, got.History, len(calls))
	require.NoError(t, r.stop())
}

func TestDelivery_ResumesWhenAReceiverRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{}
		rec.answer = func(_ context.Context, r job.Request) policy.Result {
			if r.Attempt < 3 {
				return policy.Result{Class: policy.ClassRefused, Error: "connection refused"}
			}
			return policy.Result{Status: 204}
		}
		r := start(t, dispatcher.Options{Deliverer: rec})
		made := r.register(t,
			job.New{Spec: job.Spec{Terms: policy.Terms{Ladder: policy.Ladder{time.Second}, Retries: new(5)}}})
		time.Sleep(10 * time.Second)
		synctest.Wait()
		got := r.get(t, made.Ref())
		require.Equal(t, job.Delivered, got.State)
		require.Equal(t, 3, got.Attempts)
		require.Equal(t, policy.ClassRefused, got.History[0].ErrorClass)
	})
}

func TestDelivery_HonoursRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
			return policy.Result{Status: 503, RetryAfter: 10 * time.Minute}
		}}
		r := start(t, dispatcher.Options{Deliverer: rec})
		r.register(t, job.New{Spec: job.Spec{Terms: policy.Terms{Ladder: policy.Ladder{time.Second}}}})
		time.Sleep(time.Hour)
		synctest.Wait()
		calls := rec.calls()
		require.Len(t, calls, 2)
		require.GreaterOrEqual(t, calls[1].at.Sub(calls[0].at), 10*time.Minute)
	})
}

func TestDelivery_NoRetryAfterTheExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		_, err := r.PutTopic(t.Context(),
			store.Topic{Namespace: "default", Name: "old", Policy: policy.Topic{MaxAge: 30 * time.Second}})
		require.NoError(t, err)
		terms := policy.Terms{Ladder: policy.Ladder{20 * time.Second}, Retries: new(50)}
		expiring := r.register(t, job.New{Spec: job.Spec{Terms: terms}, ExpiresIn: 30 * time.Second})
		aging := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "old"}, Terms: terms}})
		time.Sleep(25 * time.Second)
		synctest.Wait()
		require.Len(t, rec.calls(), 4, "two attempts each")
		for ref, reason := range map[job.Ref]policy.Reason{
			expiring.Ref(): policy.ReasonExpired, aging.Ref(): policy.ReasonMaxAge,
		} {
			got := r.get(t, ref)
			require.Equal(t, reason, got.Reason)
			require.Equal(t, 2, got.Attempts)
			require.Equal(t, got.History[1].Reason, reason)
			require.Less(t, got.FinishedAt.Sub(got.CreatedAt), 25*time.Second, "the expiry itself is not waited for")
		}
	})
}

func TestPolicies_ApplyToRegisteredJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		made := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "short"}}, Delay: time.Minute})
		_, err := r.PutTopic(t.Context(), store.Topic{
			Namespace: "default", Name: "short",
			Policy: policy.Topic{
				Ladder:  policy.Ladder{time.Second, 2 * time.Second},
				Headers: map[string][]string{"X-Team": {"till"}},
			},
		})
		require.NoError(t, err)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, rec.calls(), 3)
		require.Equal(t, []string{"till"}, rec.calls()[0].Header["X-Team"])
		require.Equal(t, job.Dead, r.get(t, made.Ref()).State)
	})
}

func TestIsolation_HangingReceiversDelayNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{}
		rec.answer = func(ctx context.Context, r job.Request) policy.Result {
			if len(r.Queue.Lane) >= 4 && r.Queue.Lane[:4] == "hang" {
				select {
				case <-time.After(r.Timeout):
					return policy.Result{Class: policy.ClassTimeoutHeaders, Error: "no answer"}
				case <-ctx.Done():
					return policy.Result{Class: policy.ClassShutdown}
				}
			}
			time.Sleep(5 * time.Millisecond)
			return policy.Result{Status: 200}
		}
		r := start(t, dispatcher.Options{Deliverer: rec})
		// One of twenty hosts hangs; every host has a job every ten seconds for two minutes, and those that hang have
		// many more waiting from the beginning.
		hosts := testkit.Of(300, 1000)
		var jobs []job.New
		for host := range hosts {
			lane, more := fmt.Sprintf("host-%d", host), 0
			if host%20 == 0 {
				lane, more = fmt.Sprintf("hang-%d", host), 100
			}
			for i := range 12 + more {
				every := 10_000 + host // milliseconds
				delay := time.Duration(max(0, i-more)*every) * time.Millisecond
				jobs = append(jobs,
					job.New{Spec: job.Spec{URL: "https://x.example/", Queue: job.Queue{Lane: lane}}, Delay: delay})
			}
		}
		r.registerAll(t, jobs)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		good := 0
		var worst time.Duration
		for _, c := range rec.calls() {
			if c.Queue.Lane[:4] == "host" {
				good++
				worst = max(worst, c.at.Sub(c.DueAt))
			}
		}
		require.Equal(t, hosts*19/20*12, good)
		require.Less(t, worst, 250*time.Millisecond, "the good hosts feel the bad ones")
	})
}

func TestStop_FinishesAttemptsAndReleasesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(ctx context.Context, r job.Request) policy.Result {
			wait := time.Hour
			if r.Ref.ID == "quick" {
				wait = 10 * time.Second
			}
			select {
			case <-time.After(wait):
				return policy.Result{Status: 200}
			case <-ctx.Done():
				return policy.Result{Class: policy.ClassShutdown}
			}
		}}
		model := storetest.NewModel(storetest.ModelOptions{})
		opts := dispatcher.Options{Store: shared{model}, Deliverer: rec, Grace: 30 * time.Second}
		r := start(t, opts)
		quick := r.register(t, job.New{Spec: job.Spec{ID: "quick", Terms: policy.Terms{Timeout: time.Minute}}})
		slow := r.register(t, job.New{Spec: job.Spec{ID: "slow", Terms: policy.Terms{Timeout: 2 * time.Hour}}})
		time.Sleep(time.Second)
		synctest.Wait()
		require.Len(t, rec.calls(), 2)
		began := time.Now()
		require.NoError(t, r.stop())
		require.Equal(t, 25*time.Second, time.Since(began))
		require.ErrorIs(t, r.Ready(t.Context()), dispatcher.ErrStopping)
		require.Equal(t, job.Delivered, r.get(t, quick.Ref()).State)
		got := r.get(t, slow.Ref())
		require.Equal(t, job.Ready, got.State)
		require.Equal(t, 0, got.Attempts, "an attempt cut off by our own stop does not count")
		require.NoError(t, model.Close())
	})
}

func TestFaults_LostRepliesLoseNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		faulty := storetest.Faulty(storetest.NewModel(storetest.ModelOptions{}), storetest.Share(7, 0.1))
		r := start(t, dispatcher.Options{Store: faulty, Deliverer: rec})
		taken := map[string]bool{}
		for i := range 200 {
			got := r.Register(t.Context(),
				[]job.New{{Spec: job.Spec{ID: fmt.Sprintf("job-%d", i), URL: "https://x.example/"}}})[0]
			if got.Err == nil {
				taken[got.Job.ID] = true
			} else {
				require.ErrorIs(t, got.Err, store.ErrUnavailable)
			}
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		times := map[string]int{}
		for _, c := range rec.calls() {
			times[c.Ref.ID]++
		}
		require.Greater(t, len(taken), 130)
		for id := range taken {
			require.Equal(t, 1, times[id], "job %s", id)
		}
	})
}

func TestFairness_RetriesDoNotStarveFirstAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: func(_ context.Context, r job.Request) policy.Result {
			time.Sleep(5 * time.Millisecond)
			if r.Queue.Lane == "storm" {
				return policy.Result{Status: 500}
			}
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Deliverer: rec})
		terms := policy.Terms{Ladder: policy.Ladder{time.Second}, Retries: new(3)}
		var storm []job.New
		for range testkit.Of(4000, 20_000) {
			storm = append(storm,
				job.New{Spec: job.Spec{URL: "https://x.example/", Queue: job.Queue{Lane: "storm"}, Terms: terms}})
		}
		for _, got := range r.Register(t.Context(), storm) {
			require.NoError(t, got.Err)
		}
		for i := range 250 {
			r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Lane: fmt.Sprintf("fresh-%d", i%10)}}})
			time.Sleep(20 * time.Millisecond)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		fresh := 0
		for _, c := range rec.calls() {
			if c.Queue.Lane != "storm" {
				fresh++
				require.Less(t, c.at.Sub(c.DueAt), 50*time.Millisecond)
			}
		}
		require.Equal(t, 250, fresh)
	})
}

func TestFairness_ThousandsOfLanesAreServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: rec})
		lanes := testkit.Of(3000, 10_000)
		var jobs []job.New
		for i := range lanes {
			jobs = append(jobs, job.New{
				Spec:  job.Spec{URL: "https://x.example/", Queue: job.Queue{Lane: fmt.Sprintf("lane-%d", i)}},
				Delay: time.Second,
			})
		}
		for _, got := range r.Register(t.Context(), jobs) {
			require.NoError(t, got.Err)
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Len(t, rec.calls(), lanes)
	})
}
