package tracing_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/ringback/ringback/dispatcher/tracing"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// BenchmarkTracer is what traces add to a registration and to an attempt, without the export.
func BenchmarkTracer(b *testing.B) {
	for name, sampler := range map[string]sdktrace.Sampler{
		"sampled none": sdktrace.NeverSample(), "sampled 1 %": sdktrace.TraceIDRatioBased(.01),
		"sampled all": sdktrace.AlwaysSample(),
	} {
		tracer := tracing.New(sdktrace.NewTracerProvider(sdktrace.WithSampler(sampler)))
		b.Run("register, "+name, func(b *testing.B) {
			b.ReportAllocs()
			request := httptest.NewRequest(http.MethodPost, "/v1/jobs", nil)
			results := []store.RoutedResult{{}}
			for b.Loop() {
				r, end := tracer.StartRequest(request)
				tracer.Carry(r.Context(), nil)
				tracer.Registered(r.Context(), results)
				end(201)
			}
		})
		b.Run("attempt, "+name, func(b *testing.B) {
			b.ReportAllocs()
			request := job.Request{
				Ref:    job.Ref{Namespace: "default", ID: "close-1"},
				Queue:  job.Queue{Namespace: "default", Topic: "order.close", Lane: "shop.test:443"},
				Method: "POST", URL: "https://shop.test/hooks", Attempt: 1,
			}
			e := pool.AttemptEvent{
				Verdict: policy.Verdict{Kind: policy.Delivered},
				Result:  &policy.Result{Status: 200, RemoteAddr: "203.0.113.5:443"},
			}
			for b.Loop() {
				_, span := tracer.StartAttempt(b.Context(), request, policy.DeliverPush, time.Time{})
				span.Carry(request.Header)
				span.End(e)
			}
		})
	}
}
