package metrics

import "github.com/ringback/ringback/store"

// registerWorkMetrics registers the counter of bulk work.
func (m *Metrics) registerWorkMetrics() {
	m.work = m.counter("ringback_work_jobs_total",
		"Jobs that bulk work has treated in this process, by its action and by outcome.", "action", "outcome")
}

// WorkTreated counts jobs that bulk work has treated.
func (m *Metrics) WorkTreated(action store.WorkAction, done, failed, skipped int64) {
	for outcome, n := range map[string]int64{"done": done, "failed": failed, "skipped": skipped} {
		m.work.WithLabelValues(string(action), outcome).Add(float64(max(0, n)))
	}
}
