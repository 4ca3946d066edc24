package metrics

import (
	"context"
	"slices"
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

// count asks for the totals and for the topics with series of their own, however many topics there are. Topics get series
// in order of name while there is room.
func (g *gauges) count(ctx context.Context, source Source) (total store.TopicStats, rows []store.TopicStats, err error) {
	if total, err = source.Totals(ctx, job.DefaultNamespace); err != nil {
		return total, nil, err
	}
	for f := (store.StatsFilter{Namespace: job.DefaultNamespace, Limit: store.MaxBatch}); g.topics.room(); {
		page, err := source.TopicStats(ctx, f)
		if err != nil {
			return total, nil, err
		}
		for _, row := range page {
			g.topics.of(row.Topic)
		}
		if len(page) < f.Limit {
			break
		}
		f.After = page[len(page)-1].Topic
	}
	for names := range slices.Chunk(g.topics.names(), store.MaxBatch) {
		part, err := source.TopicStats(ctx, store.StatsFilter{Namespace: job.DefaultNamespace, Topics: names})
		if err != nil {
			return total, nil, err
		}
		rows = append(rows, part...)
	}
	return total, rows, nil
}

// ofStore makes gauges of the counts of topics, and of what the others have together: the totals less those.
func (g *gauges) ofStore(total store.TopicStats, rows []store.TopicStats, now time.Time) []prometheus.Metric {
	all := make([]prometheus.Metric, 0, 8*len(rows)+9)
	all = append(all, gaugeOf(upDesc, 1))
	add := func(label string, s store.TopicStats) {
		age := time.Duration(0)
		if !s.OldestDue.IsZero() {
			age = max(0, now.Sub(s.OldestDue))
		}
		all = append(all,
			gaugeOf(jobsDesc, float64(s.Scheduled), label, string(job.Scheduled)),
			gaugeOf(jobsDesc, float64(s.Ready), label, string(job.Ready)),
			gaugeOf(jobsDesc, float64(s.Running), label, string(job.Running)),
			gaugeOf(finishedDesc, float64(s.Delivered), label, string(job.Delivered)),
			gaugeOf(finishedDesc, float64(s.Dead), label, string(job.Dead)),
			gaugeOf(finishedDesc, float64(s.Cancelled), label, string(job.Cancelled)),
			gaugeOf(oldestDesc, age.Seconds(), label),
			gaugeOf(openDesc, float64(s.OpenBreakers), label),
		)
	}
	rest := total
	for _, row := range rows {
		add(row.Topic, row)
		rest.Registered -= row.Registered
		rest.Scheduled -= row.Scheduled
		rest.Ready -= row.Ready
		rest.Running -= row.Running
		rest.Delivered -= row.Delivered
		rest.Dead -= row.Dead
		rest.Cancelled -= row.Cancelled
		rest.OpenBreakers -= row.OpenBreakers
		if row.OldestDue.Equal(rest.OldestDue) {
			rest.OldestDue = time.Time{}
		}
	}
	// The rows are a moment younger than the totals, so what jobs did meanwhile may be missing here.
	for _, n := range []*int64{&rest.Scheduled, &rest.Ready, &rest.Running, &rest.Delivered, &rest.Dead, &rest.Cancelled, &rest.OpenBreakers} {
		*n = max(0, *n)
	}
	if rest.Registered > 0 {
		add(other, rest)
	}
	return all
}

// ofPool makes gauges of how the pool stands.
func ofPool(s pool.State) []prometheus.Metric {
	return []prometheus.Metric{
		gaugeOf(workersDesc, float64(s.Workers)), gaugeOf(inFlightDesc, float64(s.InFlight)),
	}
}
