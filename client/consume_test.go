package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
	"github.com/ringback/ringback/internal/testkit"
)

// newPulled returns a server with a pulled topic and n jobs in it.
func newPulled(t *testing.T, n int) *clienttest.Server {
	t.Helper()
	srv := clienttest.New(t, http.NotFoundHandler())
	_, err := srv.Client().PutTopic(t.Context(), "pdf",
		client.Policy{Deliver: "pull", Ladder: []time.Duration{time.Minute}, LaneConcurrency: 100})
	require.NoError(t, err)
	for i := range n {
		_, err := srv.Client().Register(t.Context(), client.Job{ID: fmt.Sprint("job-", i), Topic: "pdf", Body: i})
		require.NoError(t, err)
	}
	return srv
}

// newClient returns a client whose requests to a server a function makes.
func newClient(t *testing.T, srv *clienttest.Server, o client.Options, send transport) *client.Client {
	t.Helper()
	o.HTTP = &http.Client{Transport: send}
	c, err := client.New(srv.URL, o)
	require.NoError(t, err)
	return c
}

// work runs Work in the background until stop is called, which returns its error.
func work(t *testing.T, c *client.Client, o client.WorkOptions, f client.WorkFunc) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Work(ctx, "pdf", o, f) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func requireState(t *testing.T, c *client.Client, id string, want client.State) *client.JobInfo {
	t.Helper()
	job, err := c.Get(t.Context(), id)
	require.NoError(t, err)
	require.Equal(t, want, job.State, id)
	return job
}

func TestWork_DoesEachJobAndReportsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 20)
		var mu sync.Mutex
		at, most, now := make(map[string]int), 0, 0
		stop := work(t, srv.Client(), client.WorkOptions{Concurrency: 4}, func(
			_ context.Context, j *client.LeasedJob,
		) error {
			mu.Lock()
			at[j.ID]++
			now++
			most = max(most, now)
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			now--
			mu.Unlock()
			j.Response = map[string]string{"pages": string(j.Body)}
			return nil
		})
		srv.Advance(time.Minute)
		require.NoError(t, stop())
		require.Len(t, at, 20)
		require.Equal(t, 4, most)
		for i := range 20 {
			job := requireState(t, srv.Client(), fmt.Sprint("job-", i), client.Delivered)
			require.JSONEq(t, fmt.Sprintf(`{"pages": "%d"}`, i), job.Attempts[0].ResponseBody)
		}
	})
}

func TestWork_SettlesAndLeasesInOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 10)
		var requests, done atomic.Int64
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return srv.HTTP.Transport.RoundTrip(r)
		})
		stop := work(t, c, client.WorkOptions{},
			func(context.Context, *client.LeasedJob) error { done.Add(1); return nil })
		srv.Advance(10 * time.Second)
		require.Equal(t, int64(10), done.Load())
		require.Equal(t, int64(11), requests.Load(), "the first one leases, the last one waits")
		require.NoError(t, stop())
	})
}

func TestWork_BoundsTheWaitOfRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 2)
		stop := work(t, srv.Client(), client.WorkOptions{Concurrency: 2}, func(
			_ context.Context, j *client.LeasedJob,
		) error {
			if j.ID == "job-0" && j.Attempt == 1 {
				return client.RetryAfter(-3*time.Second, errors.New("the time of the reset has passed"))
			}
			if j.ID == "job-1" {
				return client.RetryAfter(40*24*time.Hour, errors.New("next season"))
			}
			return nil
		})
		srv.Advance(10 * time.Second)
		requireState(t, srv.Client(), "job-0", client.Delivered)
		job := requireState(t, srv.Client(), "job-1", client.Scheduled)
		require.Equal(t, 1, job.AttemptsMade)
		require.InDelta(t, 30*24, job.NextAttemptAt.Sub(job.CreatedAt).Hours(), 1)
		require.NoError(t, stop())
	})
}

