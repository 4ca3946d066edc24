package internaljobs

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// listAtOnce bounds concurrent reads of a list: bodies may have megabytes.
	listAtOnce = 8
	// listTime is the time after which a page is returned although it is not full.
	listTime = time.Second
)

// Jobs is the part of the store that holds internal jobs.
type Jobs interface {
	GetIn(ctx context.Context, q job.Queue, ref job.Ref) (job.Job, error)
	List(ctx context.Context, filter store.Filter) (store.Page, error)
}

// List returns a page of what internal jobs are about, which decode makes of them with their bodies, as far as shown
// selects it. It is full unless it is the last, or took longer than listTime.
func List[T any](
	ctx context.Context, jobs Jobs, filter store.Filter, decode func(*job.Job) T, shown func(*T) bool,
) ([]T, store.Page, error) {
	limit, until := filter.Limit, time.Now().Add(listTime)
	var all []T
	for {
		filter.Limit = limit - len(all)
		page, err := jobs.List(ctx, filter)
		if err != nil {
			return nil, page, err
		}
		found, errs := make([]T, len(page.Jobs)), make([]error, len(page.Jobs))
		InParallel(len(found), listAtOnce, func(i int) {
			j, err := jobs.GetIn(ctx, page.Jobs[i].Queue, page.Jobs[i].Ref())
			if errs[i] = err; err == nil {
				found[i] = decode(&j)
			}
		})
		for i, err := range errs {
			switch {
			case err == nil && shown(&found[i]):
				all = append(all, found[i])
			case err != nil && !errors.Is(err, store.ErrNotFound): // gone meanwhile
				return nil, page, err
			}
		}
		if filter.After = page.Reached; !page.More || len(all) == limit || !time.Now().Before(until) {
			return all, page, nil
		}
	}
}

// InParallel calls do for the numbers below n, atOnce at a time.
func InParallel(n, atOnce int, do func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			do(i)
			<-slots
		})
	}
	all.Wait()
}
