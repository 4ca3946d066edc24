package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

var _ pool.Observer = (*Metrics)(nil)

// outcomeAccepted is the outcome of a job that a client or a function confirmed.
const outcomeAccepted = "accepted"

const (
	verdictCount  = int(policy.Released) + 1 // the zero Kind is "none"
	statusClasses = 10
	outcomeCount  = statusClasses + 1 + len(policy.ErrorClasses)
)

// outcomes are what an attempt came to: no request, a class of statuses, accepted by a consumer, an error class. Their
// index is the number of an outcome. Unknown ones count as the last. outcomeNumbers are their numbers by name.
var outcomes, outcomeNumbers = func() (names [outcomeCount]string, numbers map[string]int) {
	copy(names[:], []string{"none", "1xx", "2xx", "3xx", "4xx", "5xx", "6xx", "7xx", "8xx", "9xx", outcomeAccepted})
	for i, class := range policy.ErrorClasses {
		names[statusClasses+1+i] = string(class)
	}
	numbers = make(map[string]int, outcomeCount)
	for i, name := range names {
		numbers[name] = i
	}
	return names, numbers
}()

// Buckets in seconds. Lateness excludes the ladder's waits; an attempt lasts at most ten minutes.
var (
	latenessBuckets = []float64{
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
	}
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
)

// registerTopicMetrics registers the metrics with a topic label.
func (m *Metrics) registerTopicMetrics() {
	m.attempts = m.counter("ringback_attempts_total",
		"Claimed jobs by the verdict over them and by what came of the request: the class of its status or of its "+
			"error; none when no request was made.",
		"namespace", "topic", "verdict", "outcome")
	m.lateness = m.histogram("ringback_lateness_seconds",
		"Time from the due time of an attempt to its start, by the store's clock.",
		latenessBuckets, "namespace", "topic")
	m.duration = m.histogram("ringback_attempt_duration_seconds",
		"How long an attempt took, from looking up the host's name to the last byte of the answer that was read.",
		durationBuckets, "namespace", "topic")
	m.inserted = m.counter("ringback_jobs_inserted_total",
		"Jobs that this process gave to the store, callbacks too, by what came of it.", "namespace", "topic", "outcome")
	m.ends = m.counter("ringback_jobs_ended_total",
		"Jobs whose delivery or death this process had recorded in the store.", "namespace", "topic", "state", "reason")
}

// AttemptEnded counts the result of a claimed job. It takes no lock and does not allocate.
func (m *Metrics) AttemptEnded(e pool.AttemptEvent) {
	t := m.topics.of(e.Namespace, e.Topic)
	verdict, outcome := int(e.Verdict.Kind), outcomeOf(e.Result)
	if verdict >= verdictCount {
		verdict = 0
	}
	t.attempts[verdict][outcome].get(func() prometheus.Counter {
		return m.attempts.WithLabelValues(t.namespace, t.topic, policy.Kind(verdict).String(), outcomes[outcome])
	}).Inc()
	if e.Result == nil {
		return
	}
	t.lateness.get(func() prometheus.Observer { return m.lateness.WithLabelValues(t.namespace, t.topic) }).
		Observe(max(e.Late, 0).Seconds())
	switch e.Result.Class {
	case policy.ClassBlocked, policy.ClassInvalid, policy.ClassNoURL, policy.ClassShutdown, policy.ClassLocalResources:
		return // nothing was sent, or this process interrupted the attempt
	default:
	}
	t.duration.get(func() prometheus.Observer { return m.duration.WithLabelValues(t.namespace, t.topic) }).
		Observe(e.Result.Duration.Seconds())
}

// outcomeOf returns the number of a result's outcome; nil: no request was made.
func outcomeOf(r *policy.Result) int {
	if r == nil {
		return 0
	}
	if r.Accepted {
		return outcomeNumbers[outcomeAccepted]
	}
	if class := r.Status / 100; r.Class == policy.ClassNone && class >= 1 && class <= 9 {
		return class
	}
	if number, known := outcomeNumbers[string(r.Class)]; known {
		return number
	}
	return outcomeCount - 1
}
