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

// storeDownMetrics are the store's metrics while its counts are unavailable.
var storeDownMetrics = []prometheus.Metric{gaugeOf(upDesc, 0)}

func gaugeOf(desc *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
}

// fetchCounts reads the totals and the counts of the topics with their own series. New topics get series in order of name
// until the limit is reached.
func (g *gauges) fetchCounts(ctx context.Context, source Source) (total store.TopicStats, rows []store.TopicStats, err error) {
	if total, err = source.Totals(ctx, job.DefaultNamespace); err != nil {
		return total, nil, err
	}
	for f := (store.StatsFilter{Namespace: job.DefaultNamespace, Limit: store.MaxBatch}); g.topics.hasRoom(); {
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

// storeGauges returns the gauges of topics. The other topics' values are the totals less those of rows.
func (g *gauges) storeGauges(total store.TopicStats, rows []store.TopicStats, now time.Time) []prometheus.Metric {
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
	// The rows are read after the totals, so the difference may be off by changes in between.
	for _, n := range []*int64{&rest.Scheduled, &rest.Ready, &rest.Running, &rest.Delivered, &rest.Dead, &rest.Cancelled, &rest.OpenBreakers} {
		*n = max(0, *n)
	}
	if rest.Registered > 0 {
		add(otherTopics, rest)
	}
	return all
}

// poolGauges returns the gauges of the pool's state.
func poolGauges(s pool.State) []prometheus.Metric {
	return []prometheus.Metric{
		gaugeOf(workersDesc, float64(s.Workers)), gaugeOf(inFlightDesc, float64(s.InFlight)),
	}
}
