package dispatcher

import (
	"cmp"
	"context"

	"github.com/ringback/ringback/store"
)

// scanLimit is the number of jobs that a shard looks at in one call of a list.
const scanLimit = 5_000

// List returns a page of the jobs that a filter selects. It is full unless it is the last, or took longer than
// filter.Within. filter.ScanLimit is ignored. Jobs read before an error are returned instead of the error.
func (d *Dispatcher) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	page, err := d.fill(ctx, filter)
	if len(page.Jobs) > 0 {
		err = nil // if it lasts, the next page fails
	}
	d.setCallbackIDs(ctx, page.Jobs)
	d.sealer.VisibleJobs(page.Jobs)
	return page, err
}

// fill reads pages of the store until there are enough jobs. It returns those that were read before an error, too.
func (d *Dispatcher) fill(ctx context.Context, filter store.Filter) (store.Page, error) {
	limit, left := filter.Limit, newBudget(cmp.Or(filter.Within, store.ListTime), scanLimit)
	var all store.Page
	for filter.ScanLimit = left.Next(); filter.ScanLimit > 0; filter.ScanLimit = left.Next() {
		filter.Limit = limit - len(all.Jobs)
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return all, err
		}
		all.Jobs = append(all.Jobs, page.Jobs...)
		all.Scanned += page.Scanned
		all.Reached, all.More = page.Reached, page.More
		if !all.More || len(all.Jobs) >= limit {
			return all, nil
		}
		left.Add(page.Scanned)
		filter.After = page.Reached
	}
	return all, nil
}
