package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/client/clienttest"
	"github.com/ringback/ringback/sign"
)

// laptop is a machine with a server in memory, and what forward says and reports there.
type laptop struct {
	*testing.T

	srv  *clienttest.Server
	down atomic.Bool

	mu         sync.Mutex
	handle     http.HandlerFunc
	requests   []*http.Request
	bodies     []string
	said       []string
	deliveries []Delivery
	conns      chan net.Conn
	closed     chan struct{} // ends what waits for conns
	dials      atomic.Int64
}

// newLaptop starts a server of Ringback with pulled topics, and one on the laptop that answers with handle.
func newLaptop(t *testing.T, handle http.HandlerFunc, topics ...string) *laptop {
	t.Helper()
	l := &laptop{
		T: t, srv: clienttest.New(t, http.NotFoundHandler()), handle: handle, conns: make(chan net.Conn),
		closed: make(chan struct{}),
	}
	for _, topic := range topics {
		_, err := l.srv.Client().PutTopic(t.Context(), topic,
			client.Policy{Deliver: "pull", Ladder: []time.Duration{time.Minute}, Jitter: new(0.0)})
		require.NoError(t, err)
	}
	server := &http.Server{Handler: l}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return l
}

func (l *laptop) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	l.mu.Lock()
	l.requests, l.bodies = append(l.requests, r), append(l.bodies, string(body))
	handle := l.handle
	l.mu.Unlock()
	handle(w, r)
}

// Accept, Close and Addr are those of a net.Listener.
func (l *laptop) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}
func (l *laptop) Close() error   { close(l.closed); return nil }
func (l *laptop) Addr() net.Addr { return &net.TCPAddr{} }

func (l *laptop) dial(_ context.Context, network, _ string) (net.Conn, error) {
	l.dials.Add(1)
	if l.down.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed: // a dial may outlive its request
		return nil, net.ErrClosed
	}
}

// register registers a job.
func (l *laptop) register(j client.Job) {
	l.Helper()
	_, err := l.srv.Client().Register(l.Context(), j)
	require.NoError(l, err)
}

func (l *laptop) state(id string) *client.JobInfo {
	l.Helper()
	j, err := l.srv.Client().Get(l.Context(), id)
	require.NoError(l, err)
	return j
}

// forward runs until stop is called, which returns its error.
func (l *laptop) forward(o Options) (stop func() error) {
	l.Helper()
	ctx, cancel := context.WithCancel(l.Context())
	o.Client, o.Dial = cmpClient(o.Client, l.srv.Client()), l.dial
	o.Say = func(text string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.said = append(l.said, text)
	}
	o.Report = func(d Delivery) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.deliveries = append(l.deliveries, d)
	}
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, o) }()
	return func() error {
		cancel()
		return <-ended
	}
}

func cmpClient(own, other *client.Client) *client.Client {
	if own != nil {
		return own
	}
	return other
}

func routes(t *testing.T, all ...string) (r []Route) {
	t.Helper()
	for _, text := range all {
		route, err := ParseRoute(text)
		require.NoError(t, err)
		r = append(r, route)
	}
	return r
}

// dashed makes a topic an id.
func dashed(topic string) string { return strings.ReplaceAll(topic, ".", "-") }

func answers(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }
}

