package tracing_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/ringback/ringback/api"
	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/tracing"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/notify"
	"github.com/ringback/ringback/store/storetest"
)

// server is a Ringback with an exporter in memory, whose clock is that of the bubble.
type server struct {
	t        *testing.T
	api      http.Handler
	service  *dispatcher.Service
	exporter *tracetest.InMemoryExporter
	log      *testkit.Log

	mu       sync.Mutex
	received []http.Header
	answers  []int // to requests, in order; 200 after that
}

// options select what a server has.
type options struct {
	off     bool             // no Tracer
	sampler sdktrace.Sampler // nil: all
	handle  func(*dispatcher.Dispatcher)
}

// start starts a server, until the end of the test.
func start(t *testing.T, o options) *server {
	t.Helper()
	s := &server{t: t, exporter: tracetest.NewInMemoryExporter(), log: new(testkit.Log)}
	log := slog.New(slog.NewJSONHandler(s.log, nil))
	model := storetest.NewModel(storetest.ModelOptions{})
	sender, err := notify.New(notify.Options{Dial: s.dial})
	require.NoError(t, err)
	opts := dispatcher.Options{
		Store: model, Deliverer: sender, OneProcess: true,
		Random: func() float64 { return .5 }, Logger: log,
	}
	var tracer api.Tracer
	if !o.off {
		provider := []sdktrace.TracerProviderOption{sdktrace.WithSyncer(s.exporter)}
		if o.sampler != nil {
			provider = append(provider, sdktrace.WithSampler(o.sampler))
		}
		spans := tracing.New(sdktrace.NewTracerProvider(provider...))
		opts.Tracer, tracer = spans, spans
	}
	d, err := dispatcher.New(opts)
	require.NoError(t, err)
	if o.handle != nil {
		o.handle(d)
	}
	s.service = dispatcher.NewService(d, nil, log)
	s.api = api.New(api.Options{Service: api.NewService(s.service), Tracer: tracer, Logger: log})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	running := make(chan error, 1)
	go func() { running <- s.service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-running)
		sender.Close()
		require.NoError(t, model.Close())
	})
	synctest.Wait()
	return s
}

// dial connects to a receiver, which notes the headers of the requests.
func (s *server) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		defer func() { _ = far.Close() }()
		for in := bufio.NewReader(far); ; {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			var body strings.Builder
			_, _ = bufio.NewReader(r.Body).WriteTo(&body)
			if _, err := fmt.Fprintf(far, "HTTP/1.1 %d OK\r\nContent-Length: 0\r\n\r\n", s.answer(r)); err != nil {
				return
			}
		}
	}()
	return near, nil
}

// answer notes the headers of a request and returns the status of its answer.
func (s *server) answer(r *http.Request) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.received = append(s.received, r.Header)
	if len(s.answers) == 0 {
		return http.StatusOK
	}
	status := s.answers[0]
	s.answers = s.answers[1:]
	return status
}

// call makes a request to the API, which must succeed, and returns what it answers.
func (s *server) call(method, path, body string, header ...string) map[string]any {
	s.t.Helper()
	status, answer := s.try(method, path, body, header...)
	require.Less(s.t, status, 300, answer)
	return answer
}

func (s *server) try(method, path, body string, header ...string) (int, map[string]any) {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	var answer map[string]any
	require.NoError(s.t, json.Unmarshal(w.Body.Bytes(), &answer), w.Body.String())
	return w.Code, answer
}

// pass lets time pass, and everything happen that is due by then.
func (s *server) pass(d time.Duration) {
	time.Sleep(d + 50*time.Millisecond)
	synctest.Wait()
}

