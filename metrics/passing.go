package metrics

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// insertions are the outcomes of an insertion: those of the store, and 0 for one that failed.
const insertions = int(store.Conflict) + 1

var insertionNames = [insertions]string{
	0: "failed", store.Created: "created", store.Existing: "existing", store.Conflict: "conflict",
}

// What came of a settlement.
const (
	recorded = iota
	leaseLost
	unsettled
	settlings
)

var settlingNames = [settlings]string{recorded: "recorded", leaseLost: "lease_lost", unsettled: "failed"}

// reasons are an end's by number: 0 for a job that was delivered, then those of the dead, the last for any not known here.
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

// insertedAll counts what came of an Insert. Entries of one topic often follow each other.
func (m *Metrics) insertedAll(entries []store.NewJob, results []store.InsertResult, err error) {
	for start := 0; start < len(entries); {
		topic := entries[start].Topic
		var counts [insertions]int
		i := start
		for ; i < len(entries) && entries[i].Topic == topic; i++ {
			outcome := 0
			if err == nil && i < len(results) && int(results[i].Outcome) < insertions {
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
				series = t.inserted[outcome].set(m.inserted.WithLabelValues(t.label, insertionNames[outcome]))
			}
			(*series).Add(float64(n))
		}
	}
}

// settledAll counts what came of a Settle, and the ends among what it recorded. errs is nil when the call failed.
func (m *Metrics) settledAll(items []store.Settlement, errs []error) {
	var counts [settlings]int
	for i := range items {
		switch {
		case i >= len(errs):
			counts[unsettled]++
		case errs[i] == nil:
			counts[recorded]++
			m.recordedOne(&items[i])
		case errors.Is(errs[i], store.ErrLeaseLost):
			counts[leaseLost]++
		default:
			counts[unsettled]++
		}
	}
	for what, n := range counts {
		m.series.settlements[what].Add(float64(n))
	}
}

// recordedOne counts a settlement that ends its job. One that a cancel mark turned into a cancellation is not told apart.
func (m *Metrics) recordedOne(item *store.Settlement) {
	t := m.topics.of(item.Queue.Topic)
	ends := t.ends.get()
	if ends == nil {
		ends = t.ends.set(m.endsOf(t.label))
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

// endsOf makes the series of a topic's ends, all of them at its first settlement: a first death is then seen as an
// increase.
func (m *Metrics) endsOf(label string) []prometheus.Counter {
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

// bellFailed counts a wait for the bell that ended in a fault; one whose caller went away is none.
func (m *Metrics) bellFailed(ctx context.Context, err error) {
	switch callOutcomeOf(ctx, err) {
	case unavailable:
		m.series.bellAway.Inc()
	case failed:
		m.series.bellFaults.Inc()
	default:
	}
}
