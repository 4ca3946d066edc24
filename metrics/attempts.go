package metrics

import (
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/pool"
)

var _ pool.Observer = (*Metrics)(nil)

// verdicts and outcomes are how many there are of each.
const (
	verdicts = int(policy.Released) + 1 // the zero Kind is "none"
	outcomes = firstClass + classes
	// Outcomes are numbered: 0 is no request, 1 to 9 are the classes of statuses, then come those of errors, the last of
	// which also stands for whatever is not known here.
	noRequest  = 0
	firstClass = 10
	classes    = 23
	unknown    = outcomes - 1
)

// errorClasses are counted by their own names; another counts as policy.ClassOther.
var errorClasses = [classes]policy.ErrorClass{
	policy.ClassDNS, policy.ClassRefused, policy.ClassUnreachable, policy.ClassReset,
	policy.ClassTLS, policy.ClassTLSExpired, policy.ClassTLSName, policy.ClassTLSAuthority, policy.ClassTLSVersion,
	policy.ClassTLSClient, policy.ClassProxy, policy.ClassHTTP, policy.ClassTooLarge,
	policy.ClassTimeoutDial, policy.ClassTimeoutTLS, policy.ClassTimeoutHeaders, policy.ClassTimeoutBody,
	policy.ClassTimeoutSend, policy.ClassBlocked, policy.ClassInvalid, policy.ClassShutdown, policy.ClassLocalResources,
	policy.ClassOther,
}

// classNumbers are the outcomes of the classes.
var classNumbers = func() map[policy.ErrorClass]int {
	numbers := make(map[policy.ErrorClass]int, classes)
	for i, class := range errorClasses {
		numbers[class] = firstClass + i
	}
	return numbers
}()

// outcomeNames are the label's values, by number.
var outcomeNames = func() (names [outcomes]string) {
	names[noRequest] = "none"
	for i := 1; i < firstClass; i++ {
		names[i] = string(rune('0'+i)) + "xx"
	}
	for i, class := range errorClasses {
		names[firstClass+i] = string(class)
	}
	return names
}()

// Buckets in seconds. The ladder's waits do not count as lateness, and no attempt lasts longer than ten minutes.
var (
	latenessBuckets = []float64{
		.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600,
	}
	durationBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600}
)

// ofTopics registers what is counted by topic.
func (m *Metrics) ofTopics() {
	m.attempts = m.counter("ringback_attempts_total",
		"Claimed jobs by the verdict over them and by what came of the request: the class of its status or of its error; none when no request was made.",
		"topic", "verdict", "outcome")
	m.lateness = m.histogram("ringback_lateness_seconds",
		"How long after its due moment, by the store's clock, an attempt began.", latenessBuckets, "topic")
	m.duration = m.histogram("ringback_attempt_duration_seconds",
		"How long an attempt took, from looking up the host's name to the last byte of the answer that was read.",
		durationBuckets, "topic")
	m.inserted = m.counter("ringback_jobs_inserted_total",
		"Jobs that this process gave to the store, callbacks too, by what came of it.", "topic", "outcome")
	m.ends = m.counter("ringback_jobs_ended_total",
		"Jobs whose delivery or death this process had recorded in the store.", "topic", "state", "reason")
}

// Ended counts what became of a claimed job. It takes no lock and no memory.
func (m *Metrics) Ended(e pool.Ended) {
	t := m.topics.of(e.Topic)
	verdict, outcome := int(e.Verdict.Kind), outcomeOf(e.Result)
	if verdict >= verdicts {
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
		return // it says nothing of the receiver: nothing was sent, or we cut it short ourselves
	default:
	}
	took := t.duration.get()
	if took == nil {
		took = t.duration.set(m.duration.WithLabelValues(t.label))
	}
	(*took).Observe(e.Result.Duration.Seconds())
}

// outcomeOf numbers what came of a request; nil: none was made.
func outcomeOf(r *policy.Result) int {
	if r == nil {
		return noRequest
	}
	if r.Class == policy.ClassNone {
		if class := r.Status / 100; class >= 1 && class < firstClass {
			return class
		}
		return unknown
	}
	if number, known := classNumbers[r.Class]; known {
		return number
	}
	return unknown
}