// spans returns the spans that have ended with a name, in the order in which they ended.
func (s *server) spans(name string) (found tracetest.SpanStubs) {
	for _, span := range s.exporter.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// attempts returns the spans of attempts, those of callbacks last: spans that end at the same moment are exported in
// any order.
func (s *server) attempts() tracetest.SpanStubs {
	found := s.spans("attempt")
	slices.SortStableFunc(found, func(a, b tracetest.SpanStub) int { return cmp.Compare(ofCallback(a), ofCallback(b)) })
	return found
}

// ofCallback returns 1 for the span of a callback's attempt, else 0.
func ofCallback(span tracetest.SpanStub) int {
	if value(span, "messaging.destination.name") == job.CallbackTopic {
		return 1
	}
	return 0
}

// span returns the only span with a name.
func (s *server) span(name string) tracetest.SpanStub {
	s.t.Helper()
	found := s.spans(name)
	require.Len(s.t, found, 1, name)
	return found[0]
}

// value returns an attribute of a span.
func value(span tracetest.SpanStub, name string) any {
	for _, a := range span.Attributes {
		if a.Key == attribute.Key(name) {
			return a.Value.AsInterface()
		}
	}
	return nil
}

// traceparent returns the header that carries a span.
func traceparent(span trace.SpanContext) string {
	return fmt.Sprintf("00-%s-%s-%s", span.TraceID(), span.SpanID(), span.TraceFlags())
}

const (
	callersTrace  = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan   = "00f067aa0ba902b7"
	callersHeader = "00-" + callersTrace + "-" + callersSpan + "-01"
)

func TestTracer_ContinuesTheTraceOfTheCallerToTheReceiver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.answers = []int{503}
		registered := s.call("POST", "/v1/jobs",
			`{"id": "close-1", "topic": "order.close", "url": "http://shop.test/secret-path?key=secret", "retries": 1}`,
			"Traceparent", callersHeader, "Tracestate", "vendor=1")
		s.pass(0)
		s.pass(time.Hour)

		register := s.span("register")
		require.Equal(t, callersTrace, register.SpanContext.TraceID().String())
		require.Equal(t, callersSpan, register.Parent.SpanID().String())
		require.Equal(t, trace.SpanKindServer, register.SpanKind)
		require.Equal(t, "/v1/jobs", value(register, "http.route"))
		require.EqualValues(t, 201, value(register, "http.response.status_code"))
		require.Equal(t, "close-1", value(register, "messaging.message.id"))
		require.Equal(t, "order.close", value(register, "messaging.destination.name"))
		require.EqualValues(t, 1, value(register, "ringback.jobs.created"))
		require.Equal(t, map[string]any{"Traceparent": traceparent(register.SpanContext), "Tracestate": "vendor=1"},
			registered["headers"])

		attempts := s.spans("attempt")
		require.Len(t, attempts, 2)
		for i, attempt := range attempts {
			require.Equal(t, callersTrace, attempt.SpanContext.TraceID().String())
			require.Equal(t, register.SpanContext.SpanID(), attempt.Parent.SpanID(),
				"attempts follow the registration, not each other")
			require.True(t, attempt.Parent.IsRemote())
			require.Equal(t, trace.SpanKindClient, attempt.SpanKind)
			require.Equal(t, []string{traceparent(attempt.SpanContext)}, s.received[i]["Traceparent"])
			require.Equal(t, []string{"vendor=1"}, s.received[i]["Tracestate"])
			require.EqualValues(t, i+1, value(attempt, "ringback.attempt"))
			require.Equal(t, "shop.test", value(attempt, "server.address"))
			require.EqualValues(t, 80, value(attempt, "server.port"))
			require.Equal(t, "shop.test:80", value(attempt, "ringback.lane"))
			for _, a := range attempt.Attributes {
				require.NotContains(t, a.Value.String(), "secret")
			}
		}
		require.EqualValues(t, 503, value(attempts[0], "http.response.status_code"))
		require.Equal(t, "503", value(attempts[0], "error.type"))
		require.Equal(t, "again", value(attempts[0], "ringback.verdict"))
		require.Positive(t, value(attempts[0], "ringback.wait"))
		require.Equal(t, codes.Error, attempts[0].Status.Code)
		require.Equal(t, "delivered", value(attempts[1], "ringback.verdict"))
		require.EqualValues(t, 1, value(attempts[1], "http.request.resend_count"))
		require.Equal(t, codes.Unset, attempts[1].Status.Code)
		require.False(t, attempts[1].EndTime.Before(attempts[1].StartTime))
		require.Contains(t, s.log.String(), `"trace_id":"`+callersTrace+`"`)
	})
}