// A report that the server refuses costs neither the other reports nor the end of Work.
func TestWork_ReportsTheOthersWithoutARefusedReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 5)
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return srv.HTTP.Transport.RoundTrip(r)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || strings.Contains(string(body), "poison") {
				refusal := `{"code": "invalid_field", "detail": "the request has an invalid field"}`
				return &http.Response{
					StatusCode: http.StatusUnprocessableEntity,
					Body:       io.NopCloser(strings.NewReader(refusal)), Request: r,
				}, err
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			return srv.HTTP.Transport.RoundTrip(r)
		})
		stop := work(t, c, client.WorkOptions{Concurrency: 5}, func(_ context.Context, j *client.LeasedJob) error {
			time.Sleep(time.Second)
			if j.ID == "job-3" {
				return client.NoRetry(errors.New("poison"))
			}
			return nil
		})
		srv.Advance(20 * time.Second)
		for _, i := range []int{0, 1, 2, 4} {
			require.Equal(t, 1, requireState(t, srv.Client(), fmt.Sprint("job-", i), client.Delivered).AttemptsMade)
		}
		job := requireState(t, srv.Client(), "job-3", client.Scheduled)
		require.Contains(t, job.Attempts[0].Error, "the report of its end was refused")
		require.NoError(t, stop())
	})
}

func TestWork_ReportsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 4)
		stop := work(t, srv.Client(), client.WorkOptions{Concurrency: 4}, func(
			_ context.Context, j *client.LeasedJob,
		) error {
			switch j.ID {
			case "job-0":
				return errors.New("no disk space")
			case "job-1":
				return fmt.Errorf("page 3: %w", client.RetryAfter(time.Hour, errors.New("busy")))
			case "job-2":
				return client.NoRetry(errors.New(strings.Repeat("no such customer ", 1000)))
			default:
				j.Response = make(chan int)
				return nil
			}
		})
		srv.Advance(10 * time.Second)
		c := srv.Client()
		job := requireState(t, c, "job-0", client.Scheduled)
		require.Equal(t, "no disk space", job.Attempts[0].Error)
		require.WithinDuration(t, job.Attempts[0].StartedAt.Add(time.Minute), job.NextAttemptAt, 7*time.Second)
		job = requireState(t, c, "job-1", client.Scheduled)
		require.Equal(t, "page 3: busy", job.Attempts[0].Error)
		require.WithinDuration(t, job.Attempts[0].StartedAt.Add(time.Hour), job.NextAttemptAt, 2*time.Second)
		require.Equal(t, "nonretryable", requireState(t, c, "job-2", client.Dead).Reason)
		require.Contains(t, requireState(t, c, "job-3", client.Scheduled).Attempts[0].Error, "response")
		require.NoError(t, stop())
	})
}

// nilError is an error whose method panics if it is a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

// brokenJSON is a response whose method panics.
type brokenJSON struct{}

func (brokenJSON) MarshalJSON() ([]byte, error) { panic("no encoder") }

// panicOnWrite panics as the runtime does.
func panicOnWrite() {
	counts := map[bool]map[string]int{}
	counts[true]["x"] = 1
}

func TestWork_ReportsPanicsAsErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 6)
		var logs testkit.Log
		o := client.WorkOptions{Concurrency: 6, Logger: slog.New(slog.NewTextHandler(&logs, nil))}
		stop := work(t, srv.Client(), o, func(_ context.Context, j *client.LeasedJob) error {
			time.Sleep(time.Second)
			switch j.ID {
			case "job-0":
				panicOnWrite()
			case "job-1":
				panic(client.NoRetry(errors.New("no such customer")))
			case "job-2":
				var broken *nilError
				return broken
			case "job-3":
				j.Response = brokenJSON{}
			case "job-4":
				runtime.Goexit()
			}
			return nil
		})
		srv.Advance(10 * time.Second)
		for id, want := range map[string]string{
			"job-0": "panic: assignment to entry in nil map",
			"job-1": "panic: no such customer",
			"job-2": "panic: runtime error: invalid memory address or nil pointer dereference",
			"job-3": "panic: no encoder",
			"job-4": "the function ended its goroutine",
		} {
			job := requireState(t, srv.Client(), id, client.Scheduled)
			require.Equal(t, want, job.Attempts[0].Error)
			require.Equal(t, "consumer", job.Attempts[0].ErrorClass)
		}
		require.Equal(t, 1, requireState(t, srv.Client(), "job-5", client.Delivered).AttemptsMade)
		line := `level=ERROR msg="function panicked, its attempt has failed" topic=pdf`
		require.Equal(t, 4, strings.Count(logs.String(), line), logs.String())
		require.Contains(t, logs.String(), "TestWork_ReportsPanicsAsErrors", "the stack")
		require.NoError(t, stop())
	})
}

