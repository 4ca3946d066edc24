package metrics_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/internal/testkit"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// usedMetrics returns a Metrics whose every metric has a value.
func usedMetrics(t *testing.T) *metrics.Metrics {
	t.Helper()
	m := metrics.New(metrics.Options{Version: "1.2.3", MaxWaiting: 128})
	m.Watch(&source{answer: rows(store.TopicStats{Topic: "orders", OldestDue: time.Now()})})
	m.AttemptEnded(delivered("orders"))
	m.WorkTreated(store.WorkPurge, 1, 0, 0)
	m.EventExpanded("default", "orders", 2, 0)
	m.EventExpanded("default", "orders", 0, 0)
	m.Store("eu", logged{storetest.NewModel(storetest.ModelOptions{})})
	s := m.Store("main", storetest.NewModel(storetest.ModelOptions{}))
	calls["Insert"](t.Context(), s)
	_, _, err := m.Store("main", stub{errs: []error{nil}}).Shards()[0].Settle(t.Context(), "",
		[]store.Settlement{{Queue: queue, Verdict: policy.Verdict{Kind: policy.Delivered}}}, nil)
	require.NoError(t, err)
	return m
}

// logged is a store with a log of half a gigabyte.
type logged struct{ store.Store }

func (logged) LogBytes() int64 { return 512 << 20 }

// parseTable parses a table of metrics: type and labels by name.
func parseTable(t *testing.T, file, row string) map[string][2]string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	all := make(map[string][2]string)
	for _, found := range regexp.MustCompile(row).FindAllSubmatch(text, -1) {
		name := string(found[1])
		require.NotContains(t, all, name, "%s occurs twice in %s", name, file)
		all[name] = [2]string{string(found[2]), string(found[3])}
	}
	return all
}

func TestMetrics_AreDocumented(t *testing.T) {
	m := usedMetrics(t)
	got := scrape(t, m)
	there := make(map[string][2]string)
	for name, kind := range got.types {
		if !strings.HasPrefix(name, "ringback_") {
			continue
		}
		of := got.all(name)
		if kind == "histogram" {
			of = got.all(name + "_count")
		}
		require.NotEmpty(t, of, name)
		there[name] = [2]string{kind, ""}
		for label := range of[0].labels {
			there[name] = [2]string{kind, there[name][1] + label + ","}
		}
	}
	descriptions := make(chan *prometheus.Desc)
	go func() {
		m.Registry().Describe(descriptions)
		close(descriptions)
	}()
	for d := range descriptions {
		if name := regexp.MustCompile(`fqName: "(ringback_\w+)"`).FindStringSubmatch(d.String()); name != nil {
			require.Contains(t, there, name[1], "the test does not use it")
		}
	}
	for file, row := range map[string]string{
		"doc.go":                `(?m)^//\t(ringback_\w+) +(\w+) +(\S+) `,
		"../../docs/metrics.md": "(?m)^\\| `(ringback_\\w+)` \\| (\\w+) \\| (\\S+) \\|",
	} {
		table := parseTable(t, file, row)
		for name, is := range there {
			require.Contains(t, table, name, "%s does not document it", file)
			require.Equal(t, is[0], table[name][0], "the type of %s in %s", name, file)
			labels := strings.FieldsFunc(strings.TrimPrefix(table[name][1], "-"), func(r rune) bool { return r == ',' })
			require.ElementsMatch(t, strings.FieldsFunc(is[1], func(r rune) bool { return r == ',' }), labels,
				"the labels of %s in %s", name, file)
		}
		for name := range table {
			require.Contains(t, there, name, "%s documents it, and it does not exist", file)
		}
	}
}

func TestMetrics_PassPrometheusLint(t *testing.T) {
	m := usedMetrics(t)
	var names []string
	for name := range scrape(t, m).types {
		if strings.HasPrefix(name, "ringback_") {
			names = append(names, name)
		}
	}
	problems, err := testutil.GatherAndLint(m.Registry(), names...)
	require.NoError(t, err)
	require.Empty(t, problems)
}

func TestMetrics_IncludeTheProcess(t *testing.T) {
	m := usedMetrics(t)
	got := scrape(t, m)
	require.Contains(t, got.types, "go_goroutines")
	require.Contains(t, got.types, "process_start_time_seconds")
	require.InDelta(t, 1, got.value(t, "ringback_build_info", "version", "1.2.3"), 0)
	require.InDelta(t, 128, got.value(t, "ringback_max_waiting_requests"), 0)
	require.Len(t, got.all("ringback_sqlite_log_bytes"), 1, "the other store has none")
	require.InDelta(t, 512<<20, got.value(t, "ringback_sqlite_log_bytes", "store", "eu"), 0)
	other := scrape(t, metrics.New(metrics.Options{}))
	require.InDelta(t, 1, other.value(t, "ringback_build_info", "version", "unknown"), 0)
	require.Empty(t, other.all("ringback_attempts_total"), "two in a process share nothing")
}