func TestTracer_MakesOneSpanOfABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		var jobs []string
		for i := range 300 {
			jobs = append(jobs, fmt.Sprintf(`{"id": "b-%d", "url": "http://shop.test/", "delay": "1h"}`, i))
		}
		jobs = append(jobs, `{"url": "http://shop.test/", "topic": "no topic"}`)
		s.call("POST", "/v1/batch", `{"jobs": [`+strings.Join(jobs, ",")+`]}`, "Traceparent", callersHeader)
		register := s.span("register")
		require.EqualValues(t, 300, value(register, "ringback.jobs.created"))
		require.Nil(t, value(register, "messaging.message.id"))
		require.Equal(t, traceparent(register.SpanContext),
			s.call("GET", "/v1/jobs/b-299", "")["headers"].(map[string]any)["Traceparent"])
	})
}

func TestTracer_LeavesARepeatedRegistrationTheSameJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		const body = `{"id": "close-1", "url": "http://shop.test/", "headers": {"X-A": "1"}, "delay": "1h"}`
		first := s.call("POST", "/v1/jobs", body, "Traceparent", callersHeader)
		status, again := s.try("POST", "/v1/jobs", body, "Traceparent",
			"00-"+strings.Repeat("a", 32)+"-"+strings.Repeat("b", 16)+"-01")
		require.Equal(t, http.StatusOK, status)
		require.Equal(t, first["headers"], again["headers"], "the job carries the trace of its registration")
		require.EqualValues(t, 1, value(s.spans("register")[1], "ringback.jobs.existing"))

		status, other := s.try("POST", "/v1/jobs", strings.Replace(body, `"1"`, `"2"`, 1))
		require.Equal(t, http.StatusConflict, status)
		require.Contains(t, fmt.Sprint(other), "/headers/X-A")
		require.NotContains(t, fmt.Sprint(other), "/headers/Trace", "a trace is no difference")
		require.EqualValues(t, 1, value(s.spans("register")[2], "ringback.jobs.refused"))
	})
}

func TestTracer_KeepsTheHeaderThatTheJobHas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.call("POST", "/v1/jobs",
			`{"id": "a", "url": "http://shop.test/", "headers": {"traceparent": "`+callersHeader+`"}}`)
		s.pass(0)
		require.NotEqual(t, callersTrace, s.span("register").SpanContext.TraceID().String())
		attempt := s.span("attempt")
		require.Equal(t, callersTrace, attempt.SpanContext.TraceID().String())
		require.Equal(t, callersSpan, attempt.Parent.SpanID().String())
		require.Equal(t, []string{traceparent(attempt.SpanContext)}, s.received[0]["Traceparent"])
	})
}

func TestTracer_LeavesFullHeadersAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		full := strings.Repeat("x", job.MaxHeaders-len("X-Full: \r\n"))
		registered := s.call("POST", "/v1/jobs",
			`{"id": "a", "url": "http://shop.test/", "headers": {"X-Full": "`+full+`"}}`)
		require.Equal(t, map[string]any{"X-Full": full}, registered["headers"])
		s.pass(0)
		require.Equal(t, "delivered", value(s.span("attempt"), "ringback.verdict"))
		require.Empty(t, s.received[0]["Traceparent"])
	})
}