// The request is that of a push: headers of topic and job, and a signature that the topic's secret verifies.
func TestForward_SendsWhatAPushWouldSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t,
			func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "thanks") }, "order.paid")
		c := l.srv.Client()
		_, err := c.PatchTopic(t.Context(), "order.paid", client.Policy{Headers: client.Headers{"X-Topic": {"1"}}})
		require.NoError(t, err)
		secret, err := c.AddSecret(t.Context(), "order.paid", "", client.NewSecret{})
		require.NoError(t, err)
		l.register(client.Job{
			ID: "paid-1", Topic: "order.paid", URL: "https://shop.example/hooks/paid?x=1", Method: "PUT",
			Body:    map[string]int{"order": 1},
			Headers: client.Headers{"X-Job": {"a", "b"}, "Authorization": {"Bearer s3cret"}},
		})
		stop := l.forward(Options{Routes: routes(t, "order.paid=http://localhost:3000/hooks"), Agent: "Ringback/test"})
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		require.Len(t, l.requests, 1)
		r := l.requests[0]
		require.Equal(t, "PUT localhost:3000 /hooks", r.Method+" "+r.Host+" "+r.URL.String())
		require.JSONEq(t, `{"order": 1}`, l.bodies[0])
		for name, want := range map[string]string{
			"X-Topic": "1", "X-Job": "a", "Webhook-Id": "paid-1", "Ringback-Topic": "order.paid",
			"Ringback-Attempt": "1", "Ringback-Retries-Left": "1",
			"Content-Type": "application/json", "User-Agent": "Ringback/test", "Authorization": "",
		} {
			require.Equal(t, want, r.Header.Get(name), name)
		}
		verifier, err := sign.NewVerifier(secret.Secret)
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(r.Header, []byte(l.bodies[0]), time.Now()))
		j := l.state("paid-1")
		require.Equal(t, client.Delivered, j.State)
		require.Equal(t, 200, j.LastStatus)
		require.Equal(t, "thanks", j.Attempts[0].ResponseBody)
		require.Len(t, l.deliveries, 1)
		require.Equal(t, 200, l.deliveries[0].Status)
		require.Equal(t, "http://localhost:3000/hooks", l.deliveries[0].URL)
	})
}

func TestForward_TakesFlagsOverWhatTheServerSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t")
		l.register(client.Job{ID: "a", Topic: "t", URL: "https://shop.example/hooks/paid?x=1"})
		secret, err := sign.ParseSecret("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
		require.NoError(t, err)
		signer, err := sign.NewSigner(secret)
		require.NoError(t, err)
		stop := l.forward(Options{
			Routes: routes(t, "t=:3000/in?y=2"), KeepPath: true, Signer: signer,
			Header: http.Header{"Authorization": {"Bearer mine"}},
		})
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		require.Equal(t, "/in/hooks/paid?y=2&x=1", l.requests[0].URL.String())
		require.Equal(t, "Bearer mine", l.requests[0].Header.Get("Authorization"))
		verifier, err := sign.NewVerifier("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
		require.NoError(t, err)
		require.NoError(t, verifier.Verify(l.requests[0].Header, []byte(l.bodies[0]), time.Now()))
	})
}

// A receiver that ends after it has read a request gets it once in an attempt, whatever net/http thinks of repeating
// it.
func TestForward_SendsAnAttemptOnce(t *testing.T) {
	for _, j := range []client.Job{
		{Method: "POST", Body: 1, Headers: client.Headers{"Idempotency-Key": {"a"}}},
		{Method: "POST", Body: 1, Headers: client.Headers{"X-Idempotency-Key": {"a"}}},
		{Method: "GET"},
		{Method: "POST", Body: 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			var requests atomic.Int64
			l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) {
				if requests.Add(1); r.Header.Get("Webhook-Id") == "second" {
					panic(http.ErrAbortHandler)
				}
			}, "t")
			o := Options{Routes: routes(t, "t=3000"), Concurrency: 1}
			if j.Headers == nil && j.Method == http.MethodPost {
				o.Header = http.Header{"Idempotency-Key": {"mine"}}
			}
			stop := l.forward(o)
			for _, id := range []string{"first", "second"} { // on one connection
				j.ID, j.Topic = id, "t"
				l.register(j)
				l.srv.Advance(time.Second)
			}
			require.NoError(t, stop())
			require.Equal(t, int64(2), requests.Load())
			if o.Header != nil || j.Headers["Idempotency-Key"] != nil {
				require.NotEmpty(t, l.requests[1].Header.Get("Idempotency-Key"))
			}
			require.Empty(t, l.requests[0].TransferEncoding)
			require.Equal(t, client.Scheduled, l.state("second").State)
		})
	}
}

