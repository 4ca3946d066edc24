package metrics

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// Source provides the values of the gauges.
type Source interface {
	// CachedNamespaces returns the first namespaces in order of name. While the main store is down it returns those
	// that it knows, so that those on other stores are counted.
	CachedNamespaces(ctx context.Context, limit int) ([]job.Namespace, error)
	// TopicStats counts the jobs of selected topics, Totals those of all topics.
	TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error)
	Totals(ctx context.Context, namespace string) (store.TopicStats, error)
	// OtherStores says for each store beside main whether its counts can be read.
	OtherStores(ctx context.Context) []store.Readiness
	// State returns the pool's state; zero without a pool.
	State() pool.State
	// LiveTail returns the number of clients that watch live updates, and of the updates that were skipped for them.
	LiveTail() (listeners int, skipped uint64)
	// LeaseClients returns the number of clients that wait for jobs of pulled topics.
	LeaseClients() int
	// Waiting returns the number of requests that wait for the end of a job.
	Waiting() int
}

// Watch sets the source of the gauges, which are missing until then. A second call replaces the source.
func (m *Metrics) Watch(s Source) {
	g := m.gauges
	g.mu.Lock()
	defer g.mu.Unlock()
	g.source, g.round = s, nil
}

// A logSizer is a store with a write-ahead log beside its database.
type logSizer interface{ LogBytes() int64 }

// watchLog shows the size of a store's log from now on, with the other gauges.
func (g *gauges) watchLog(store string, l logSizer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.logs[store] = l
}

// The gauges' descriptions.
var (
	jobsDesc = prometheus.NewDesc("ringback_jobs",
		"Unfinished jobs in the store: scheduled until they are due, ready when due, running under a lease.",
		[]string{"namespace", "topic", "state"}, nil)
	finishedDesc = prometheus.NewDesc("ringback_jobs_finished",
		"Ended jobs that were not revived, including those removed by retention.",
		[]string{"namespace", "topic", "state"}, nil)
	oldestDesc = prometheus.NewDesc("ringback_oldest_due_seconds",
		"How long the oldest unclaimed due job has been due; 0 without due jobs.", []string{"namespace", "topic"}, nil)
	upDesc = prometheus.NewDesc("ringback_store_up",
		"1 if the counts of the store were read in time, else 0: then those of its namespaces are missing.",
		[]string{"store"}, nil)
	logDesc = prometheus.NewDesc("ringback_sqlite_log_bytes",
		"Size of the write-ahead log (-wal) of a SQLite store. It grows while something keeps a snapshot of the "+
			"database.", []string{"store"}, nil)
	workersDesc = prometheus.NewDesc("ringback_workers",
		"Attempts that this process may have in flight.", nil, nil)
	inFlightDesc = prometheus.NewDesc("ringback_in_flight",
		"Attempts of this process that are claimed, requested, or not settled yet.", nil, nil)
	waitingDesc = prometheus.NewDesc("ringback_waiting_requests",
		"Requests of this process that wait for the end of a job.", nil, nil)
	streamClientsDesc = prometheus.NewDesc("ringback_stream_clients",
		"Clients of this process that watch live updates.", nil, nil)
	streamSkippedDesc = prometheus.NewDesc("ringback_stream_skipped_total",
		"Live updates that were not sent to clients of this process, because they were too many, or a client was too "+
			"slow.", nil, nil)
	leaseClientsDesc = prometheus.NewDesc("ringback_lease_clients",
		"Clients of this process that wait for jobs of pulled topics.", nil, nil)
	workDesc = prometheus.NewDesc("ringback_work_unfinished", "Bulk work that has not ended.",
		[]string{"namespace"}, nil)
	openDesc = prometheus.NewDesc("ringback_breakers_open",
		"Breakers that are open, or wait for their probe: one per lane.", []string{"namespace", "topic"}, nil)
	failingDesc = prometheus.NewDesc("ringback_lanes_failing",
		"Lanes whose receiver fails, up to 512 of a namespace.", []string{"namespace", "topic"}, nil)
)

const (
	// gaugesMaxAge is how long the counts of the stores are reused for further scrapes.
	gaugesMaxAge = 5 * time.Second
	// countsTimeout bounds the wait for the stores' counts, and readTimeout the reads, so that those of a store that
	// hangs do not keep back those of the others.
	countsTimeout = 2 * time.Second
	readTimeout   = countsTimeout - 250*time.Millisecond
)

// gauges is the collector of the gauges. The store is read at most once per gaugesMaxAge, by one goroutine at a time. A
// scrape waits for it at most countsTimeout; a later result serves later scrapes.
type gauges struct {
	topics *topics
	log    *slog.Logger

	mu     sync.Mutex
	source Source
	logs   map[string]logSizer // by store
	round  *refreshCall        // the last one that was started
	down   bool                // the last refresh failed
}

// refreshCall is one read of the store's counts. metrics is set when done is closed.
type refreshCall struct {
	began   time.Time
	done    chan struct{}
	metrics []prometheus.Metric
}

// Describe sends the gauges' descriptions.
func (g *gauges) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		jobsDesc, finishedDesc, oldestDesc, upDesc, workersDesc, inFlightDesc, openDesc, failingDesc, workDesc,
		waitingDesc, streamClientsDesc, streamSkippedDesc, leaseClientsDesc, logDesc,
	} {
		to <- d
	}
}

// Collect sends the gauges and starts a refresh if they are too old.
func (g *gauges) Collect(to chan<- prometheus.Metric) {
	local, r := g.latest(time.Now())
	if r == nil {
		return
	}
	counts := mainDownMetrics
	if r.wait() {
		counts = r.metrics
	}
	for _, metric := range local {
		to <- metric
	}
	for _, metric := range counts {
		to <- metric
	}
}

// latest returns the process's gauges and the last refresh, and starts a new one if that is done and too old. nil: no
// source.
func (g *gauges) latest(now time.Time) ([]prometheus.Metric, *refreshCall) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.source == nil {
		return nil, nil
	}
	local := localGauges(g.source)
	for name, l := range g.logs {
		local = append(local, gaugeOf(logDesc, float64(l.LogBytes()), name))
	}
	if g.round == nil || g.round.ended() && now.Sub(g.round.began) >= gaugesMaxAge {
		g.round = &refreshCall{began: now, done: make(chan struct{})}
		go g.refresh(g.source, g.round)
	}
	return local, g.round
}

// refresh reads the store's counts.
func (g *gauges) refresh(source Source, r *refreshCall) {
	defer close(r.done)
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	counts, stores := g.fetchCounts(ctx, source)
	r.metrics = storeGauges(counts, stores, time.Now())
	err := errors.Join(slices.Collect(maps.Values(stores))...)
	g.mu.Lock()
	changed := g.down != (err != nil)
	g.down = err != nil
	g.mu.Unlock()
	switch {
	case changed && err != nil:
		g.log.Warn("reading the store's counts failed; its metrics are missing", "err", err)
	case changed:
		g.log.Info("reading the store's counts works again")
	}
}

func (r *refreshCall) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// wait reports whether the refresh ended within countsTimeout of its start.
func (r *refreshCall) wait() bool {
	if r.ended() {
		return true
	}
	select {
	case <-r.done:
		return true
	case <-time.After(countsTimeout - time.Since(r.began)):
		return false
	}
}
