package metrics

import "github.com/prometheus/client_golang/prometheus"

const (
	MaxTopics  = maxTopics
	MaxScrapes = maxScrapes
)

// Registry returns the registry of the handler.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