func TestTracer_KeepsTheTraceWhenHeadersAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.call("POST", "/v1/jobs", `{"id": "a", "url": "http://shop.test/", "delay": "1h", "retries": 0}`,
			"Traceparent", callersHeader)
		edited := s.call("PATCH", "/v1/jobs/a", `{"headers": {"X-A": "1"}}`)
		carried := traceparent(s.span("register").SpanContext)
		require.Equal(t, map[string]any{"Traceparent": carried, "X-A": "1"}, edited["headers"])
		s.call("POST", "/v1/jobs/a/run", "")
		s.pass(0)
		revived := s.call("POST", "/v1/jobs/a/revive", `{"headers": {"X-A": "2"}}`)
		require.Equal(t, map[string]any{"Traceparent": carried, "X-A": "2"}, revived["headers"])
	})
}

func TestTracer_PassesTheTraceToCallbacks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.call("POST", "/v1/jobs", `{"id": "a", "url": "http://shop.test/", "on_delivered": {"url": `+
			`"http://hooks.test/"}}`, "Traceparent", callersHeader)
		s.pass(time.Second)
		attempts := s.attempts()
		require.Len(t, attempts, 2)
		require.Equal(t, job.CallbackTopic, value(attempts[1], "messaging.destination.name"))
		require.Equal(t, attempts[0].SpanContext.SpanID(), attempts[1].Parent.SpanID())
		require.Equal(t, []string{traceparent(attempts[1].SpanContext)}, s.received[1]["Traceparent"])

		// The end of a job without an attempt.
		s.call("PUT", "/v1/topics/late", "{}")
		s.call("POST", "/v1/topics/late/pause", "")
		s.call("POST", "/v1/jobs", `{"id": "b", "topic": "late", "url": "http://shop.test/", "expires_in": "1s", `+
			`"on_dead": {"url": "http://hooks.test/"}}`)
		s.pass(10 * time.Minute)
		attempts = s.attempts()
		require.Len(t, attempts, 3)
		parents := []trace.SpanID{attempts[1].Parent.SpanID(), attempts[2].Parent.SpanID()}
		require.Contains(t, parents, s.spans("register")[1].SpanContext.SpanID())
	})
}

func TestTracer_MakesSpansOfLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.call("PUT", "/v1/topics/pulled", `{"deliver": "pull", "on_delivered": {"url": "http://hooks.test/"}}`)
		for _, id := range []string{"a", "b"} {
			s.call("POST", "/v1/jobs", `{"id": "`+id+`", "topic": "pulled"}`, "Traceparent", callersHeader)
		}
		lease := func() map[string]any {
			return s.call("POST", "/v1/topics/pulled/lease", `{"wait": "5s"}`)["items"].([]any)[0].(map[string]any)
		}
		first := lease()
		register := s.spans("register")[0]
		require.Equal(t, traceparent(register.SpanContext), first["headers"].(map[string]any)["Traceparent"],
			"the client continues it")
		s.pass(3 * time.Second)
		s.call("POST", "/v1/leases", fmt.Sprintf(`{"done": [{"lease": %q}]}`, first["lease"]))
		attempt := s.attempts()[0] // and that of the callback may have ended
		require.Equal(t, trace.SpanKindConsumer, attempt.SpanKind)
		require.Equal(t, register.SpanContext.SpanID(), attempt.Parent.SpanID())
		require.Equal(t, "pull", value(attempt, "ringback.deliver"))
		require.Equal(t, "a", value(attempt, "messaging.message.id"))
		require.Nil(t, value(attempt, "server.address"))
		require.InDelta(t, 3, attempt.EndTime.Sub(attempt.StartTime).Seconds(), .2)
		s.pass(time.Second)
		require.Equal(t, attempt.SpanContext.SpanID(), s.attempts()[1].Parent.SpanID(), "the callback follows it")

		s.call("POST", "/v1/leases",
			fmt.Sprintf(`{"dead": [{"lease": %q, "reason": "no such order"}]}`, lease()["lease"]))
		dead := s.attempts()[1] // that of the callback is the last
		require.Equal(t, "consumer", value(dead, "error.type"))
		require.Equal(t, "no such order", dead.Status.Description)
	})
}

