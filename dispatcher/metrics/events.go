package metrics

// registerEventMetrics registers the counters of events.
func (m *Metrics) registerEventMetrics() {
	m.events = m.counter("ringback_events_total",
		"Events whose lanes have got their jobs, in this process, by outcome.", "namespace", "topic", "outcome")
	m.eventJobs = m.counter("ringback_event_jobs_total",
		"Jobs of the events whose lanes have got their jobs, in this process.", "namespace", "topic")
}

// EventExpanded counts an event that has ended, and its jobs. refused is the number of lanes whose job was refused.
func (m *Metrics) EventExpanded(namespace, topic string, jobs int64, refused int) {
	t, outcome := m.topics.of(namespace, topic), "sent"
	switch {
	case jobs == 0 && refused > 0:
		outcome = "refused"
	case jobs == 0:
		outcome = "unsubscribed"
	}
	m.events.WithLabelValues(t.namespace, t.topic, outcome).Inc()
	m.eventJobs.WithLabelValues(t.namespace, t.topic).Add(float64(jobs))
}
