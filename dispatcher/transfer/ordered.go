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
func (e *exporter) exportOrdered(ctx context.Context, shard store.Shard, at, resumed place) error {
	topics := make(map[string]bool)
	for q := range e.ordered {
		if q.Namespace == at.Namespace && q.Topic >= resumed.Topic {
			topics[q.Topic] = true
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(topics)) {
		for after := ""; ; {
			lanes, err := shard.LaneStats(ctx, at.Namespace, topic, after, store.MaxBatch)
			if err != nil {
				return fmt.Errorf("list lanes: %w", err)
			}
			for _, lane := range lanes {
				after = lane.Lane
				q := job.Queue{Namespace: at.Namespace, Topic: topic, Lane: lane.Lane}
				if !e.isOrdered(q) || topic == resumed.Topic && lane.Lane < resumed.Lane {
					continue
				}
				var last orderKey
				if topic == resumed.Topic && lane.Lane == resumed.Lane {
					last = orderKey{resumed.Number, resumed.ID}
				}
				if err := e.exportQueue(ctx, shard, at, q, last); err != nil {
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

func (k orderKey) compare(o orderKey) int {
	return cmp.Or(cmp.Compare(k.number, o.number), cmp.Compare(k.id, o.id))
}

// exportQueue writes the jobs that wait in an ordered queue, those after last.
func (e *exporter) exportQueue(ctx context.Context, shard store.Shard, at place, q job.Queue, last orderKey) error {
	var keys []orderKey
	unreadable := make(map[string]Row) // by id
	f := store.Filter{
		Namespace: q.Namespace, Topic: q.Topic, Lane: q.Lane,
		States: []job.State{job.Scheduled, job.Ready, job.Running},
	}
	err := eachPage(ctx, shard, f, func(page *store.Page) error {
		jobs := make([]listed, len(page.Jobs))
		for i := range page.Jobs {
			jobs[i] = listed{ref: page.Jobs[i].Ref(), row: rowOfJob(&page.Jobs[i])}
		}
		note := func(_ int, r *store.Record) error {
			keys = append(keys, orderKey{r.Number, r.ID})
			return nil
		}
		return eachReadable(ctx, shard, jobs, note, func(i int, err error) error {
			if len(unreadable) >= maxUnreadable {
				return err
			}
			keys = append(keys, orderKey{0, jobs[i].ref.ID}) // they come first, as their numbers are not known
			unreadable[jobs[i].ref.ID] = jobs[i].row
			return nil
		})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(keys, orderKey.compare)
	keys = slices.DeleteFunc(keys, func(k orderKey) bool { return k.compare(last) <= 0 })
	at.After, at.Topic, at.Lane = nil, q.Topic, q.Lane
	for chunk := range slices.Chunk(keys, sectionLines) {
		jobs := make([]listed, len(chunk))
		for i, k := range chunk {
			at.Number, at.ID = k.number, k.id
			row, ok := unreadable[k.id]
			if !ok {
				row = rowOf(q, job.Scheduled)
			}
			jobs[i] = listed{job.Ref{Namespace: q.Namespace, ID: k.id}, row, at}
		}
		if err := e.exportJobs(ctx, shard, jobs); err != nil {
			return err
		}
	}
	return nil
}