// The server judges the answer, so its rules hold.
func TestForward_AnswersAreJudgedAsThoseToAPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, func(w http.ResponseWriter, r *http.Request) {
			switch r.Header.Get("Webhook-Id") {
			case "gone":
				w.WriteHeader(http.StatusGone)
			case "busy":
				w.Header().Set("Retry-After", "600")
				w.WriteHeader(http.StatusServiceUnavailable)
			case "never":
				w.Header().Set("Ringback-Nonretryable", "true")
				w.WriteHeader(http.StatusUnprocessableEntity)
			case "moved":
				http.Redirect(w, r, "/elsewhere", http.StatusFound)
			case "broken":
				panic(http.ErrAbortHandler)
			}
		}, "t")
		_, err := l.srv.Client().PatchTopic(t.Context(), "t", client.Policy{GiveUpOn: []string{"410"}})
		require.NoError(t, err)
		for _, id := range []string{"gone", "busy", "never", "moved", "broken", "fine"} {
			l.register(client.Job{ID: id, Topic: "t"})
		}
		stop := l.forward(Options{Routes: routes(t, "t=3000")})
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		for id, want := range map[string]string{
			"gone": "dead gave_up 410", "busy": "scheduled  503", "never": "dead nonretryable 422",
			"moved": "scheduled  302", "broken": "scheduled  0", "fine": "delivered  200",
		} {
			j := l.state(id)
			require.Equal(t, want, fmt.Sprintf("%s %s %d", j.State, j.Reason, j.LastStatus), id)
		}
		require.InDelta(t, 600, time.Until(l.state("busy").NextAttemptAt).Seconds(), 2)
		require.Equal(t, "consumer", l.state("broken").Attempts[0].ErrorClass)
		require.Len(t, l.requests, 6)
	})
}

func TestForward_RoutesTopicsAndLanes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "order.paid", "order.sent", "report", "other")
		_, err := l.srv.Client().PutTopic(t.Context(), "order.pushed", client.Policy{URL: "https://a.example"})
		require.NoError(t, err)
		stop := l.forward(Options{
			Routes: routes(t, "order.paid=3000/paid", "order.*=3000/orders", "report=localhost:4000"),
			Lanes:  []string{"eu-*"},
		})
		for _, topic := range []string{"order.paid", "order.sent", "report", "other"} {
			l.register(client.Job{ID: dashed(topic), Topic: topic, Lane: "eu-1"})
			l.register(client.Job{ID: dashed(topic) + "-us", Topic: topic, Lane: "us-1"})
		}
		l.srv.Advance(time.Second)
		_, err = l.srv.Client().PutTopic(t.Context(), "order.new", client.Policy{Deliver: "pull"})
		require.NoError(t, err)
		l.register(client.Job{ID: "order-new", Topic: "order.new", Lane: "eu-1"})
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		got := make(map[string]string)
		for _, r := range l.requests {
			got[r.Header.Get("Webhook-Id")] = r.Host + r.URL.Path
		}
		require.Equal(t, map[string]string{
			"order-paid": "localhost:3000/paid", "order-sent": "localhost:3000/orders",
			"order-new": "localhost:3000/orders", "report": "localhost:4000/",
		}, got)
		require.Equal(t, client.Ready, l.state("other").State)
	})
}

// What came while nothing was forwarded is there, and so is what is revived.
func TestForward_BringsWhatCameBeforeAndWhatIsRevived(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t")
		l.register(client.Job{ID: "a", Topic: "t"})
		l.srv.Advance(time.Hour)
		stop := l.forward(Options{Routes: routes(t, "t=3000")})
		l.srv.Advance(time.Second)
		require.Equal(t, client.Delivered, l.state("a").State)
		_, err := l.srv.Client().Revive(t.Context(), "a", client.Revival{})
		require.NoError(t, err)
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		require.Len(t, l.requests, 2)
	})
}