func TestWork_ExtendsLeasesWhileTheFunctionRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 1)
		_, err := srv.Client().Register(t.Context(),
			client.Job{ID: "own-timeout", Topic: "pdf", Timeout: 5 * time.Second})
		require.NoError(t, err)
		runs := make(chan string, 10)
		stop := work(t, srv.Client(), client.WorkOptions{
			Concurrency: 2,
			Lease:       time.Minute,
		}, func(ctx context.Context, j *client.LeasedJob) error {
			runs <- j.ID
			select {
			case <-time.After(time.Hour):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		time.Sleep(61 * time.Minute)
		require.NoError(t, stop())
		require.Len(t, runs, 2)
		requireState(t, srv.Client(), "job-0", client.Delivered)
		require.Len(t, requireState(t, srv.Client(), "own-timeout", client.Delivered).Attempts, 1)
	})
}

func TestWork_TellsTheFunctionThatItsLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 1)
		broken := make(chan struct{}) // closed: no connection works
		direct := srv.HTTP.Transport.(*http.Transport)
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			select {
			case <-broken:
				return nil, net.ErrClosed
			default:
				return direct.RoundTrip(r)
			}
		})
		cause := make(chan error, 1)
		var leased, lost time.Time
		stop := work(t, c, client.WorkOptions{Lease: 10 * time.Second}, func(
			ctx context.Context, _ *client.LeasedJob,
		) error {
			leased = time.Now()
			close(broken)
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			lost = time.Now()
			cause <- context.Cause(ctx)
			return nil // too late: it is not reported
		})
		require.ErrorIs(t, <-cause, client.ErrLeaseLost)
		require.LessOrEqual(t, lost.Sub(leased), 10*time.Second)
		require.NoError(t, stop())
		time.Sleep(20 * time.Second)
		require.Equal(t, "lost", requireState(t, srv.Client(), "job-0", client.Ready).Attempts[0].Kind)
	})
}

func TestWork_TellsTheFunctionThatItsJobIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 1)
		cause := make(chan error, 1)
		stop := work(t, srv.Client(), client.WorkOptions{Lease: 10 * time.Second}, func(
			ctx context.Context, j *client.LeasedJob,
		) error {
			_, err := srv.Client().Cancel(context.WithoutCancel(ctx), j.ID)
			if err != nil {
				return err
			}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return context.Cause(ctx)
		})
		require.ErrorIs(t, <-cause, client.ErrCancelRequested)
		time.Sleep(time.Second)
		requireState(t, srv.Client(), "job-0", client.Cancelled)
		require.NoError(t, stop())
	})
}

func TestWork_LetsFunctionsEndAndReportsThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 3)
		stop := work(t, srv.Client(), client.WorkOptions{
			Concurrency: 2,
			Grace:       10 * time.Second,
		}, func(ctx context.Context, j *client.LeasedJob) error {
			wait := 5 * time.Second
			if j.ID == "job-1" {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		time.Sleep(time.Second)
		began := time.Now()
		require.NoError(t, stop())
		require.WithinDuration(t, began.Add(10*time.Second), time.Now(), time.Second)
		requireState(t, srv.Client(), "job-0", client.Delivered)
		require.Zero(t, requireState(t, srv.Client(), "job-1", client.Ready).AttemptsMade)
		requireState(t, srv.Client(), "job-2", client.Ready)
	})
}

// What a function asks for explicitly holds also for one that is cut off.
func TestWork_KeepsTheVerdictOfAFunctionThatIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 4)
		stop := work(t, srv.Client(), client.WorkOptions{Concurrency: 4}, func(
			ctx context.Context, j *client.LeasedJob,
		) error {
			<-ctx.Done()
			switch j.ID {
			case "job-0":
				return client.NoRetry(ctx.Err())
			case "job-1":
				return client.RetryAfter(time.Hour, ctx.Err())
			case "job-2":
				return errors.New("page 3 is broken")
			default:
				return fmt.Errorf("page 3: %w", ctx.Err())
			}
		})
		time.Sleep(time.Second)
		require.NoError(t, stop())
		requireState(t, srv.Client(), "job-0", client.Dead)
		requireState(t, srv.Client(), "job-1", client.Scheduled)
		require.Equal(t, 1, requireState(t, srv.Client(), "job-2", client.Scheduled).AttemptsMade)
		require.Zero(t, requireState(t, srv.Client(), "job-3", client.Ready).AttemptsMade)
	})
}

