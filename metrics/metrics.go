package metrics

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// MaxTopics bounds Options.Topics.
const MaxTopics = 1000

// Options says what is measured. The zero value is ready.
type Options struct {
	// Version of Ringback, as ringback_build_info shows it; empty: "unknown".
	Version string
	// Topics is how many topics have series of their own, in order of appearance, 1 to MaxTopics; zero: 200.
	Topics int
	// Fresh is for how long what a scrape gathered serves the next ones, too; zero: 5 s.
	Fresh time.Duration
	// Timeout bounds the store's part of a scrape; zero: 2 s.
	Timeout time.Duration
	// Scrapes is how many scrapes are answered at a time, others get a 503; zero: 4.
	Scrapes int
	Logger  *slog.Logger // nil: slog.Default
	// LogDropped counts the log lines that were dropped so far; nil: none are.
	LogDropped func() uint64
}

// Metrics measures one process. Make one with New.
type Metrics struct {
	log      *slog.Logger
	scrapes  int
	registry *prometheus.Registry
	topics   *topics
	gauges   *gauges

	// Of topics; their series are kept in each topic.
	attempts *prometheus.CounterVec
	lateness *prometheus.HistogramVec
	duration *prometheus.HistogramVec
	inserted *prometheus.CounterVec
	ends     *prometheus.CounterVec

	// Of the store.
	calls   *prometheus.HistogramVec
	repairs *prometheus.CounterVec
	series  storeSeries
}

// New makes a Metrics with a registry of its own. It panics when an option is out of its range.
func New(o Options) *Metrics {
	o.Topics = cmp.Or(o.Topics, 200)
	o.Fresh = cmp.Or(o.Fresh, 5*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 2*time.Second)
	o.Scrapes = cmp.Or(o.Scrapes, 4)
	if o.Topics < 1 || o.Topics > MaxTopics {
		panic(fmt.Sprintf("metrics: 1 to %d topics can have series of their own", MaxTopics))
	}
	if o.Fresh < 0 || o.Timeout < 0 || o.Scrapes < 0 {
		panic("metrics: times and numbers of scrapes are not negative")
	}
	m := &Metrics{
		log:      cmp.Or(o.Logger, slog.Default()),
		scrapes:  o.Scrapes,
		registry: prometheus.NewRegistry(),
		topics:   newTopics(o.Topics),
	}
	m.gauges = newGauges(m.topics, o.Fresh, o.Timeout, m.log)
	m.ofTopics()
	m.ofStore()
	build := m.gauge("ringback_build_info", "1, with the version of Ringback and of Go it was built with.", "version", "go")
	build.WithLabelValues(cmp.Or(o.Version, "unknown"), runtime.Version()).Set(1)
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

// Handler answers scrapes, in Prometheus's text format or as OpenMetrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorLog:            faults{m.log},
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: m.scrapes,
		EnableOpenMetrics:   true,
	})
}

// faults logs what went wrong with a scrape: series that could not be gathered, or a client that went away.
type faults struct{ log *slog.Logger }

// Println is what promhttp calls, with a text and an error, which may have a line for each series.
func (f faults) Println(v ...any) {
	f.log.Warn("answer a scrape", "err", strings.ReplaceAll(strings.TrimSpace(fmt.Sprintln(v...)), "\n", "; "))
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