// While the laptop sleeps nothing reaches the server, so leases end and the jobs come again.
func TestForward_JobsOfASleepComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asleep atomic.Bool
		held := make(chan struct{})
		var first atomic.Bool
		l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) {
			if first.CompareAndSwap(false, true) {
				asleep.Store(true)
				select {
				case <-held:
				case <-r.Context().Done():
				}
			}
		}, "t")
		c, err := client.New(l.srv.URL, client.Options{HTTP: &http.Client{Transport: transport(func(
			r *http.Request,
		) (*http.Response, error) {
			if asleep.Load() {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return l.srv.HTTP.Transport.RoundTrip(r)
		})}})
		require.NoError(t, err)
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Client: c, Routes: routes(t, "t=3000")})
		l.srv.Advance(10 * time.Minute)
		require.Len(t, l.requests, 1)
		asleep.Store(false)
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		close(held)
		require.Len(t, l.requests, 2)
		j := l.state("a")
		require.Equal(t, client.Delivered, j.State)
		require.Equal(t, "lost", j.Attempts[0].Kind)
		require.Len(t, l.deliveries, 2)
		// may be noticed after the other was made
		ended := slices.IndexFunc(l.deliveries, func(d Delivery) bool { return d.Error != "" })
		require.Contains(t, l.deliveries[ended].Error, "it comes again")
		require.Empty(t, l.deliveries[1-ended].Error)
	})
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A receiver that is stopped at a breakpoint keeps its job, also if the job has a short timeout.
func TestForward_WaitsForABreakpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, func(http.ResponseWriter, *http.Request) { time.Sleep(20 * time.Minute) }, "t")
		l.register(client.Job{ID: "a", Topic: "t"})
		l.register(client.Job{ID: "b", Topic: "t", Timeout: time.Second})
		stop := l.forward(Options{Routes: routes(t, "t=3000")})
		l.srv.Advance(21 * time.Minute)
		require.NoError(t, stop())
		require.Len(t, l.requests, 2)
		for _, id := range []string{"a", "b"} {
			require.Equal(t, client.Delivered, l.state(id).State)
			require.Equal(t, 1, l.state(id).AttemptsMade)
		}
	})
}

// No attempt is counted while nothing listens, nothing is leased, and the tries are few.
func TestForward_WaitsUntilSomethingListens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t")
		l.down.Store(true)
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Routes: routes(t, "t=3000")})
		l.srv.Advance(10 * time.Minute)
		require.Equal(t, client.Ready, l.state("a").State)
		require.Less(t, l.dials.Load(), int64(130))
		require.Equal(t, []string{
			"forwarding t to http://localhost:3000/",
			"nothing listens at localhost:3000: jobs wait on the server until something does",
		}, l.said)
		l.down.Store(false)
		l.srv.Advance(10 * time.Second)
		require.Equal(t, client.Delivered, l.state("a").State)

		l.down.Store(true) // between two jobs
		l.srv.Advance(time.Minute)
		l.register(client.Job{ID: "b", Topic: "t"})
		l.srv.Advance(time.Minute)
		require.Equal(t, client.Ready, l.state("b").State)
		require.Zero(t, l.state("b").AttemptsMade)
		require.Empty(t, l.state("b").Attempts)
		l.down.Store(false)
		l.srv.Advance(10 * time.Second)
		require.NoError(t, stop())
		require.Equal(t, client.Delivered, l.state("b").State)
		require.Len(t, l.deliveries, 2)
	})
}

// A fault of TLS is none of a job: nothing was sent.
func TestForward_CountsNoAttemptWithoutAConnectionOfTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t") // which speaks plain HTTP
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Routes: routes(t, "t=https://localhost:3000")})
		l.srv.Advance(10 * time.Minute)
		require.Empty(t, l.state("a").Attempts)
		require.Less(t, l.dials.Load(), int64(130))
		require.Empty(t, l.deliveries)
		require.NoError(t, stop())
		require.Len(t, l.said, 2)
		require.Regexp(t,
			"^no connection to localhost:3000 can be made: tls: .*: jobs wait on the server until one can$", l.said[1])
	})
}

// What cannot be sent although a connection was made costs no attempt either, and is tried again with pauses.
func TestForward_GivesBackWhatWasNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t")
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Routes: routes(t, "t=3000"), Header: http.Header{"Bad Name": {"x"}}})
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		require.Empty(t, l.state("a").Attempts)
		require.Less(t, l.dials.Load(), int64(130))
	})
}

