package dispatcher

import (
	"context"
	"time"

	"github.com/ringback/ringback/store"
)

// The budget of a list.
const (
	// listTime is the time after which a page is returned although it is not full.
	listTime = time.Second
	// scanLimit is the number of jobs that a shard looks at in one call.
	scanLimit = 5_000
)

// List returns a page of the jobs that a filter selects. It is full unless it is the last, or took longer than listTime.
// filter.ScanLimit is ignored. Jobs read before an error are returned instead of the error.
func (d *Dispatcher) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	page, err := d.fill(ctx, filter)
	d.setCallbackIDs(ctx, page.Jobs)
	return page, err
}

func (d *Dispatcher) fill(ctx context.Context, filter store.Filter) (store.Page, error) {
	limit, until := filter.Limit, time.Now().Add(listTime)
	filter.ScanLimit = scanLimit
	var all store.Page
	for {
		filter.Limit = limit - len(all.Jobs)
		page, err := d.store.List(ctx, filter)
		if err != nil && len(all.Jobs) == 0 {
			return store.Page{}, err
		}
		if err != nil {
			return all, nil
		}
		all.Jobs = append(all.Jobs, page.Jobs...)
		all.Scanned += page.Scanned
		all.Reached, all.More = page.Reached, page.More
		if !all.More || len(all.Jobs) >= limit || !time.Now().Before(until) {
			return all, nil
		}
		filter.After = page.Reached
	}
}
