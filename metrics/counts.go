package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// down is what there is of the store when it does not answer.
var down = []prometheus.Metric{gaugeOf(upDesc, 0)}

func gaugeOf(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// A sum is what the topics under one label have together.
type sum struct {
	store.TopicStats
	oldest time.Duration // for how long the oldest has been due
}

// ofStore makes gauges of the store's counts, those of topics without series of their own added up.
func (g *gauges) ofStore(rows []store.TopicStats, now time.Time) []prometheus.Metric {
	sums := make(map[string]sum)
	for _, row := range rows {
		label := g.topics.of(row.Topic).label
		s := sums[label]
		s.Scheduled += row.Scheduled
		s.Ready += row.Ready
		s.Running += row.Running
		s.Delivered += row.Delivered
		s.Dead += row.Dead
		s.Cancelled += row.Cancelled
		s.Open += row.Open
		if !row.OldestDue.IsZero() {
			s.oldest = max(s.oldest, now.Sub(row.OldestDue))
		}
		sums[label] = s
	}
	all := make([]prometheus.Metric, 0, 8*len(sums)+1)
	all = append(all, gaugeOf(upDesc, 1))
	for label, s := range sums {
		all = append(all,
			gaugeOf(jobsDesc, float64(s.Scheduled), label, string(job.Scheduled)),
			gaugeOf(jobsDesc, float64(s.Ready), label, string(job.Ready)),
			gaugeOf(jobsDesc, float64(s.Running), label, string(job.Running)),
			gaugeOf(finishedDesc, float64(s.Delivered), label, string(job.Delivered)),
			gaugeOf(finishedDesc, float64(s.Dead), label, string(job.Dead)),
			gaugeOf(finishedDesc, float64(s.Cancelled), label, string(job.Cancelled)),
			gaugeOf(oldestDesc, s.oldest.Seconds(), label),
			gaugeOf(openDesc, float64(s.Open), label),
		)
	}
	return all
}

// ofPool makes gauges of how the pool stands.
func ofPool(s pool.State) []prometheus.Metric {
	return []prometheus.Metric{
		gaugeOf(workersDesc, float64(s.Workers)), gaugeOf(inFlightDesc, float64(s.InFlight)),
	}
}
