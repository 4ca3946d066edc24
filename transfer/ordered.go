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
				var last turn
				if topic == resumed.Topic && lane.Lane == resumed.Lane {
					last = turn{resumed.Number, resumed.ID}
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

// turn is the place of a job in the order of an ordered queue.
type turn struct {
	number int64
	id     string
}

func (t turn) compare(o turn) int {
	return cmp.Or(cmp.Compare(t.number, o.number), cmp.Compare(t.id, o.id))
}

// exportQueue writes the jobs that wait in an ordered queue, those after last.
func (e *exporter) exportQueue(ctx context.Context, shard store.Shard, at place, q job.Queue, last turn) error {
	var turns []turn
	f := store.Filter{
		Namespace: q.Namespace, Topic: q.Topic, Lane: q.Lane, States: []job.State{job.Scheduled, job.Ready, job.Running},
	}
	err := eachPage(ctx, shard, f, func(page *store.Page) error {
		refs := make([]job.Ref, len(page.Jobs))
		for i := range page.Jobs {
			refs[i] = page.Jobs[i].Ref()
		}
		return eachRecord(ctx, shard, refs, func(_ int, r *store.Record) error {
			turns = append(turns, turn{r.Number, r.ID})
			return nil
		})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(turns, turn.compare)
	turns = slices.DeleteFunc(turns, func(t turn) bool { return t.compare(last) <= 0 })
	at.After, at.Topic, at.Lane = nil, q.Topic, q.Lane
	for part := range slices.Chunk(turns, store.MaxBatch) {
		refs, places := make([]job.Ref, len(part)), make([]place, len(part))
		for i, t := range part {
			refs[i], places[i] = job.Ref{Namespace: q.Namespace, ID: t.id}, at
			places[i].Number, places[i].ID = t.number, t.id
		}
		if err := e.exportJobs(ctx, shard, refs, places); err != nil {
			return err
		}
	}
	return nil
}
