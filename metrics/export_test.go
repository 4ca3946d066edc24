package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry returns the registry of the handler.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
