package metrics

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	// maxTopics is the number of topics with their own series.
	maxTopics = 200
	// maxScrapes is the largest number of concurrent scrapes. More are answered 503.
	maxScrapes = 4
)

// Options configures a Metrics. Zero fields take their defaults.
type Options struct {
	// Version is the label of ringback_build_info; empty: "unknown".
	Version string
	// MaxWaiting is the value of ringback_max_waiting_requests.
	MaxWaiting int
	// Logger receives errors of scrapes; nil: slog.Default.
	Logger *slog.Logger
	// LogDropped returns the number of dropped log lines; nil: always zero.
	LogDropped func() uint64
}

// Metrics collects the metrics of one process. Create it with New.
type Metrics struct {
	log      *slog.Logger
	registry *prometheus.Registry
	topics   *topics
	gauges   *gauges

	// By topic; the series are cached in topic.
	attempts *prometheus.CounterVec
	lateness *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	inserted *prometheus.CounterVec
	ends     *prometheus.CounterVec

	work, ticks *prometheus.CounterVec

	events, eventJobs *prometheus.CounterVec // by topic

	// Of the store.
	calls        *prometheus.HistogramVec
	repairs      *prometheus.CounterVec
	waitFailures *prometheus.CounterVec
	series       storeSeries
}

// New returns a Metrics with its own registry.
func New(o Options) *Metrics {
	m := &Metrics{log: cmp.Or(o.Logger, slog.Default()), registry: prometheus.NewRegistry(), topics: newTopics()}
	m.gauges = &gauges{topics: m.topics, log: m.log, logs: make(map[string]logSizer)}
	m.registerTopicMetrics()
	m.registerWorkMetrics()
	m.registerScheduleMetrics()
	m.registerEventMetrics()
	m.registerStoreMetrics()
	build := m.gauge("ringback_build_info",
		"1, with the version of Ringback and of Go it was built with.", "version", "go")
	build.WithLabelValues(cmp.Or(o.Version, "unknown"), runtime.Version()).Set(1)
	m.gauge("ringback_max_waiting_requests",
		"Requests of this process that may wait, for the end of a job or for jobs of pulled topics.").
		WithLabelValues().Set(float64(o.MaxWaiting))
	m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{
		Name: "ringback_log_lines_dropped_total",
		Help: "Log lines that were dropped because stderr was not read in time.",
	}, func() float64 {
		if o.LogDropped == nil {
			return 0
		}
		return float64(o.LogDropped())
	}))
	m.registry.MustRegister(
		m.gauges, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Handler serves scrapes in the Prometheus text format or as OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            errorLogger{m.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		EnableOpenMetrics:   true,
	})
}

// errorLogger logs errors of scrapes.
type errorLogger struct{ log *slog.Logger }

// Println implements promhttp.Logger. The error may have a line per series.
func (f errorLogger) Println(v ...any) {
	f.log.Warn("scrape failed", "err", strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(v...)), "\n", "; "))
}

func (m *Metrics) counter(name, help string, labels ...string) *prometheus.CounterVec {
	v := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) gauge(name, help string, labels ...string) *prometheus.GaugeVec {
	v := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(v)
	return v
}

func (m *Metrics) histogram(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
	v := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(v)
	return v
}
