package metrics

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// mainDownMetrics are the metrics of the main store while its counts are unavailable.
var mainDownMetrics = []prometheus.Metric{gaugeOf(upDesc, 0, job.MainStore)}

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
	work      int64 // unfinished bulk work
}

// storeErrors has the stores by name, each with the error of reading its counts; nil: they could be read.
type storeErrors map[string]error

// add adds the result of a read.
func (s storeErrors) add(name string, err error) { s[name] = errors.Join(s[name], err) }

// fetchCounts reads the counts of the first namespaces by name, among them the default one, and returns those that it
// could read.
func (g *gauges) fetchCounts(ctx context.Context, source Source) ([]namespaceCounts, storeErrors) {
	stores := make(storeErrors)
	var others []store.Readiness
	var reads sync.WaitGroup
	reads.Go(func() { others = source.OtherStores(ctx) })
	found, err := source.CachedNamespaces(ctx, maxNamespaces)
	stores.add(job.MainStore, err)
	namespaces := []job.Namespace{{Name: job.DefaultNamespace, Store: job.MainStore}}
	for _, n := range found {
		if n.Name != job.DefaultNamespace && len(namespaces) < maxNamespaces {
			namespaces = append(namespaces, n)
		}
	}
	all := make([]namespaceCounts, len(namespaces))
	errs := make([]error, len(namespaces))
	for i, n := range namespaces {
		reads.Go(func() { all[i], errs[i] = g.fetchNamespace(ctx, source, n.Name) })
	}
	reads.Wait()
	var read []namespaceCounts
	for i, n := range namespaces {
		if stores.add(cmp.Or(n.Store, job.MainStore), errs[i]); errs[i] == nil {
			read = append(read, all[i])
		}
	}
	for _, o := range others {
		stores.add(o.Store, o.Err)
	}
	return read, stores
}

// fetchNamespace reads the counts of a namespace. New topics get series in order of name until the limit is reached.
func (g *gauges) fetchNamespace(ctx context.Context, source Source, namespace string) (c namespaceCounts, err error) {
	c.namespace = namespace
	if c.total, err = source.Totals(ctx, namespace); err != nil {
		return c, err
	}
	for f := (store.StatsFilter{Namespace: namespace, Limit: store.MaxBatch, NamesOnly: true}); g.topics.hasRoom(); {
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
	for names := range slices.Chunk(append(g.topics.names(namespace), job.WorkTopic), store.MaxBatch) {
		part, err := source.TopicStats(ctx, store.StatsFilter{Namespace: namespace, Topics: names})
		if err != nil {
			return c, err
		}
		c.topics = append(c.topics, part...)
	}
	c.topics = slices.DeleteFunc(c.topics, func(row store.TopicStats) bool {
		if row.Topic != job.WorkTopic {
			return false
		}
		c.work = row.Scheduled + row.Ready + row.Running
		return true // it is not part of the totals
	})
	return c, nil
}

// storeGauges returns the gauges of stores and namespaces.
func storeGauges(counts []namespaceCounts, stores storeErrors, now time.Time) []prometheus.Metric {
	var all []prometheus.Metric
	for name, err := range stores {
		up := 1.
		if err != nil {
			up = 0
		}
		all = append(all, gaugeOf(upDesc, up, name))
	}
	for i := range counts {
		all = counts[i].appendGauges(all, now)
	}
	return all
}

// appendGauges appends the gauges of a namespace. The other topics' values are the totals less those of topics.
func (c *namespaceCounts) appendGauges(all []prometheus.Metric, now time.Time) []prometheus.Metric {
	all = slices.Grow(all, 9*len(c.topics)+10)
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
			gaugeOf(failingDesc, float64(s.LanesFailing), c.namespace, topic),
		)
	}
	all = append(all, gaugeOf(workDesc, float64(c.work), c.namespace))
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
		rest.LanesFailing -= row.LanesFailing
		if row.OldestDue.Equal(rest.OldestDue) {
			rest.OldestDue = time.Time{}
		}
	}
	// The rows are read after the totals, so the difference may be off by changes in between.
	for _, n := range []*int64{
		&rest.Scheduled, &rest.Ready, &rest.Running, &rest.Delivered, &rest.Dead, &rest.Cancelled, &rest.OpenBreakers,
		&rest.LanesFailing,
	} {
		*n = max(0, *n)
	}
	if rest.Registered > 0 {
		add(other, rest)
	}
	return all
}

// localGauges returns the metrics of the process.
func localGauges(source Source) []prometheus.Metric {
	s := source.State()
	listeners, skipped := source.LiveTail()
	return []prometheus.Metric{
		gaugeOf(workersDesc, float64(s.Workers)), gaugeOf(inFlightDesc, float64(s.InFlight)),
		gaugeOf(streamClientsDesc, float64(listeners)), gaugeOf(waitingDesc, float64(source.Waiting())),
		gaugeOf(leaseClientsDesc, float64(source.LeaseClients())),
		prometheus.MustNewConstMetric(streamSkippedDesc, prometheus.CounterValue, float64(skipped)),
	}
}
