package metrics

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/store"
)

// A method of the store that is timed.
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
	edit
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
	settle:       "settle", cancel: "cancel", edit: "edit", revive: "revive", purge: "purge", get: "get", known: "known",
	list: "list", topicStats: "topic_stats", totals: "totals", laneStats: "lane_stats", sweep: "sweep", repair: "repair",
	putTopic: "put_topic", topicsRead: "topics",
	putLane: "put_lane", getLanes: "get_lanes", listLanes: "list_lanes", permit: "permit", alarm: "alarm",
	ping: "ping",
}

// A callOutcome is what came of a call of the store.
type callOutcome int

const (
	answered    callOutcome = iota
	refused                 // for a reason of the caller's
	unavailable             // the store cannot be reached or takes no writes, or gave no answer in the caller's time
	failed                  // anything else: a fault to look into
	callOutcomes
)

var callOutcomeNames = [callOutcomes]string{answered: "ok", refused: "refused", unavailable: "unavailable", failed: "error"}

// callBuckets are in seconds.
var callBuckets = []float64{
	.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10,
}

// storeSeries are the series of the store that are in use.
type storeSeries struct {
	calls       [methods][callOutcomes]lazy[prometheus.Observer]
	bellAway    prometheus.Counter
	bellFaults  prometheus.Counter
	settlements [settlings]prometheus.Counter
	moved       prometheus.Counter
	lapsed      prometheus.Counter
	outbox      prometheus.Counter
	clockAhead  prometheus.Counter
	clockBack   prometheus.Counter
	sweptJobs   prometheus.Counter
	sweptIDs    prometheus.Counter
}

// ofStore registers what is measured of the store.
func (m *Metrics) ofStore() {
	m.calls = m.histogram("ringback_store_seconds",
		"How long the store's answers took, waiting for the bell left out. Refused is a caller's own doing: no such job, another version or state, a lost lease, another leader, or a caller that went away.",
		callBuckets, "method", "outcome")
	settlements := m.counter("ringback_settlements_total",
		"Ends of attempts that this process had the store record, by what came of it. Those with a lost lease are attempts that are repeated.",
		"outcome")
	carried := m.counter("ringback_carried_total",
		"Jobs that this process's carrier moved to ready, took back from lapsed leases, or was given from the outbox.", "what")
	swept := m.counter("ringback_swept_total",
		"Ended jobs that retention removed, and ids that were forgotten, by this process.", "what")
	clockSteps := m.counter("ringback_clock_steps_total",
		"Steps of the store's clock that this process's carriers found, one for each shard that it carries.", "direction")
	m.repairs = m.counter("ringback_store_repairs_total",
		"What this process's carrier found wrong in the store, after the store had lost writes, and repaired.", "kind")
	bell := m.counter("ringback_bell_failures_total", "Waits for the bell that ended in a fault.", "outcome")
	// These are there from the start, so that the first of them is seen as an increase.
	for what, name := range settlingNames {
		m.series.settlements[what] = settlements.WithLabelValues(name)
	}
	for _, kind := range store.RepairKinds() {
		m.repairs.WithLabelValues(string(kind))
	}
	m.series.moved = carried.WithLabelValues("moved")
	m.series.lapsed = carried.WithLabelValues("lapsed")
	m.series.outbox = carried.WithLabelValues("outbox")
	m.series.clockAhead = clockSteps.WithLabelValues("ahead")
	m.series.clockBack = clockSteps.WithLabelValues("back")
	m.series.sweptJobs = swept.WithLabelValues("jobs")
	m.series.sweptIDs = swept.WithLabelValues("ids")
	m.series.bellAway = bell.WithLabelValues(callOutcomeNames[unavailable])
	m.series.bellFaults = bell.WithLabelValues(callOutcomeNames[failed])
}

// called times a call of the store that has ended.
func (m *Metrics) called(ctx context.Context, what method, began time.Time, err error) {
	outcome := callOutcomeOf(ctx, err)
	series := m.series.calls[what][outcome].get()
	if series == nil {
		series = m.series.calls[what][outcome].set(m.calls.WithLabelValues(methodNames[what], callOutcomeNames[outcome]))
	}
	(*series).Observe(time.Since(began).Seconds())
}

// callOutcomeOf tells a caller's own doing from the store's. A caller that went away has cancelled its context; one whose
// time ran out has waited in vain.
func callOutcomeOf(ctx context.Context, err error) callOutcome {
	if err == nil {
		return answered
	}
	if _, ok := errors.AsType[*store.StateError](err); ok {
		return refused
	}
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrVersion),
		errors.Is(err, store.ErrLeaseLost), errors.Is(err, store.ErrNotLeader):
		return refused
	case errors.Is(ctx.Err(), context.Canceled) && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))):
		return refused
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, context.DeadlineExceeded), errors.Is(ctx.Err(), context.DeadlineExceeded):
		return unavailable
	default:
		return failed
	}
}
