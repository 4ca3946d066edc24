package metrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// insertOutcomes is the number of outcomes of an insertion: those of the store, and 0 for a failed call.
const insertOutcomes = int(store.Conflict) + 1

var insertOutcomeNames = [insertOutcomes]string{
	0: "failed", store.Created: "created", store.Existing: "existing", store.Conflict: "conflict",
}

// The outcomes of a settlement.
const (
	recorded = iota
	extended
	leaseLost
	settleFailed
	settlementOutcomes
)

var settlementOutcomeNames = [settlementOutcomes]string{
	recorded: "recorded", extended: "extended", leaseLost: "lease_lost", settleFailed: "failed",
}

// The labels of an end whose reason is not one of policy.Reasons.
const (
	noReason    policy.Reason = "none" // delivered
	otherReason policy.Reason = "other"
)

// countInserts counts the results of an Insert. Consecutive entries of one topic are counted together.
func (m *Metrics) countInserts(entries []store.NewJob, results []store.InsertResult, err error) {
	for start := 0; start < len(entries); {
		namespace, topic := entries[start].Namespace, entries[start].Topic
		var counts [insertOutcomes]int
		i := start
		for ; i < len(entries) && entries[i].Topic == topic && entries[i].Namespace == namespace; i++ {
			outcome := 0
			if err == nil && i < len(results) && int(results[i].Outcome) < insertOutcomes {
				outcome = int(results[i].Outcome)
			}
			counts[outcome]++
		}
		start = i
		t := m.topics.of(namespace, topic)
		for outcome, n := range counts {
			if n == 0 {
				continue
			}
			t.inserted[outcome].get(func() prometheus.Counter {
				return m.inserted.WithLabelValues(t.namespace, t.topic, insertOutcomeNames[outcome])
			}).Add(float64(n))
		}
	}
}

// countSettlements counts the results of a Settle and the recorded ends. errs is nil if the call failed.
func (m *Metrics) countSettlements(items []store.Settlement, errs []error) {
	var counts [settlementOutcomes]int
	for i := range items {
		switch {
		case i >= len(errs):
			counts[settleFailed]++
		case errs[i] == nil && items[i].Extend > 0, errors.Is(errs[i], store.ErrCancelRequested):
			counts[extended]++
		case errs[i] == nil:
			counts[recorded]++
			m.countEnd(&items[i])
		case errors.Is(errs[i], store.ErrLeaseLost):
			counts[leaseLost]++
		default:
			counts[settleFailed]++
		}
	}
	for what, n := range counts {
		m.series.settlements[what].Add(float64(n))
	}
}

// countEnd counts a settlement that ends its job, also if a requested cancellation changed its state.
func (m *Metrics) countEnd(item *store.Settlement) {
	t := m.topics.of(item.Queue.Namespace, item.Queue.Topic)
	ends := t.ends.get(func() map[policy.Reason]prometheus.Counter { return m.newEndCounters(t.topicName) })
	switch item.Verdict.Kind {
	case policy.Delivered:
		ends[noReason].Inc()
	case policy.Dead:
		count, known := ends[item.Verdict.Reason]
		if !known {
			count = ends[otherReason]
		}
		count.Inc()
	default:
	}
}

// newEndCounters creates all series of a topic's ends at its first settlement, so that a first death is an increase.
func (m *Metrics) newEndCounters(name topicName) map[policy.Reason]prometheus.Counter {
	ends := map[policy.Reason]prometheus.Counter{
		noReason: m.ends.WithLabelValues(name.namespace, name.topic, string(job.Delivered), string(noReason)),
	}
	for _, reason := range append(policy.Reasons(), otherReason) {
		ends[reason] = m.ends.WithLabelValues(name.namespace, name.topic, string(job.Dead), string(reason))
	}
	return ends
}

// countWaitFailure counts a failed wait for a wake-up, unless its caller cancelled it.
func (m *storeMetrics) countWaitFailure(ctx context.Context, err error) {
	if outcome := callOutcome(ctx, err); outcome == unavailable || outcome == errored {
		m.waitFailures.WithLabelValues(outcome).Inc()
	}
}
