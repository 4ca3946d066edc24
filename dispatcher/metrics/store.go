package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/store"
)

// The outcomes of a call of the store.
const (
	succeeded   = "ok"
	rejected    = "refused"     // caused by the caller
	unavailable = "unavailable" // the store is unreachable, read-only or timed out
	errored     = "error"       // any other error
)

// callBuckets are in seconds.
var callBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// storeSeries are the series of the store.
type storeSeries struct {
	settlements  [settlementOutcomes]prometheus.Counter
	moved        prometheus.Counter
	leaseExpired prometheus.Counter
	outbox       prometheus.Counter
	clockAhead   prometheus.Counter
	clockBack    prometheus.Counter
	sweptJobs    prometheus.Counter
	sweptIDs     prometheus.Counter
}

// registerStoreMetrics registers the metrics of the store.
func (m *Metrics) registerStoreMetrics() {
	m.calls = m.histogram("ringback_store_seconds",
		"Duration of calls of the store, except waits for wake-ups. Outcome refused is caused by the caller: no such "+
			"job, another version or state, a lost lease, another leader, or a cancelled call.",
		callBuckets, "store", "method", "outcome")
	settlements := m.counter("ringback_settlements_total",
		"Settlements of this process by outcome: ends of attempts (recorded) and longer leases (extended). Attempts "+
			"with a lost lease are repeated.",
		"outcome")
	moves := m.counter("ringback_carrier_moves_total",
		"Jobs that this process's carrier moved to ready, returned from expired leases (lease_expired), or took from "+
			"the outbox.", "what")
	swept := m.counter("ringback_swept_total",
		"Ended jobs that this process removed by retention, and ids whose id window ended.", "what")
	clockSteps := m.counter("ringback_clock_steps_total",
		"Steps of the store's clock that this process detected, counted for each shard that it carries.", "direction")
	m.repairs = m.counter("ringback_store_repairs_total",
		"Inconsistencies that this process's carrier repaired after the store had lost writes.", "store", "kind")
	m.waitFailures = m.counter("ringback_wakeup_failures_total", "Failed waits for wake-ups.", "store", "outcome")
	// Created at the start, so that a first event is an increase.
	for what, name := range settlementOutcomeNames {
		m.series.settlements[what] = settlements.WithLabelValues(name)
	}
	m.series.moved = moves.WithLabelValues("moved")
	m.series.leaseExpired = moves.WithLabelValues("lease_expired")
	m.series.outbox = moves.WithLabelValues("outbox")
	m.series.clockAhead = clockSteps.WithLabelValues("ahead")
	m.series.clockBack = clockSteps.WithLabelValues("back")
	m.series.sweptJobs = swept.WithLabelValues("jobs")
	m.series.sweptIDs = swept.WithLabelValues("ids")
}

// storeMetrics are the metrics of one store.
type storeMetrics struct {
	*Metrics

	calls        *prometheus.HistogramVec
	repairs      *prometheus.CounterVec
	waitFailures *prometheus.CounterVec
}

// ofStore returns the metrics of a store. Its series of faults are created at once, so that a first fault is an
// increase.
func (m *Metrics) ofStore(name string) *storeMetrics {
	labels := prometheus.Labels{"store": name}
	s := &storeMetrics{
		Metrics: m, repairs: m.repairs.MustCurryWith(labels), waitFailures: m.waitFailures.MustCurryWith(labels),
	}
	s.calls, _ = m.calls.MustCurryWith(labels).(*prometheus.HistogramVec) // not as an interface, which would allocate
	for _, kind := range store.RepairKinds() {
		s.repairs.WithLabelValues(string(kind))
	}
	s.waitFailures.WithLabelValues(unavailable)
	s.waitFailures.WithLabelValues(errored)
	return s
}

// observeCall records the duration and outcome of a call of a method of the store. It is deferred: err is set by then.
func (m *storeMetrics) observeCall(ctx context.Context, method string, began time.Time, err *error) {
	m.calls.WithLabelValues(method, callOutcome(ctx, *err)).Observe(time.Since(began).Seconds())
}

// callOutcome classifies the error of a call. A cancelled context is the caller's doing, an exceeded deadline the
// store's.
func callOutcome(ctx context.Context, err error) string {
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
	case errors.Is(ctx.Err(), context.Canceled) &&
		(errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))):
		return rejected
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded),
		errors.Is(ctx.Err(), context.DeadlineExceeded):
		return unavailable
	default:
		return errored
	}
}
