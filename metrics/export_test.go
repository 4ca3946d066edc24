package metrics

import "github.com/prometheus/client_golang/prometheus"

// Registry is what the handler serves.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
