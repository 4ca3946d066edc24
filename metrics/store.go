package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/store"
)

// method is an instrumented method of the store.
type method int

const (
	insert method = iota
	lead
	extend
	release
	carry
	notify
	claim
	claimExpired
	settle
	cancel
	replace
	revive
	purge
	get
	known
	list
	topicStats
	totals
	laneStats
	sweep
	repair
	putTopic
	getTopics
	topicsRead
	putLane
	getLanes
	listLanes
	permit
	alarm
	ping
	methods
)

var methodNames = [methods]string{
	insert: "insert", lead: "lead", extend: "extend", release: "release", carry: "carry", notify: "notify", claim: "claim",
	claimExpired: "claim_expired",
	settle:       "settle", cancel: "cancel", replace: "replace", revive: "revive", purge: "purge", get: "get", known: "known",
	list: "list", topicStats: "topic_stats", totals: "totals", laneStats: "lane_stats", sweep: "sweep", repair: "repair",
	putTopic: "put_topic", getTopics: "get_topics", topicsRead: "topics",
	putLane: "put_lane", getLanes: "get_lanes", listLanes: "list_lanes", permit: "permit", alarm: "alarm",
	ping: "ping",
}

// callOutcome is the outcome of a call of the store.
type callOutcome int

const (
	succeeded   callOutcome = iota
	rejected                // caused by the caller
	unavailable             // the store is unreachable, read-only or timed out
	errored                 // any other error
	callOutcomes
)

var callOutcomeNames = [callOutcomes]string{succeeded: "ok", rejected: "refused", unavailable: "unavailable", errored: "error"}

// callBuckets are in seconds.
var callBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// storeSeries are the series of the store.
type storeSeries struct {
	calls           [methods][callOutcomes]lazySeries[prometheus.Observer]
	waitUnavailable prometheus.Counter
	waitErrors      prometheus.Counter
	settlements     [settlementOutcomes]prometheus.Counter
	moved           prometheus.Counter
	lapsed          prometheus.Counter
	outbox          prometheus.Counter
	clockAhead      prometheus.Counter
	clockBack       prometheus.Counter
	sweptJobs       prometheus.Counter
	sweptIDs        prometheus.Counter
}

// registerStoreMetrics registers the metrics of the store.
func (m *Metrics) registerStoreMetrics() {
	m.calls = m.histogram("ringback_store_seconds",
		"Duration of calls of the store, except waits for wake-ups. Outcome refused is caused by the caller: no such job, another version or state, a lost lease, another leader, or a cancelled call.",
		callBuckets, "method", "outcome")
	settlements := m.counter("ringback_settlements_total",
		"Settlements of this process by outcome. Attempts with a lost lease are repeated.",
		"outcome")
	moves := m.counter("ringback_carrier_moves_total",
		"Jobs that this process's carrier moved to ready, returned from expired leases (lapsed), or took from the outbox.", "what")
	swept := m.counter("ringback_swept_total",
		"Ended jobs that this process removed by retention, and ids whose id window ended.", "what")
	clockSteps := m.counter("ringback_clock_steps_total",
		"Steps of the store's clock that this process detected, counted for each shard that it carries.", "direction")
	m.repairs = m.counter("ringback_store_repairs_total",
		"Inconsistencies that this process's carrier repaired after the store had lost writes.", "kind")
	wakeups := m.counter("ringback_wakeup_failures_total", "Failed waits for wake-ups.", "outcome")
	// Created at the start, so that a first event is an increase.
	for what, name := range settlementOutcomeNames {
		m.series.settlements[what] = settlements.WithLabelValues(name)
	}
	for _, kind := range store.RepairKinds() {
		m.repairs.WithLabelValues(string(kind))
	}
	m.series.moved = moves.WithLabelValues("moved")
	m.series.lapsed = moves.WithLabelValues("lapsed")
	m.series.outbox = moves.WithLabelValues("outbox")
	m.series.clockAhead = clockSteps.WithLabelValues("ahead")
	m.series.clockBack = clockSteps.WithLabelValues("back")
	m.series.sweptJobs = swept.WithLabelValues("jobs")
	m.series.sweptIDs = swept.WithLabelValues("ids")
	m.series.waitUnavailable = wakeups.WithLabelValues(callOutcomeNames[unavailable])
	m.series.waitErrors = wakeups.WithLabelValues(callOutcomeNames[errored])
}

// observeCall records the duration and outcome of a call of the store.
func (m *Metrics) observeCall(ctx context.Context, what method, began time.Time, err error) {
	outcome := callOutcomeOf(ctx, err)
	series := m.series.calls[what][outcome].get()
	if series == nil {
		series = m.series.calls[what][outcome].set(m.calls.WithLabelValues(methodNames[what], callOutcomeNames[outcome]))
	}
	(*series).Observe(time.Since(began).Seconds())
}

// callOutcomeOf classifies the error of a call. A cancelled context is the caller's doing, an exceeded deadline the
// store's.
func callOutcomeOf(ctx context.Context, err error) callOutcome {
	if err == nil {
		return succeeded
	}
	if _, ok := errors.AsType[*store.StateError](err); ok {
		return rejected
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrVersion),
		errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrNotLeader):
		return rejected
	case errors.Is(ctx.Err(), context.Canceled) && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))):
		return rejected
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return unavailable
	default:
		return errored
	}
}