// A failure of one request costs neither the functions that run nor the end of Work.
func TestWork_GoesOnAfterFailuresOfTheServer(t *testing.T) {
	for name, failure := range map[string]func() *http.Response{
		"500":               func() *http.Response { return response(500, problem(500, "internal")) },
		"a page of a proxy": func() *http.Response { return response(200, "<html>") },
		"overloaded, without repeats of the " +
			"client": func() *http.Response { return response(503, problem(503, "overloaded")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newPulled(t, 3)
				var n atomic.Int64
				c := newClient(t, srv, client.Options{MaxRetries: -1}, func(r *http.Request) (*http.Response, error) {
					if i := n.Add(1); 1 < i && i < 6 {
						return failure(), nil
					}
					return srv.HTTP.Transport.RoundTrip(r)
				})
				stop := work(t, c, client.WorkOptions{Concurrency: 3}, func(
					ctx context.Context, j *client.LeasedJob,
				) error {
					select {
					case <-time.After(20 * time.Second):
						return nil
					case <-ctx.Done():
						return context.Cause(ctx)
					}
				})
				time.Sleep(time.Minute)
				require.NoError(t, stop())
				for i := range 3 {
					require.Len(t, requireState(t, srv.Client(), fmt.Sprint("job-", i), client.Delivered).Attempts, 1)
				}
			})
		})
	}
}

// Work says why it gets no jobs, also where the client would repeat a request without a word.
func TestWork_LogsFailures(t *testing.T) {
	for name, failure := range map[string]func() (*http.Response, error){
		"500 internal":    func() (*http.Response, error) { return response(500, problem(500, "internal")), nil },
		"502 Bad Gateway": func() (*http.Response, error) { return response(502, "<html>"), nil },
		"no such host": func() (*http.Response, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "ringback.internal"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				srv := newPulled(t, 1)
				var logs testkit.Log
				failing := atomic.Bool{}
				failing.Store(true)
				c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
					if failing.Load() {
						return failure()
					}
					return srv.HTTP.Transport.RoundTrip(r)
				})
				stop := work(t, c, client.WorkOptions{Logger: slog.New(slog.NewTextHandler(&logs,
					nil))}, func(context.Context, *client.LeasedJob) error {
					failing.Store(true)
					return nil
				})
				time.Sleep(time.Minute)
				lines := strings.Count(logs.String(), "\n")
				require.InDelta(t, 13, lines, 6) // 0.1 s, 0.2 s, … 10 s
				require.Equal(t, lines, strings.Count(logs.String(), name), logs.String())
				require.Contains(t, logs.String(), "topic=pdf")

				failing.Store(false)
				time.Sleep(15 * time.Second) // the function ends, and its report fails
				time.AfterFunc(15*time.Second, func() { failing.Store(false) })
				require.NoError(t, stop(), "what failed at first was reported in time")
				requireState(t, srv.Client(), "job-0", client.Delivered)
			})
		})
	}
}

func TestWork_LetsFunctionsEndAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 2)
		c, done := srv.Client(), make(chan struct{})
		o := client.WorkOptions{Concurrency: 3, Grace: time.Minute}
		err := c.Work(t.Context(), "pdf", o, func(ctx context.Context, j *client.LeasedJob) error {
			if j.ID == "job-0" {
				time.Sleep(time.Second)
				_, err := c.PutTopic(ctx, "pdf", client.Policy{Deliver: "handler"})
				close(done)
				return err
			}
			<-done
			select {
			case <-time.After(40 * time.Second): // the wait of the request is over, and there is no other
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
		require.ErrorIs(t, err, client.ErrConflict)
		for i := range 2 {
			requireState(t, c, fmt.Sprint("job-", i), client.Delivered)
		}
	})
}

// After a refusal nothing is leased any more, as its end could not be reported.
func TestWork_LeasesNothingAfterARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 1)
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			if err != nil || strings.Contains(string(body), `"done"`) {
				return response(403, problem(403, "forbidden")), err
			}
			r.Body = io.NopCloser(strings.NewReader(string(body)))
			return srv.HTTP.Transport.RoundTrip(r)
		})
		began, begun := time.Now(), 0
		err := c.Work(
			t.Context(), "pdf", client.WorkOptions{Concurrency: 2}, func(context.Context, *client.LeasedJob) error {
				begun++
				time.Sleep(time.Second) // meanwhile another request waits for jobs
				return nil
			},
		)
		require.ErrorIs(t, err, client.ErrForbidden)
		require.Less(t, time.Since(began), 2*time.Second)
		require.Equal(t, 1, begun)
		_, err = srv.Client().Register(t.Context(), client.Job{ID: "later", Topic: "pdf"})
		require.NoError(t, err)
		srv.Advance(time.Second)
		requireState(t, srv.Client(), "later", client.Ready)
	})
}

