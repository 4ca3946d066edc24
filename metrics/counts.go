package metrics

import (
	"context"
	"errors"
	"slices"
	"sync"
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

// maxNamespaces bounds the namespaces whose jobs are counted, since each costs calls of the store.
const maxNamespaces = 10

// namespaceCounts are the counts of a namespace: the totals, and those of the topics with their own series.
type namespaceCounts struct {
	namespace string
	total     store.TopicStats
	topics    []store.TopicStats
}

// fetchCounts reads the counts of the first namespaces by name, among them the default one. With an error it returns those
// that it could read, because a namespace may be on a store that is away.
func (g *gauges) fetchCounts(ctx context.Context, source Source) ([]namespaceCounts, error) {
	namespaces, err := source.Namespaces(ctx, "", maxNamespaces)
	if err != nil {
		return nil, err
	}
	names := []string{job.DefaultNamespace}
	for _, n := range namespaces {
		if n.Name != job.DefaultNamespace && len(names) < maxNamespaces {
			names = append(names, n.Name)
		}
	}
	all := make([]namespaceCounts, len(names))
	errs := make([]error, len(names))
	var reads sync.WaitGroup
	for i, name := range names {
		reads.Go(func() { all[i], errs[i] = g.fetchNamespace(ctx, source, name) })
	}
	reads.Wait()
	var read []namespaceCounts
	for i, err := range errs {
		if err == nil {
			read = append(read, all[i])
		}
	}
	return read, errors.Join(errs...)
}

// fetchNamespace reads the counts of a namespace. New topics get series in order of name until the limit is reached.
func (g *gauges) fetchNamespace(ctx context.Context, source Source, namespace string) (c namespaceCounts, err error) {
	c.namespace = namespace
	if c.total, err = source.Totals(ctx, namespace); err != nil {
		return c, err
	}
	for f := (store.StatsFilter{Namespace: namespace, Limit: store.MaxBatch}); g.topics.hasRoom(); {
		page, err := source.TopicStats(ctx, f)
		if err != nil {
			return c, err
		}
		for _, row := range page {
			g.topics.of(namespace, row.Topic)
		}
		if len(page) < f.Limit {
			break
		}
		f.After = page[len(page)-1].Topic
	}
	for names := range slices.Chunk(g.topics.names(namespace), store.MaxBatch) {
		part, err := source.TopicStats(ctx, store.StatsFilter{Namespace: namespace, Topics: names})
		if err != nil {
			return c, err
		}
		c.topics = append(c.topics, part...)
	}
	return c, nil
}

// storeGauges returns the gauges of namespaces. complete says that none is missing.
func storeGauges(counts []namespaceCounts, complete bool, now time.Time) []prometheus.Metric {
	if !complete && len(counts) == 0 {
		return storeDownMetrics
	}
	up := 0.
	if complete {
		up = 1
	}
	all := []prometheus.Metric{gaugeOf(upDesc, up)}
	for i := range counts {
		all = counts[i].appendGauges(all, now)
	}
	return all
}

// appendGauges appends the gauges of a namespace. The other topics' values are the totals less those of topics.
func (c *namespaceCounts) appendGauges(all []prometheus.Metric, now time.Time) []prometheus.Metric {
	all = slices.Grow(all, 8*len(c.topics)+8)
	add := func(topic string, s store.TopicStats) {
		age := time.Duration(0)
		if !s.OldestDue.IsZero() {
			age = max(0, now.Sub(s.OldestDue))
		}
		all = append(all,
			gaugeOf(jobsDesc, float64(s.Scheduled), c.namespace, topic, string(job.Scheduled)),
			gaugeOf(jobsDesc, float64(s.Ready), c.namespace, topic, string(job.Ready)),
			gaugeOf(jobsDesc, float64(s.Running), c.namespace, topic, string(job.Running)),
			gaugeOf(finishedDesc, float64(s.Delivered), c.namespace, topic, string(job.Delivered)),
			gaugeOf(finishedDesc, float64(s.Dead), c.namespace, topic, string(job.Dead)),
			gaugeOf(finishedDesc, float64(s.Cancelled), c.namespace, topic, string(job.Cancelled)),
			gaugeOf(oldestDesc, age.Seconds(), c.namespace, topic),
			gaugeOf(openDesc, float64(s.OpenBreakers), c.namespace, topic),
		)
	}
	rest := c.total
	for _, row := range c.topics {
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
		add(other, rest)
	}
	return all
}

// poolGauges returns the gauges of the pool's state.
func poolGauges(s pool.State) []prometheus.Metric {
	return []prometheus.Metric{
		gaugeOf(workersDesc, float64(s.Workers)), gaugeOf(inFlightDesc, float64(s.InFlight)),
	}
}
