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