// Ctrl-C finishes what runs. What takes longer than the grace is given back.
func TestForward_FinishesWhatRunsWhenItIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) {
			wait := 5 * time.Second
			if r.Header.Get("Webhook-Id") == "slow" {
				wait = time.Hour
			}
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
		}, "t")
		for _, id := range []string{"quick", "slow", "waits"} {
			l.register(client.Job{ID: id, Topic: "t"})
		}
		stop := l.forward(Options{Routes: routes(t, "t=3000"), Concurrency: 2})
		l.srv.Advance(time.Second)
		require.Len(t, l.requests, 2)
		running := []string{l.requests[0].Header.Get("Webhook-Id"), l.requests[1].Header.Get("Webhook-Id")}
		began := time.Now()
		require.NoError(t, stop())
		require.LessOrEqual(t, time.Since(began), 10*time.Second)
		require.Contains(t, l.said[len(l.said)-1], "2 requests")
		for _, id := range []string{"quick", "slow", "waits"} {
			j := l.state(id)
			if id == "quick" || id == "waits" && running[0] != id && running[1] != id {
				continue
			}
			require.NotEqual(t, client.Running, j.State, "its lease was given back")
		}
		require.Zero(t, l.state("slow").AttemptsMade)
		require.Equal(t, client.Ready, l.state("slow").State)
	})
}

func TestForward_EndsAfterACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "t")
		for i := range 5 {
			l.register(client.Job{ID: fmt.Sprint(i), Topic: "t"})
		}
		require.NoError(t, Run(t.Context(), Options{
			Client: l.srv.Client(), Routes: routes(t, "t=3000"), Count: 3, Dial: l.dial, Say: func(string) {},
			Report: func(Delivery) {},
		}))
		require.Len(t, l.requests, 3)
	})
}

func TestForward_StopsTheRequestOfACancelledJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "t")
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Routes: routes(t, "t=3000")})
		l.srv.Advance(time.Second)
		_, err := l.srv.Client().Cancel(t.Context(), "a")
		require.NoError(t, err)
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, client.Cancelled, l.state("a").State)
		require.Contains(t, l.deliveries[0].Error, "cancelled")
	})
}

func TestForward_SaysWhatToDoAboutAPushedTopic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "pulled")
		_, err := l.srv.Client().PutTopic(t.Context(), "pushed", client.Policy{URL: "https://a.example"})
		require.NoError(t, err)
		for topic, want := range map[string]error{"pushed": client.ErrConflict, "unknown": client.ErrNotFound} {
			err := Run(t.Context(), Options{
				Client: l.srv.Client(), Routes: routes(t, "pulled=3000", topic+"=3000"),
				Say: func(string) {}, Dial: l.dial,
			})
			require.ErrorIs(t, err, want)
			require.ErrorContains(t, err, "ringback topic set "+topic+" deliver=pull")
			if topic == "pushed" {
				require.ErrorContains(t, err, "--copy")
			} else {
				require.ErrorContains(t, err, "there is no topic unknown")
			}
		}
		ended, pulled := make(chan error, 1), routes(t, "pulled=3000")
		go func() {
			ended <- Run(t.Context(),
				Options{Client: l.srv.Client(), Routes: pulled, Say: func(string) {}, Dial: l.dial})
		}()
		l.srv.Advance(time.Second)
		_, err = l.srv.Client().PatchTopic(t.Context(), "pulled", client.Policy{Deliver: "push"})
		require.NoError(t, err)
		l.srv.Advance(time.Minute)
		require.ErrorIs(t, <-ended, client.ErrConflict)
	})
}

// failing returns a client whose requests are answered by fail, unless it returns zero.
func (l *laptop) failing(fail func(*http.Request) int) *client.Client {
	l.Helper()
	c, err := client.New(l.srv.URL, client.Options{HTTP: &http.Client{Transport: transport(func(
		r *http.Request,
	) (*http.Response, error) {
		status := fail(r)
		if status == 0 {
			return l.srv.HTTP.Transport.RoundTrip(r)
		}
		text := fmt.Sprintf(`{"status": %d, "code": "failed"}`, status)
		return &http.Response{
			StatusCode: status, Header: http.Header{"Content-Type": {"application/problem+json"}},
			Body: io.NopCloser(strings.NewReader(text)), Request: r,
		}, nil
	})}})
	require.NoError(l, err)
	return c
}

