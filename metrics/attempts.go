package metrics

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

var _ pool.Observer = (*Metrics)(nil)

// Numbers of verdicts and outcomes.
const (
	verdictCount = int(policy.Released) + 1 // the zero Kind is "none"
	outcomeCount = firstClass + classCount
	// Outcomes are numbered: 0 is no request, 1 to 9 are classes of statuses, then the error classes. The last one is also
	// used for unknown error classes.
	noRequest      = 0
	firstClass     = 10
	classCount     = 23
	unknownOutcome = outcomeCount - 1
)

// errorClasses are the error classes with their own series. Others count as policy.ClassOther.
var errorClasses = [classCount]policy.ErrorClass{
	policy.ClassDNS, policy.ClassRefused, policy.ClassUnreachable, policy.ClassReset,
	policy.ClassTLS, policy.ClassTLSExpired, policy.ClassTLSName, policy.ClassTLSAuthority, policy.ClassTLSVersion,
	policy.ClassTLSClient, policy.ClassProxy, policy.ClassHTTP, policy.ClassTooLarge,
	policy.ClassTimeoutDial, policy.ClassTimeoutTLS, policy.ClassTimeoutHeaders, policy.ClassTimeoutBody,
	policy.ClassTimeoutSend, policy.ClassBlocked, policy.ClassInvalid, policy.ClassShutdown, policy.ClassLocalResources,
	policy.ClassOther,
}

// classNumbers maps error classes to outcomes.
var classNumbers = func() map[policy.ErrorClass]int {
	numbers := make(map[policy.ErrorClass]int, classCount)
	for i, class := range errorClasses {
		numbers[class] = firstClass + i
	}
	return numbers
}()

// outcomeNames are the label values by outcome.
var outcomeNames = func() (names [outcomeCount]string) {
	names[noRequest] = "none"
	for i := 1; i < firstClass; i++ {
		names[i] = string(rune('0'+i)) + "xx"
	}
	for i, class := range errorClasses {
		names[firstClass+i] = string(class)
	}
	return names
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
		"Claimed jobs by the verdict over them and by what came of the request: the class of its status or of its error; none when no request was made.",
		"topic", "verdict", "outcome")
	m.lateness = m.histogram("ringback_lateness_seconds",
		"Time from the due time of an attempt to its start, by the store's clock.", latenessBuckets, "topic")
	m.duration = m.histogram("ringback_attempt_duration_seconds",
		"How long an attempt took, from looking up the host's name to the last byte of the answer that was read.",
		durationBuckets, "topic")
	m.inserted = m.counter("ringback_jobs_inserted_total",
		"Jobs that this process gave to the store, callbacks too, by what came of it.", "topic", "outcome")
	m.ends = m.counter("ringback_jobs_ended_total",
		"Jobs whose delivery or death this process had recorded in the store.", "topic", "state", "reason")
}

// Ended counts the result of a claimed job. It takes no lock and does not allocate.
func (m *Metrics) Ended(e pool.Ended) {
	t := m.topics.of(e.Topic)
	verdict, outcome := int(e.Verdict.Kind), outcomeOf(e.Result)
	if verdict >= verdictCount {
		verdict = 0
	}
	count := t.attempts[verdict][outcome].get()
	if count == nil {
		count = t.attempts[verdict][outcome].set(
			m.attempts.WithLabelValues(t.label, policy.Kind(verdict).String(), outcomeNames[outcome]))
	}
	(*count).Inc()
	if e.Result == nil {
		return
	}
	late := t.lateness.get()
	if late == nil {
		late = t.lateness.set(m.lateness.WithLabelValues(t.label))
	}
	(*late).Observe(max(e.Late, 0).Seconds())
	switch e.Result.Class {
	case policy.ClassBlocked, policy.ClassInvalid, policy.ClassShutdown, policy.ClassLocalResources:
		return // nothing was sent, or this process interrupted the attempt
	default:
	}
	took := t.duration.get()
	if took == nil {
		took = t.duration.set(m.duration.WithLabelValues(t.label))
	}
	(*took).Observe(e.Result.Duration.Seconds())
}

// outcomeOf returns the outcome of a result; nil: no request was made.
func outcomeOf(r *policy.Result) int {
	if r == nil {
		return noRequest
	}
	if r.Class == policy.ClassNone {
		if class := r.Status / 100; class >= 1 && class < firstClass {
			return class
		}
		return unknownOutcome
	}
	if number, known := classNumbers[r.Class]; known {
		return number
	}
	return unknownOutcome
}