func TestTracer_GivesFunctionsTheSpan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []trace.SpanContext
		s := start(t, options{handle: func(d *dispatcher.Dispatcher) {
			d.Handle("handled", func(ctx context.Context, _ *dispatcher.Job) error {
				seen = append(seen, trace.SpanContextFromContext(ctx))
				return errors.New("no stock")
			})
		}})
		s.call("POST", "/v1/jobs", `{"topic": "handled", "retries": 0}`, "Traceparent", callersHeader)
		s.pass(0)
		attempt := s.span("attempt")
		require.Equal(t, callersTrace, attempt.SpanContext.TraceID().String())
		require.Equal(t, trace.SpanKindConsumer, attempt.SpanKind)
		require.Equal(t, "handler", value(attempt, "ringback.deliver"))
		require.Equal(t, "dead", value(attempt, "ringback.verdict"))
		require.Equal(t, []trace.SpanContext{attempt.SpanContext}, seen)
	})
}

func TestTracer_StartsATraceForEachTick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		s.call("PUT", "/v1/schedules/hourly", `{"every": "1h", "job": {"topic": "report", "url": "http://shop.test/"}}`,
			"Traceparent", callersHeader)
		s.pass(2 * time.Hour)
		ticks, attempts := s.spans("tick"), s.spans("attempt")
		require.Len(t, ticks, 2)
		require.Len(t, attempts, 2)
		require.NotEqual(t, ticks[0].SpanContext.TraceID(), ticks[1].SpanContext.TraceID())
		for i := range ticks {
			require.False(t, ticks[i].Parent.IsValid())
			require.Equal(t, "report", value(ticks[i], "messaging.destination.name"))
			require.Equal(t, ticks[i].SpanContext.SpanID(), attempts[i].Parent.SpanID())
		}
		s.call("POST", "/v1/schedules/hourly/run", "", "Traceparent", callersHeader)
		s.pass(0)
		require.Equal(t, s.span("register").SpanContext.SpanID(), s.spans("attempt")[2].Parent.SpanID())
	})
}

func TestTracer_PassesOnThatATraceIsNotSampled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{sampler: sdktrace.ParentBased(sdktrace.NeverSample())})
		s.call("POST", "/v1/jobs", `{"url": "http://shop.test/"}`)
		s.pass(0)
		require.Empty(t, s.exporter.GetSpans())
		require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-00$", s.received[0].Get("Traceparent"))
		s.call("POST", "/v1/jobs", `{"url": "http://shop.test/"}`, "Traceparent", callersHeader)
		s.pass(0)
		require.Equal(t, callersTrace, s.span("attempt").SpanContext.TraceID().String(), "the caller has decided")
	})
}

func TestTracer_IgnoresHeadersThatAreNoTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{})
		for _, bad := range []string{"x", "00-" + strings.Repeat("0", 32) + "-" + callersSpan + "-01", callersHeader +
			"-more", strings.Repeat("f", 4000)} {
			s.call("POST", "/v1/jobs",
				`{"url": "http://shop.test/", "headers": {"Traceparent": "`+bad+`"}}`, "Traceparent", bad)
		}
		s.pass(0)
		require.Len(t, s.spans("register"), 4)
		for i, attempt := range s.spans("attempt") {
			require.False(t, attempt.Parent.IsValid())
			require.Regexp(t, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$", s.received[i].Get("Traceparent"))
		}
		require.Len(t, s.received, 4)
	})
}

func TestTracer_LeavesHeadersAloneWhenOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := start(t, options{off: true})
		registered := s.call("POST", "/v1/jobs", `{"url": "http://shop.test/"}`, "Traceparent", callersHeader)
		require.Nil(t, registered["headers"])
		s.pass(0)
		s.call("POST", "/v1/jobs", `{"url": "http://shop.test/", "headers": {"Traceparent": "mine"}}`)
		s.pass(0)
		require.Len(t, s.received, 2)
		require.Empty(t, s.received[0]["Traceparent"])
		require.Equal(t, []string{"mine"}, s.received[1]["Traceparent"])
		require.NotContains(t, s.log.String(), "trace_id")
	})
}