// A server that is not there ends forward at the start; later it is waited for, and said once.
func TestForward_EndsWithoutAServer(t *testing.T) {
	for _, mirrors := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			l := newLaptop(t, answers(200), "t")
			var down atomic.Bool
			down.Store(true)
			c := l.failing(func(*http.Request) int {
				if down.Load() {
					return http.StatusServiceUnavailable
				}
				return 0
			})
			began := time.Now()
			err := Run(t.Context(),
				Options{Client: c, Routes: routes(t, "t=3000"), Copy: mirrors, Say: func(string) {}, Dial: l.dial})
			require.ErrorAs(t, err, new(*UnavailableError))
			require.LessOrEqual(t, time.Since(began), answerTime)
			if mirrors {
				return
			}
			down.Store(false)
			stop := l.forward(Options{Client: c, Routes: routes(t, "t=3000")})
			l.srv.Advance(time.Second)
			down.Store(true)
			l.srv.Advance(10 * time.Minute)
			down.Store(false)
			l.srv.Advance(time.Minute)
			require.NoError(t, stop())
			require.Len(t, l.said, 3)
			require.Contains(t, l.said[1], "no answer from the server, trying again")
			require.Equal(t, "the server answers again", l.said[2])
		})
	}
}

// What was answered is reported after a server's restart, as long as the lease lasts.
func TestForward_ReportsAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		l := newLaptop(t, func(http.ResponseWriter, *http.Request) { down.Store(true) }, "t")
		c := l.failing(func(*http.Request) int {
			if down.Load() {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		l.register(client.Job{ID: "a", Topic: "t"})
		stop := l.forward(Options{Client: c, Routes: routes(t, "t=3000")})
		l.srv.Advance(40 * time.Second)
		down.Store(false)
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		require.Equal(t, client.Delivered, l.state("a").State)
		require.Len(t, l.requests, 1)
	})
}

// Ctrl-C ends soon, also without a server.
func TestForward_StopsWithoutAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var down atomic.Bool
		l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, "t")
		c := l.failing(func(*http.Request) int {
			if down.Load() {
				return http.StatusServiceUnavailable
			}
			return 0
		})
		l.register(client.Job{ID: "a", Topic: "t"})
		l.register(client.Job{ID: "b", Topic: "t"})
		stop := l.forward(Options{Client: c, Routes: routes(t, "t=3000")})
		l.srv.Advance(time.Second)
		down.Store(true)
		began := time.Now()
		require.NoError(t, stop())
		require.LessOrEqual(t, time.Since(began), 12*time.Second)
		require.Len(t, l.deliveries, 2)
		require.Contains(t, l.deliveries[0].Error, "not reported")
	})
}

// The topics that run already do not keep an error from being returned.
func TestForward_EndsWithAnErrorBesideTopicsThatRun(t *testing.T) {
	for path, all := range map[string][]string{
		"/v1/topics/b": {"a=3000", "b=3000"}, "/v1/topics": {"a=3000", "order.*=3000"},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := newLaptop(t, answers(200), "a", "b")
			c := l.failing(func(r *http.Request) int {
				if r.URL.Path == path {
					return http.StatusForbidden
				}
				return 0
			})
			ended := make(chan error, 1)
			o := Options{Client: c, Routes: routes(t, all...), Say: func(string) {}, Dial: l.dial}
			go func() { ended <- Run(t.Context(), o) }()
			l.srv.Advance(time.Minute)
			require.Len(t, ended, 1)
			problem, ok := errors.AsType[*client.Problem](<-ended)
			require.True(t, ok)
			require.Equal(t, http.StatusForbidden, problem.Status)
		})
	}
}

// A topic that was found by a route may leave, and come back. The others are forwarded all the time.
func TestForward_GoesOnWithoutATopicThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "order.paid", "order.sent", "order.gone")
		stop := l.forward(Options{Routes: routes(t, "order.*=3000")})
		l.srv.Advance(time.Second)
		deliver := func(how string) {
			_, err := l.srv.Client().PatchTopic(t.Context(), "order.sent", client.Policy{Deliver: how})
			require.NoError(t, err)
			l.srv.Advance(2 * time.Minute)
		}
		require.NoError(t, l.srv.Client().DeleteTopic(t.Context(), "order.gone", false))
		deliver("push")
		l.register(client.Job{ID: "a", Topic: "order.paid"})
		l.srv.Advance(time.Second)
		require.Equal(t, client.Delivered, l.state("a").State)
		require.Contains(t, l.said, "order.sent is not pulled any more: it is forwarded again when it is")
		require.Contains(t, l.said, "order.gone is not pulled any more: it is forwarded again when it is")
		deliver("pull")
		l.register(client.Job{ID: "b", Topic: "order.sent"})
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		require.Equal(t, client.Delivered, l.state("b").State)
	})
}