// A token that has expired refuses the reports, too. Work waits for its functions all the same.
func TestWork_OutlivesItsFunctionsIfReportsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 3)
		var n, running atomic.Int64
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			if n.Add(1) > 1 {
				return response(401, problem(401, "token_expired")), nil
			}
			return srv.HTTP.Transport.RoundTrip(r)
		})
		running.Add(3)
		err := c.Work(
			t.Context(), "pdf", client.WorkOptions{Concurrency: 3}, func(_ context.Context, j *client.LeasedJob) error {
				defer running.Add(-1)
				time.Sleep(time.Duration(1+5*(int(j.Body[0])-'0')) * time.Second)
				return nil
			},
		)
		require.ErrorIs(t, err, client.ErrUnauthorized)
		require.Zero(t, running.Load())
	})
}

func TestWork_EndsWithoutAFunctionThatIgnoresItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 2)
		hang := make(chan struct{})
		stop := work(t, srv.Client(), client.WorkOptions{
			Concurrency: 2, Grace: 10 * time.Second,
			Lease: 20 * time.Second,
		}, func(ctx context.Context, j *client.LeasedJob) error {
			if j.ID == "job-0" {
				<-hang
			}
			<-ctx.Done()
			return nil
		})
		time.Sleep(time.Minute)
		began := time.Now()
		require.ErrorContains(t, stop(), "functions that have not returned: 1")
		require.WithinDuration(t, began.Add(40*time.Second), time.Now(), time.Second)
		requireState(t, srv.Client(), "job-1", client.Delivered)
		requireState(t, srv.Client(), "job-0", client.Running)
		time.Sleep(30 * time.Second)
		require.Equal(t, "lost", requireState(t, srv.Client(), "job-0", client.Ready).Attempts[0].Kind,
			"its lease is not extended any more")
		close(hang)
	})
}

func TestWork_GoesOnOverBrokenConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newPulled(t, 10)
		var n atomic.Int64
		c := newClient(t, srv, client.Options{}, func(r *http.Request) (*http.Response, error) {
			if n.Add(1)%3 != 0 {
				return srv.HTTP.Transport.RoundTrip(r)
			}
			res, err := srv.HTTP.Transport.RoundTrip(r) // the answer is lost
			if err == nil {
				_, _ = io.Copy(io.Discard, res.Body)
				_ = res.Body.Close()
			}
			return nil, io.ErrUnexpectedEOF
		})
		stop := work(t, c, client.WorkOptions{Concurrency: 2, Lease: 5 * time.Second},
			func(context.Context, *client.LeasedJob) error { return nil })
		time.Sleep(10 * time.Minute)
		require.NoError(t, stop())
		for i := range 10 {
			requireState(t, srv.Client(), fmt.Sprint("job-", i), client.Delivered)
		}
	})
}

func TestWork_EndsWithARefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := newServer(t)
		_, err := srv.Client().PutTopic(t.Context(), "push", client.Policy{})
		require.NoError(t, err)
		err = srv.Client().Work(t.Context(), "push", client.WorkOptions{},
			func(context.Context, *client.LeasedJob) error { return nil })
		require.ErrorIs(t, err, client.ErrConflict)
	})
}

func TestLease_IsSettledByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newPulled(t, 3).Client()
		leased, err := c.Lease(t.Context(), "pdf",
			client.LeaseOptions{Max: 3, Wait: time.Second, Lease: 2 * time.Second})
		require.NoError(t, err)
		require.Len(t, leased, 3)
		require.Equal(t, 1, leased[0].Attempt)
		settled, err := c.Settle(t.Context(), client.Settlement{
			Done:   []client.LeaseDone{{Lease: leased[0].Lease, Response: json.RawMessage(`{"a": 1}`)}},
			Extend: []client.LeaseExtend{{Lease: leased[1].Lease, For: time.Hour}},
		})
		require.NoError(t, err)
		require.Equal(t, "ok", settled.Done[0].Result)
		require.Equal(t, "ok", settled.Extend[0].Result)
		time.Sleep(time.Minute)
		settled, err = c.Settle(t.Context(), client.Settlement{
			Retry: []client.LeaseRetry{{Lease: leased[1].Lease, After: new(time.Duration(0)), Error: "busy"}},
			Dead:  []client.LeaseDead{{Lease: leased[2].Lease, Reason: "no such customer"}},
		})
		require.NoError(t, err)
		require.Equal(t, "ok", settled.Retry[0].Result)
		require.Equal(t, "lost", settled.Dead[0].Result)
	})
}