func TestHandler_ServesOpenMetricsAndGzip(t *testing.T) {
	server := httptest.NewServer(usedMetrics(t).Handler())
	defer server.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	require.NoError(t, err)
	request.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	request.Header.Set("Accept-Encoding", "gzip")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	require.Contains(t, response.Header.Get("Content-Type"), "application/openmetrics-text")
	plain, err := gzip.NewReader(response.Body)
	require.NoError(t, err)
	text, err := io.ReadAll(plain)
	require.NoError(t, err)
	require.True(t, bytes.HasSuffix(text, []byte("# EOF\n")))
	require.Contains(t, string(text),
		`ringback_attempts_total{namespace="default",outcome="2xx",topic="orders",verdict="delivered"} 1.0`)
}

func TestHandler_BoundsConcurrentScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New(metrics.Options{})
		gate := make(chan struct{})
		m.Watch(&source{answer: func(context.Context) ([]store.TopicStats, error) {
			<-gate
			return nil, nil
		}})
		handler := m.Handler() // its bound is its own
		ask := func() int {
			answer := httptest.NewRecorder()
			handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
			return answer.Code
		}
		var answered sync.WaitGroup
		for range metrics.MaxScrapes {
			answered.Go(func() {
				if code := ask(); code != http.StatusOK {
					t.Errorf("a scrape was answered %d", code)
				}
			})
		}
		synctest.Wait()
		require.Equal(t, http.StatusServiceUnavailable, ask())
		close(gate)
		answered.Wait()
		require.Equal(t, http.StatusOK, ask())
	})
}

func TestHandler_LogsErrorsOnOneLine(t *testing.T) {
	var logged testkit.Log
	m := metrics.New(metrics.Options{Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	m.Registry().MustRegister(broken{})
	answer := httptest.NewRecorder()
	m.Handler().ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil))
	require.Equal(t, http.StatusOK, answer.Code, "the rest is answered")
	require.Contains(t, answer.Body.String(), "ringback_build_info")
	require.Equal(t, 1, strings.Count(logged.String(), "\n"), logged.String())
	require.Contains(t, logged.String(), `msg="scrape failed" err="error gathering metrics:`)
}

// broken is a collector that fails.
type broken struct{}

var brokenDesc = prometheus.NewDesc("broken", "Never there.", nil, nil)

func (broken) Describe(to chan<- *prometheus.Desc) { to <- brokenDesc }

func (broken) Collect(to chan<- prometheus.Metric) {
	to <- prometheus.NewInvalidMetric(brokenDesc, io.ErrUnexpectedEOF)
}

func TestMetrics_AreSafeForConcurrentUse(t *testing.T) {
	m := metrics.New(metrics.Options{})
	watched := &source{answer: rows(store.TopicStats{Topic: "t-1"}, store.TopicStats{Topic: "t-9"})}
	model := m.Store("main", storetest.NewModel(storetest.ModelOptions{}))
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for i := range 200 {
				name := "t-" + string(rune('0'+(i+g)%10))
				m.AttemptEnded(pool.AttemptEvent{
					Namespace: "default", Topic: name,
					Result: &policy.Result{Status: 100 * (1 + i%5)},
				})
				_, _ = model.Shards()[0].Insert(t.Context(), store.NewToken(), []store.NewJob{entry(name, name)})
				_, _ = model.Shards()[0].TopicStats(t.Context(),
					store.StatsFilter{Namespace: "default", Limit: store.MaxBatch})
			}
		})
		all.Go(func() {
			for range 20 {
				m.Watch(watched) // so that the scrape reads the counts
				scrape(t, m)
			}
		})
	}
	all.Wait()
	got := scrape(t, m)
	require.InDelta(t, 800, got.sum("ringback_attempts_total"), 0)
	require.InDelta(t, 800, got.sum("ringback_jobs_inserted_total"), 0)
	require.InDelta(t, 1600, got.sum("ringback_store_seconds_count"), 0)
}

func TestMetrics_CountEventsByWhatBecameOfTheirLanes(t *testing.T) {
	m := metrics.New(metrics.Options{})
	m.EventExpanded("default", "orders", 3, 1)
	m.EventExpanded("default", "orders", 0, 0)
	m.EventExpanded("default", "orders", 0, 2)
	got := scrape(t, m)
	for _, outcome := range []string{"sent", "unsubscribed", "refused"} {
		found := got.all("ringback_events_total", "topic", "orders", "outcome", outcome)
		require.Len(t, found, 1, outcome)
		require.InDelta(t, 1, found[0].value, 0)
	}
	require.InDelta(t, 3, got.all("ringback_event_jobs_total", "topic", "orders")[0].value, 0)
}