// New topics are found also after a look that failed.
func TestForward_LooksForTopicsAgainAfterAFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200), "order.paid")
		var looks atomic.Int64
		c := l.failing(func(r *http.Request) int {
			if r.URL.Path == "/v1/topics" && looks.Add(1) == 2 {
				return http.StatusNotImplemented
			}
			return 0
		})
		stop := l.forward(Options{Client: c, Routes: routes(t, "order.*=3000")})
		l.srv.Advance(time.Second)
		_, err := l.srv.Client().PutTopic(t.Context(), "order.new", client.Policy{Deliver: "pull"})
		require.NoError(t, err)
		l.register(client.Job{ID: "a", Topic: "order.new"})
		l.srv.Advance(2 * time.Minute)
		require.NoError(t, stop())
		require.Equal(t, client.Delivered, l.state("a").State)
		require.Contains(t, strings.Join(l.said, "\n"), "no list of the topics, trying again")
	})
}

// A copy of each attempt goes to the laptop. The job and its receiver notice nothing.
func TestForward_CopiesWhatTheServerSends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(500))
		l.srv = clienttest.New(t, answers(200))
		for _, topic := range []string{"order.paid", "other"} {
			_, err := l.srv.Client().PutTopic(t.Context(), topic, client.Policy{URL: "https://shop.example/hooks"})
			require.NoError(t, err)
		}
		l.register(client.Job{ID: "before", Topic: "order.paid"})
		l.srv.Advance(time.Second)
		stop := l.forward(Options{Routes: routes(t, "order.*=3000/copy"), Copy: true})
		l.srv.Advance(time.Second)
		l.register(client.Job{
			ID: "a", Topic: "order.paid", Body: map[string]int{"n": 1},
			Headers: client.Headers{"X-Job": {"1"}, "X-Api-Key": {"k"}},
		})
		l.register(client.Job{ID: "b", Topic: "other"})
		l.srv.Advance(time.Minute)
		l.down.Store(true)
		l.register(client.Job{ID: "c", Topic: "order.paid"})
		l.srv.Advance(time.Minute)
		require.NoError(t, stop())
		require.Len(t, l.requests, 1)
		r := l.requests[0]
		require.Equal(t, "POST /copy a 1",
			r.Method+" "+r.URL.Path+" "+r.Header.Get("Webhook-Id")+" "+r.Header.Get("Ringback-Attempt"))
		require.Equal(t, "1", r.Header.Get("X-Job"))
		require.Empty(t, r.Header.Get("X-Api-Key"))
		require.JSONEq(t, `{"n": 1}`, l.bodies[0])
		require.True(t, l.deliveries[0].Copy)
		for _, id := range []string{"before", "a", "b", "c"} {
			require.Equal(t, client.Delivered, l.state(id).State)
			require.Equal(t, 1, l.state(id).AttemptsMade)
		}
	})
}

func TestForward_CopiesSayWhatIsMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, answers(200))
		l.srv = clienttest.New(t, answers(200))
		var streams atomic.Int64
		c, err := client.New(l.srv.URL, client.Options{HTTP: &http.Client{Transport: transport(func(
			r *http.Request,
		) (*http.Response, error) {
			resp, err := l.srv.HTTP.Transport.RoundTrip(r)
			if err == nil && r.URL.Path == "/v1/stream" && streams.Add(1) == 1 {
				time.AfterFunc(time.Second, func() { _ = resp.Body.Close() })
			}
			return resp, err
		})}})
		require.NoError(t, err)
		stop := l.forward(Options{Client: c, Routes: routes(t, "*=3000"), Copy: true})
		l.srv.Advance(time.Minute)
		l.register(client.Job{ID: "a", URL: "https://a.example"})
		l.srv.Advance(time.Second)
		require.NoError(t, stop())
		require.Len(t, l.requests, 1)
		require.Contains(t, l.said,
			"the connection to the server was interrupted: attempts of that time are not copied")
	})
}

