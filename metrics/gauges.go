package metrics

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// A Source tells at a scrape how things stand.
type Source interface {
	// TopicStats counts the jobs of some topics, Totals those of all.
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
	Totals(ctx context.Context, namespace string) (store.TopicStats, error)
	// State is the pool's; zero where there is none.
	State() pool.State
}

// Watch tells from where the gauges come; before it there are none. A second one replaces the first.
func (m *Metrics) Watch(s Source) { m.gauges.watch(s) }

// The gauges' descriptions.
var (
	jobsDesc = prometheus.NewDesc("ringback_jobs",
		"Unfinished jobs in the store: scheduled until they are due, ready when due, running under a lease.",
		[]string{"topic", "state"}, nil)
	finishedDesc = prometheus.NewDesc("ringback_jobs_finished",
		"Jobs that ended so and were not revived, kept or not.", []string{"topic", "state"}, nil)
	oldestDesc = prometheus.NewDesc("ringback_oldest_due_seconds",
		"For how long the job that waits longest has been due; 0 when none is due.", []string{"topic"}, nil)
	upDesc = prometheus.NewDesc("ringback_store_up",
		"1 when the store told its counts in time, else 0: then the metrics that come from it are missing.", nil, nil)
	workersDesc = prometheus.NewDesc("ringback_workers",
		"Attempts that this process may have in flight.", nil, nil)
	inFlightDesc = prometheus.NewDesc("ringback_in_flight",
		"Attempts of this process that are claimed, asked for, or not settled yet.", nil, nil)
	openDesc = prometheus.NewDesc("ringback_lanes_open",
		"Lanes whose breaker is open, or waits for its probe.", []string{"topic"}, nil)
)

// gauges is the collector of what is read at a scrape. The store is asked at most once in fresh, by one goroutine at a
// time, which no scrape waits for longer than timeout: what it brings later serves the scrapes after it.
type gauges struct {
	topics  *topics
	fresh   time.Duration
	timeout time.Duration
	log     *slog.Logger

	mu      sync.Mutex
	source  Source
	round   *round // the last one that began
	local   []prometheus.Metric
	localAt time.Time
	down    bool // the last round that ended failed
}

// A round is one question to the store. Its metrics are there when done is closed.
type round struct {
	began   time.Time
	done    chan struct{}
	metrics []prometheus.Metric
}

func newGauges(t *topics, fresh, timeout time.Duration, log *slog.Logger) *gauges {
	return &gauges{topics: t, fresh: fresh, timeout: timeout, log: log}
}

func (g *gauges) watch(s Source) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.source, g.round, g.local = s, nil, nil
}

// Describe names the gauges.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{jobsDesc, finishedDesc, oldestDesc, upDesc, workersDesc, inFlightDesc, openDesc} {
		to <- d
	}
}

// Collect gives what is fresh, and asks for what is not.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	local, r := g.latest(time.Now())
	if r == nil {
		return
	}
	counts := down
	if r.wait(g.timeout) {
		counts = r.metrics
	}
	for _, metric := range local {
		to <- metric
	}
	for _, metric := range counts {
		to <- metric
	}
}

// latest brings the pool's part up to date, and begins a round when the last one is too old and has ended; nil: there is
// no source.
func (g *gauges) latest(now time.Time) ([]prometheus.Metric, *round) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.source == nil {
		return nil, nil
	}
	if g.local == nil || now.Sub(g.localAt) >= g.fresh {
		g.local, g.localAt = ofPool(g.source.State()), now
	}
	if g.round == nil || g.round.ended() && now.Sub(g.round.began) >= g.fresh {
		g.round = &round{began: now, done: make(chan struct{})}
		go g.ask(g.source, g.round)
	}
	return g.local, g.round
}

// ask is one round.
func (g *gauges) ask(source Source, r *round) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(context.Background(), g.timeout)
	defer cancel()
	total, rows, err := g.count(ctx, source)
	if r.metrics = down; err == nil {
		r.metrics = g.ofStore(total, rows, time.Now())
	}
	g.mu.Lock()
	changed := g.down != (err != nil)
	g.down = err != nil
	g.mu.Unlock()
	switch {
	case changed && err != nil:
		g.log.Warn("the store does not tell its counts, so the metrics lack them", "err", err)
	case changed:
		g.log.Info("the store tells its counts again")
	}
}

func (r *round) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait tells whether the round ended before it was older than the timeout.
func (r *round) wait(timeout time.Duration) bool {
	if r.ended() {
		return true
	}
	timer := time.NewTimer(timeout - time.Since(r.began))
	defer timer.Stop()
	select {
	case <-r.done:
		return true
	case <-timer.C:
		return false
	}
}
