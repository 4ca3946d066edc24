// This part of the package counts jobs by some of their fields, within a time and a number of groups.

package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// The budget of groups.
const (
	// groupTime is the time after which no more jobs are counted, unless GroupBy.Within says otherwise.
	groupTime = 2 * time.Second
	// maxGroups is the number of groups after which jobs of further groups are not counted.
	maxGroups = 1000
)

// groupJobs is the part of the store that is counted.
type groupJobs interface {
	List(ctx context.Context, filter store.Filter) (store.Page, error)
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
}

// countJobs counts the jobs that a filter selects by some of their fields. The position of the filter is ignored; its
// limits bound a page.
func countJobs(ctx context.Context, jobs groupJobs, filter store.Filter, by store.GroupBy) (store.Groups, error) {
	left := newBudget(cmp.Or(by.Within, groupTime), filter.ScanLimit)
	filter.After = store.Position{}
	c := newCounter(by)
	for more := true; more; {
		if filter.ScanLimit = left.Next(); filter.ScanLimit == 0 {
			c.Exact = false
			break
		}
		var page store.Page
		err := inTurn(by, func() (err error) { page, err = jobs.List(ctx, filter); return err })
		if err != nil {
			return store.Groups{}, err
		}
		left.Add(page.Scanned)
		c.Scanned += page.Scanned
		for i := range page.Jobs {
			c.add(&page.Jobs[i])
		}
		filter.After, more = page.Reached, page.More
	}
	return c.sorted(), nil
}

// inTurn calls read in a turn of a count.
func inTurn(by store.GroupBy, read func() error) error {
	if by.Turn != nil {
		done, err := by.Turn()
		if err != nil {
			return err
		}
		defer done()
	}
	return read()
}

// groupedAtOnce is how many jobs countIDs reads at once, with their bodies.
const groupedAtOnce = 4

// countIDs counts the jobs that ids name, and that are in one of some states, by some of their fields.
func countIDs(
	ctx context.Context, jobs groupJobs, namespace string, ids []string, states []job.State, by store.GroupBy,
) (store.Groups, error) {
	until := time.Now().Add(cmp.Or(by.Within, groupTime))
	c := newCounter(by)
	for part := range slices.Chunk(ids, groupedAtOnce) {
		if !time.Now().Before(until) {
			c.Exact = false
			break
		}
		found, errs := make([]job.Job, len(part)), make([]error, len(part))
		err := inTurn(by, func() error {
			var all sync.WaitGroup
			for i, id := range part {
				all.Go(func() { found[i], errs[i] = jobs.Get(ctx, job.Ref{Namespace: namespace, ID: id}) })
			}
			all.Wait()
			return nil
		})
		if err != nil {
			return store.Groups{}, err
		}
		c.Scanned += len(part)
		for i, err := range errs {
			switch {
			case err == nil && slices.Contains(states, found[i].State):
				c.add(&found[i])
			case err == nil || errors.Is(err, store.ErrNotFound):
			case errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
				return store.Groups{}, err
			default: // a job that cannot be read
				c.Exact = false
			}
		}
	}
	return c.sorted(), nil
}

// counter counts jobs in groups.
type counter struct {
	store.Groups
	by store.GroupBy
	at map[store.GroupKey]int
}

func newCounter(by store.GroupBy) counter {
	return counter{Groups: store.Groups{Exact: true}, by: by, at: make(map[store.GroupKey]int)}
}

// add counts a job.
func (c *counter) add(j *job.Job) {
	key := c.by.Key(j)
	n, known := c.at[key]
	switch {
	case known:
		c.Groups.Groups[n].Count++
	case len(c.Groups.Groups) == maxGroups:
		c.Exact = false
	default:
		c.at[key] = len(c.Groups.Groups)
		c.Groups.Groups = append(c.Groups.Groups, store.Group{GroupKey: key, Count: 1, ID: j.ID, EndedAt: j.FinishedAt})
	}
}

// sorted returns the groups, the largest first.
func (c *counter) sorted() store.Groups {
	slices.SortFunc(c.Groups.Groups, func(a, b store.Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), a.Compare(b.GroupKey))
	})
	return c.Groups
}