// What is dropped is said once a second, however much it is.
func TestForward_CountsCopiesThatAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLaptop(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		l.srv = clienttest.New(t, answers(200))
		stop := l.forward(Options{Routes: routes(t, "*=3000"), Copy: true, Concurrency: 1})
		l.srv.Advance(time.Second)
		for i := range 8 {
			for n := range 40 {
				l.register(client.Job{ID: fmt.Sprintf("%d-%d", i, n), URL: "https://a.example"})
			}
			l.srv.Advance(2 * time.Second)
		}
		require.NoError(t, stop())
		var dropped, n int
		for _, text := range l.said {
			if _, err := fmt.Sscanf(text, "attempts that are not copied: %d,", &n); err == nil {
				dropped += n
			}
		}
		require.GreaterOrEqual(t, dropped, 320-maxQueued-2, l.said)
		require.Less(t, len(l.said), 13, l.said)
	})
}

func TestFlags_RefuseWhatIsNotValid(t *testing.T) {
	for want, f := range map[string]Flags{
		"--topic: is required, with --to":    {},
		"--to: is required with --topic":     {Topic: []string{"a"}},
		"--to: needs --topic":                {To: "3000", Route: []string{"a=3000"}},
		`--topic: "a.*" is not a topic`:      {Topic: []string{"a.*"}, To: "3000"},
		`"ftp://x" is not a URL`:             {Topic: []string{"a"}, To: "ftp://x"},
		"neither a password":                 {Topic: []string{"a"}, To: "http://u:p@localhost"},
		`--route: "3000" is not PATTERN=URL`: {Route: []string{"3000"}},
		`--route: "a*b" is neither`:          {Route: []string{"a*b=3000"}},
		`--lane: "*a" is neither`:            {Route: []string{"a=3000"}, Lane: []string{"*a"}},
		"--concurrency: must be 1 to 100":    {Route: []string{"a=3000"}, Concurrency: 101},
		"--header: a header must be NAME: " +
			"VALUE": {Route: []string{"a=3000"}, Header: []string{"Authorization Bearer s3cret"}},
		"--header: what is before the colon":      {Route: []string{"a=3000"}, Header: []string{"Bearer s3cret: x"}},
		"--header: X-A has a value that HTTP":     {Route: []string{"a=3000"}, Header: []string{"X-A: s3cret\x00"}},
		"--header: open /nowhere":                 {Route: []string{"a=3000"}, Header: []string{"@/nowhere"}},
		"--count: must not be negative":           {Route: []string{"a=3000"}, Count: -1},
		"--secret-file: ":                         {Route: []string{"a=3000"}, SecretFile: "/nowhere"},
		"--route: \"\" is not a URL such as http": {Route: []string{"a="}},
	} {
		if f.Concurrency == 0 {
			f.Concurrency = 8
		}
		require.ErrorContains(t, f.Check(), want)
		require.NotContains(t, f.Check().Error(), "s3cret")
	}
	file := filepath.Join(t.TempDir(), "headers")
	require.NoError(t, os.WriteFile(file, []byte("Authorization: Bearer s3cret\n\nCookie: a=b\n"), 0o600))
	f := Flags{
		Topic: []string{"a"}, To: ":3000/in", Route: []string{"b.*=https://dev.example"}, Concurrency: 8,
		Header: []string{"X-A: 1", "@" + file},
	}
	var o Options
	require.NoError(t, f.apply(&o))
	require.Equal(t, "http://localhost:3000/in", targetOf(o.Routes, "a").String())
	require.Equal(t, "https://dev.example/", targetOf(o.Routes, "b.c").String())
	require.Nil(t, targetOf(o.Routes, "b"))
	require.Equal(t, http.Header{"X-A": {"1"}, "Authorization": {"Bearer s3cret"}, "Cookie": {"a=b"}}, o.Header)
}

func TestDelivery_IsOneLine(t *testing.T) {
	plain := func(text, state string) string { return text + "/" + state }
	d := Delivery{
		At: time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC), ID: "a\x1b", Topic: "t", Attempt: 2,
		Status: 204, DurationMS: 12.3,
	}
	require.Equal(t, `08:00:00.000  204/delivered  t  a\u001b  attempt 2  12ms`, d.line(plain))
	d.Status, d.Error = 0, errors.New("EOF").Error()
	require.Equal(t, `08:00:00.000  failed/failed  t  a\u001b  attempt 2  12ms  EOF`, d.line(plain))
}
