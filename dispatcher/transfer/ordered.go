package transfer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// exportOrdered writes the jobs that wait in ordered queues, in the order of their registration.
func (e *exporter) exportOrdered(ctx context.Context, shard store.Shard, namespace string) error {
	topics := make(map[string]bool)
	for q := range e.ordered {
		if q.Namespace == namespace {
			topics[q.Topic] = true
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for after := ""; ; {
			lanes, err := shard.LaneStats(ctx, namespace, topic, after, store.MaxBatch)
			if err != nil {
				return fmt.Errorf("list lanes: %w", err)
			}
			for _, lane := range lanes {
				after = lane.Lane
				q := job.Queue{Namespace: namespace, Topic: topic, Lane: lane.Lane}
				if !e.isOrdered(q) {
					continue
				}
				if err := e.exportQueue(ctx, shard, q); err != nil {
					return err
				}
			}
			if len(lanes) < store.MaxBatch {
				break
			}
		}
	}
	return nil
}

// An orderKey is the place of a job in the order of an ordered queue.
type orderKey struct {
	number int64
	id     string
}

// exportQueue writes the jobs that wait in an ordered queue.
func (e *exporter) exportQueue(ctx context.Context, shard store.Shard, q job.Queue) error {
	var keys []orderKey
	unreadable := make(map[string]Row) // by id
	f := store.Filter{
		Namespace: q.Namespace, Topic: q.Topic, Lane: q.Lane,
		States: []job.State{job.Scheduled, job.Ready, job.Running},
	}
	err := eachPage(ctx, shard, f, func(page *store.Page) error {
		refs := make([]job.Ref, len(page.Jobs))
		for i := range page.Jobs {
			refs[i] = page.Jobs[i].Ref()
		}
		return eachRecord(ctx, shard, refs, func(_ int, r *store.Record) error {
			keys = append(keys, orderKey{r.Number, r.ID})
			return nil
		}, func(i int, err error) error {
			if len(unreadable) >= maxUnreadable {
				return err
			}
			keys = append(keys, orderKey{0, refs[i].ID}) // they come first, as their numbers are not known
			unreadable[refs[i].ID] = rowOfJob(&page.Jobs[i])
			return nil
		})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(keys, func(a, b orderKey) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.id, b.id))
	})
	for chunk := range slices.Chunk(keys, sectionLines) {
		refs := make([]job.Ref, len(chunk))
		for i, k := range chunk {
			refs[i] = job.Ref{Namespace: q.Namespace, ID: k.id}
		}
		if err := e.exportJobs(ctx, shard, refs, func(i int) Row {
			row, ok := unreadable[refs[i].ID]
			if !ok {
				row = rowOf(q, job.Scheduled)
			}
			return row
		}); err != nil {
			return err
		}
	}
	return nil
}
