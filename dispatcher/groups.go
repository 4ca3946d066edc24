package dispatcher

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/store"
)

// The budget of groups.
const (
	// groupTime is the time after which no more jobs are counted.
	groupTime = 2 * time.Second
	// maxGroups is the number of groups after which jobs of further groups are not counted.
	maxGroups = 1000
)

// Groups counts the jobs that a filter selects by some of their fields. The limits and the position of the filter are
// ignored.
func (d *Dispatcher) Groups(ctx context.Context, filter store.Filter, by store.GroupBy) (store.Groups, error) {
	until := time.Now().Add(groupTime)
	filter.After, filter.Limit, filter.ScanLimit = store.Position{}, store.MaxListLimit, scanLimit
	all, at := store.Groups{Exact: true}, make(map[store.GroupKey]int)
	for more := true; more; {
		if !time.Now().Before(until) {
			all.Exact = false
			break
		}
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return store.Groups{}, err
		}
		all.Scanned += page.Scanned
		for i := range page.Jobs {
			j := &page.Jobs[i]
			key := by.Key(j)
			n, known := at[key]
			switch {
			case known:
				all.Groups[n].Count++
			case len(all.Groups) == maxGroups:
				all.Exact = false
			default:
				at[key] = len(all.Groups)
				all.Groups = append(all.Groups, store.Group{GroupKey: key, Count: 1, ID: j.ID, EndedAt: j.FinishedAt})
			}
		}
		filter.After, more = page.Reached, page.More
	}
	slices.SortFunc(all.Groups, func(a, b store.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.Compare(b.GroupKey))
	})
	return all, nil
}
