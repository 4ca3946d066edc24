package otlp_test

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/ringback/ringback/dispatcher/tracing/otlp"
	"github.com/ringback/ringback/internal/testkit"
)

// set sets the variables, and no others of OpenTelemetry.
func set(t *testing.T, variables ...string) {
	t.Helper()
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for _, pair := range variables {
		name, value, _ := strings.Cut(pair, "=")
		t.Setenv(name, value)
	}
}

// start starts the exporter that the variables describe.
func start(t *testing.T, variables ...string) (*otlp.Provider, *testkit.Log) {
	t.Helper()
	set(t, variables...)
	c, err := otlp.FromEnvironment("1.2.3")
	require.NoError(t, err)
	require.NotNil(t, c)
	log := new(testkit.Log)
	return c.Start(slog.New(slog.NewTextHandler(log, nil))), log
}

// end makes spans that end.
func end(p *otlp.Provider, n int) {
	for range n {
		_, span := p.Tracer("test").Start(context.Background(), "attempt", trace.WithNewRoot())
		span.End()
	}
}

func TestFromEnvironment_IsOffUnlessAnEndpointIsSet(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.test:4318"
	for _, variables := range [][]string{
		{},
		{"OTEL_TRACES_EXPORTER=otlp"},
		{"OTEL_EXPORTER_OTLP_HEADERS=a=b"},
		{endpoint, "OTEL_SDK_DISABLED=true"},
		{endpoint, "OTEL_TRACES_EXPORTER=none"},
	} {
		set(t, variables...)
		c, err := otlp.FromEnvironment("")
		require.NoError(t, err)
		require.Nil(t, c, variables)
	}
}

func TestFromEnvironment_BuildsTheEndpoint(t *testing.T) {
	for want, variables := range map[string][]string{
		"http://collector.test:4318/v1/traces":  {"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.test:4318"},
		"https://collector.test/otlp/v1/traces": {"OTEL_EXPORTER_OTLP_ENDPOINT=https://collector.test/otlp/"},
		"http://traces.test/ingest": {
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.test",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces.test/ingest",
		},
		"http://traces.test/": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://traces.test"},
	} {
		set(t, variables...)
		c, err := otlp.FromEnvironment("")
		require.NoError(t, err)
		require.Equal(t, want, c.Endpoint.String())
	}
}

func TestFromEnvironment_NamesEachVariableThatIsNotValid(t *testing.T) {
	utf16 := filepath.Join(t.TempDir(), "utf16.pem")
	require.NoError(t, os.WriteFile(utf16, []byte("-\x00-\x00"), 0o600))
	bad := []string{
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=collector:4318", "OTEL_TRACES_EXPORTER=zipkin",
		"OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
		"OTEL_EXPORTER_OTLP_COMPRESSION=br", "OTEL_EXPORTER_OTLP_TIMEOUT=10s", "OTEL_EXPORTER_OTLP_HEADERS=secret",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=" + utf16, "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE=/no/such.pem",
		"OTEL_BSP_SCHEDULE_DELAY=0", "OTEL_BSP_MAX_QUEUE_SIZE=-1", "OTEL_TRACES_SAMPLER=traceidratio",
		"OTEL_TRACES_SAMPLER_ARG=2", "OTEL_RESOURCE_ATTRIBUTES=shop",
	}
	set(t, bad...)
	_, err := otlp.FromEnvironment("")
	for _, pair := range bad {
		if name, _, _ := strings.Cut(pair, "="); name != "OTEL_TRACES_SAMPLER" {
			require.ErrorContains(t, err, name+" ")
		}
	}
	require.NotContains(t, err.Error(), "secret")
	require.ErrorContains(t, err, utf16+" is in UTF-16")
	set(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://c.test", "OTEL_TRACES_SAMPLER=often")
	_, err = otlp.FromEnvironment("")
	require.EqualError(t, err, "OTEL_TRACES_SAMPLER must be always_on or always_off or traceidratio or "+
		"parentbased_always_on or parentbased_always_off or parentbased_traceidratio")
}

func TestProvider_PostsSpansAsTheVariablesSay(t *testing.T) {
	requests := make(chan *http.Request, 2)
	bodies := make(chan []byte, 2)
	answers := []int{http.StatusServiceUnavailable, http.StatusOK}
	collector := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		unpacked, err := gzip.NewReader(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		body, _ := io.ReadAll(unpacked)
		requests <- r
		bodies <- body
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(answers[0])
		answers = answers[1:]
	}))
	defer collector.Close()
	authority := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(authority,
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: collector.Certificate().Raw}), 0o600))

	p, log := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_COMPRESSION=gzip",
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=a%20b, X-Tenant=shop", "OTEL_EXPORTER_OTLP_CERTIFICATE="+authority,
		"OTEL_SERVICE_NAME=ringback-eu", "OTEL_RESOURCE_ATTRIBUTES=deployment.environment=test")
	end(p, 3)
	dropped, err := p.Shutdown(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
	require.Len(t, requests, 2, "it repeats after 503")
	r := <-requests
	require.Equal(t, "POST /v1/traces", r.Method+" "+r.URL.Path)
	require.Equal(t, "a b", r.Header.Get("Api-Key"))
	require.Equal(t, "shop", r.Header.Get("X-Tenant"))
	require.Equal(t, "application/x-protobuf", r.Header.Get("Content-Type"))
	first, second := <-bodies, <-bodies
	require.Equal(t, first, second)
	var got tracepb.TracesData
	require.NoError(t, proto.Unmarshal(second, &got))
	require.Len(t, got.ResourceSpans, 1)
	require.Len(t, got.ResourceSpans[0].ScopeSpans[0].Spans, 3)
	resource := make(map[string]string)
	for _, a := range got.ResourceSpans[0].Resource.Attributes {
		resource[a.Key] = a.Value.GetStringValue()
	}
	require.Equal(t, "ringback-eu", resource["service.name"])
	require.Equal(t, "1.2.3", resource["service.version"])
	require.Equal(t, "test", resource["deployment.environment"])
	require.Empty(t, log.String())
}

func TestProvider_SamplesAsTheVariablesSay(t *testing.T) {
	p, _ := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:1", "OTEL_TRACES_SAMPLER=always_off")
	end(p, 10)
	dropped, err := p.Shutdown(t.Context())
	require.NoError(t, err)
	require.Zero(t, dropped)
}

// An endpoint that never answers delays neither the spans nor the stop.
func TestProvider_DropsWhatTheEndpointDoesNotTake(t *testing.T) {
	reached, release := make(chan struct{}, 10), make(chan struct{})
	collector := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		reached <- struct{}{}
		<-release
	}))
	defer collector.Close()
	defer close(release)
	p, log := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_MAX_QUEUE_SIZE=10",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=5")
	end(p, 5)
	<-reached
	end(p, 100)
	require.Equal(t, 1, strings.Count(log.String(), "spans are exported too slowly"), log.String())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	dropped, err := p.Shutdown(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.EqualValues(t, 105, dropped)
}

func TestProvider_CountsSpansThatAreRefused(t *testing.T) {
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	p, log := start(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=1")
	end(p, 20)
	dropped, err := p.Shutdown(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 20, dropped)
	require.Equal(t, 1, strings.Count(log.String(), "\n"), "one line of many: %s", log.String())
	require.Contains(t, log.String(), "answered with status 404")
}
