package router

import (
	"context"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// List is Jobs.List over all shards: one page of one list. Its Ties are not set.
func (r *Router) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	pages := make([]store.Page, len(r.shards))
	only := -1
	if filter.Topic != "" && filter.Lane != "" {
		only = r.ShardOf(job.Queue{Namespace: filter.Namespace, Topic: filter.Topic, Lane: filter.Lane})
	}
	err := r.ForEachShard(func(n int, shard store.Shard) (err error) {
		if only < 0 || n == only {
			f := filter
			f.After = onShard(filter.After, n, filter.Oldest)
			pages[n], err = shard.List(ctx, f)
		}
		return err
	})
	if err != nil {
		return store.Page{}, err
	}
	return merge(pages, &filter), nil
}

// onShard translates a position of the list over all shards to one of a shard's list. Of the jobs that ended in one
// millisecond, those of lower shards come first.
func onShard(p store.Position, shard int, oldest bool) store.Position {
	if p.Ended && shard != p.Shard {
		p.Tie = ""
		if shard < p.Shard && p.At != 0 { // behind all jobs of that millisecond
			p.At--
			if oldest {
				p.At += 2
			}
		}
	}
	p.Shard = 0
	return p
}

// ofShard translates a position of a shard's list to one of the list over all shards.
func ofShard(p store.Position, shard int) store.Position {
	if p.Ended {
		p.Shard = shard
	}
	return p
}

// merge combines the pages of the shards. The page ends where the first of the shards has stopped looking: beyond, jobs
// of that shard are missing.
func merge(pages []store.Page, filter *store.Filter) store.Page {
	var all store.Page
	for n := range pages {
		all.Scanned += pages[n].Scanned
		if !pages[n].More {
			continue
		}
		if reached := ofShard(pages[n].Reached, n); !all.More || reached.Compare(all.Reached, filter.Oldest) < 0 {
			all.More, all.Reached = true, reached
		}
	}
	var last store.Position
	next := make([]int, len(pages)) // of each shard's jobs
	for {
		first, at := -1, store.Position{}
		for n := range pages {
			if next[n] == len(pages[n].Jobs) {
				continue
			}
			place := ofShard(store.PositionOf(&pages[n].Jobs[next[n]], pages[n].Ties[next[n]]), n)
			if first < 0 || place.Compare(at, filter.Oldest) < 0 {
				first, at = n, place
			}
		}
		switch {
		case first < 0 || all.More && at.Compare(all.Reached, filter.Oldest) > 0:
			return all
		case len(all.Jobs) == filter.Limit:
			all.More, all.Reached = true, last
			return all
		}
		all.Jobs = append(all.Jobs, pages[first].Jobs[next[first]])
		next[first]++
		last = at
	}
}
