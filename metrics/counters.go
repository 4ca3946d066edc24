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
	leaseLost
	settleFailed
	settlementOutcomes
)

var settlementOutcomeNames = [settlementOutcomes]string{recorded: "recorded", leaseLost: "lease_lost", settleFailed: "failed"}

// reasons are the reasons of an end by number: 0 for delivered, then those of dead jobs, the last for unknown ones.
var reasons = func() []string {
	all := []string{"none"}
	for _, reason := range policy.Reasons() {
		all = append(all, string(reason))
	}
	return append(all, "other")
}()

var reasonNumbers = func() map[policy.Reason]int {
	numbers := make(map[policy.Reason]int)
	for i, reason := range policy.Reasons() {
		numbers[reason] = 1 + i
	}
	return numbers
}()

// countInserts counts the results of an Insert. Consecutive entries of one topic are counted together.
func (m *Metrics) countInserts(entries []store.NewJob, results []store.InsertResult, err error) {
	for start := 0; start < len(entries); {
		topic := entries[start].Topic
		var counts [insertOutcomes]int
		i := start
		for ; i < len(entries) && entries[i].Topic == topic; i++ {
			outcome := 0
			if err == nil && i < len(results) && int(results[i].Outcome) < insertOutcomes {
				outcome = int(results[i].Outcome)
			}
			counts[outcome]++
		}
		start = i
		t := m.topics.of(topic)
		for outcome, n := range counts {
			if n == 0 {
				continue
			}
			series := t.inserted[outcome].get()
			if series == nil {
				series = t.inserted[outcome].set(m.inserted.WithLabelValues(t.label, insertOutcomeNames[outcome]))
			}
			(*series).Add(float64(n))
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
	t := m.topics.of(item.Queue.Topic)
	ends := t.ends.get()
	if ends == nil {
		ends = t.ends.set(m.newEndCounters(t.label))
	}
	switch item.Verdict.Kind {
	case policy.Delivered:
		(*ends)[0].Inc()
	case policy.Dead:
		reason, known := reasonNumbers[item.Verdict.Reason]
		if !known {
			reason = len(reasons) - 1
		}
		(*ends)[reason].Inc()
	default:
	}
}

// newEndCounters creates all series of a topic's ends at its first settlement, so that a first death is an increase.
func (m *Metrics) newEndCounters(label string) []prometheus.Counter {
	ends := make([]prometheus.Counter, len(reasons))
	for i, reason := range reasons {
		state := job.Dead
		if i == 0 {
			state = job.Delivered
		}
		ends[i] = m.ends.WithLabelValues(label, string(state), reason)
	}
	return ends
}

// countWaitFailure counts a failed wait for a wake-up, unless its caller cancelled it.
func (m *Metrics) countWaitFailure(ctx context.Context, err error) {
	switch callOutcomeOf(ctx, err) {
	case unavailable:
		m.series.waitUnavailable.Inc()
	case errored:
		m.series.waitErrors.Inc()
	default:
	}
}
