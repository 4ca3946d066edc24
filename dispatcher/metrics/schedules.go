package metrics

import "github.com/ringback/ringback/store"

// registerScheduleMetrics registers the counter of the ticks of schedules.
func (m *Metrics) registerScheduleMetrics() {
	m.ticks = m.counter("ringback_ticks_total",
		"Ticks of schedules that have passed in this process, by outcome.", "outcome")
	for _, outcome := range store.TickOutcomes() {
		m.ticks.WithLabelValues(string(outcome))
	}
}

// TicksPassed counts ticks of schedules.
func (m *Metrics) TicksPassed(outcome store.TickOutcome, ticks int64) {
	m.ticks.WithLabelValues(string(outcome)).Add(float64(ticks))
}
