// This part of the package counts jobs by some of their fields, within a time and a number of groups.

package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/ringback/ringback/internal/capacity"
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
	filter.After = store.Position{}
	if by.AcquireTurn != nil {
		filter.ScanLimit = min(filter.ScanLimit, store.MaxListLimit)
	}
	c := newCounter(by)
	err := c.readInTurns(ctx, filter.ScanLimit, func(most int) (looked int, more bool, err error) {
		filter.ScanLimit = most
		page, err := jobs.List(ctx, filter)
		for i := range page.Jobs {
			c.add(&page.Jobs[i])
		}
		filter.After = page.Reached
		return page.Scanned, page.More, err
	})
	if err != nil {
		return store.Groups{}, err
	}
	return c.sorted(), nil
}

// readInTurns calls read in turns, with the number of jobs to look at, up to most, while there are more. The time of
// the count begins with the first turn, and bounds the waits for later ones.
func (c *counter) readInTurns(
	ctx context.Context, most int, read func(most int) (looked int, more bool, err error),
) error {
	release, err := c.acquireTurn(ctx)
	if err != nil {
		return err
	}
	left := newBudget(cmp.Or(c.by.Within, groupTime), most)
	turns, cancel := context.WithDeadline(ctx, left.until)
	defer cancel()
	for {
		more, err := c.readOnce(left, release, read)
		if err != nil || !more {
			return err
		}
		release, err = c.acquireTurn(turns)
		if _, isFull := errors.AsType[*capacity.FullError](err); isFull {
			c.Exact = false
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *counter) acquireTurn(ctx context.Context) (release func(), err error) {
	if c.by.AcquireTurn == nil {
		return func() {}, nil
	}
	return c.by.AcquireTurn(ctx)
}

// readOnce calls read in a turn, unless the time is over.
func (c *counter) readOnce(
	left *budget, release func(), read func(most int) (looked int, more bool, err error),
) (more bool, err error) {
	defer release()
	most := left.Next()
	if most == 0 {
		c.Exact = false
		return false, nil
	}
	looked, more, err := read(most)
	left.Add(looked)
	c.Scanned += looked
	return more, err
}

// groupedAtOnce is how many jobs countIDs reads at once, with their bodies.
const groupedAtOnce = 4

// countIDs counts the jobs that ids name, and that are in one of some states, by some of their fields.
func countIDs(
	ctx context.Context, jobs groupJobs, namespace string, ids []string, states []job.State, by store.GroupBy,
) (store.Groups, error) {
	c := newCounter(by)
	if len(ids) == 0 {
		return c.sorted(), nil
	}
	err := c.readInTurns(ctx, groupedAtOnce, func(int) (looked int, more bool, err error) {
		part := ids[:min(groupedAtOnce, len(ids))]
		ids = ids[len(part):]
		found, errs := make([]job.Job, len(part)), make([]error, len(part))
		var all sync.WaitGroup
		for i, id := range part {
			all.Go(func() { found[i], errs[i] = jobs.Get(ctx, job.Ref{Namespace: namespace, ID: id}) })
		}
		all.Wait()
		for i, err := range errs {
			switch {
			case err == nil && slices.Contains(states, found[i].State):
				c.add(&found[i])
			case err == nil || errors.Is(err, store.ErrNotFound):
			case errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil:
				return 0, false, err
			default: // a job that cannot be read
				c.Exact = false
			}
		}
		return len(part), len(ids) > 0, nil
	})
	if err != nil {
		return store.Groups{}, err
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
