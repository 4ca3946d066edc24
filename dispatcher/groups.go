package dispatcher

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Groups counts the jobs that a filter selects by some of their fields. The limits and the position of the filter are
// ignored.
func (d *Dispatcher) Groups(ctx context.Context, filter store.Filter, by store.GroupBy) (store.Groups, error) {
	filter.Limit, filter.ScanLimit = store.MaxListLimit, scanLimit
	return countJobs(ctx, d.store, filter, by)
}

// GroupIDs counts the jobs that ids name, and that are in one of some states, by some of their fields.
func (d *Dispatcher) GroupIDs(
	ctx context.Context, namespace string, ids []string, states []job.State, by store.GroupBy,
) (store.Groups, error) {
	return countIDs(ctx, d.store, namespace, ids, states, by)
}

// GroupReplay counts the jobs that a replay would make now, by some of their fields.
func (d *Dispatcher) GroupReplay(
	ctx context.Context, namespace string, o store.WorkOrder, by store.GroupBy,
) (store.Groups, error) {
	c, next := newCounter(by), d.worker().PreviewReplay(namespace, o)
	err := c.readInTurns(ctx, store.MaxListLimit, func(int) (int, bool, error) {
		queues, more, err := next(ctx)
		for _, q := range queues {
			c.add(&job.Job{Spec: job.Spec{Queue: q}})
		}
		return len(queues), more, err
	})
	if err != nil {
		return store.Groups{}, err
	}
	return c.sorted(), nil
}
