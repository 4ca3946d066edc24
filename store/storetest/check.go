package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Check reads the default namespace of a store through its public methods and returns every violated invariant: a job
// is in exactly one list, and Get agrees with that list; each topic's Registered is the sum of its states; its
// unfinished jobs are those of its lanes. Ended jobs that retention or a purge removed are counted but not listed. The
// store must not change meanwhile.
func Check(ctx context.Context, st store.Store) error {
	return CheckNamespace(ctx, st, job.DefaultNamespace)
}

// CheckNamespace is Check for any namespace.
func CheckNamespace(ctx context.Context, st store.Store, namespace string) error {
	var breaches []error
	for n, shard := range st.Shards() {
		for f := (store.StatsFilter{Namespace: namespace, Limit: store.MaxBatch}); ; {
			rows, err := shard.TopicStats(ctx, f)
			if err != nil {
				return fmt.Errorf("read the stats of shard %d: %w", n, err)
			}
			for _, row := range rows {
				err := errors.Join(checkTopic(ctx, shard, row), checkLanes(ctx, shard, row),
					checkSettings(ctx, shard, row))
				if err != nil {
					breaches = append(breaches, fmt.Errorf("shard %d, topic %s: %w", n, row.Topic, err))
				}
			}
			if len(rows) < f.Limit {
				break
			}
			f.After = rows[len(rows)-1].Topic
		}
	}
	return errors.Join(breaches...)
}

func checkTopic(ctx context.Context, shard store.Shard, row store.TopicStats) error {
	var breaches []error
	breach := func(format string, args ...any) { breaches = append(breaches, fmt.Errorf(format, args...)) }

	sum := row.Scheduled + row.Ready + row.Running + row.Delivered + row.Dead + row.Cancelled
	if row.Registered != sum {
		breach("registered %d, but the states add up to %d: %+v", row.Registered, sum, row)
	}
	listed := make(map[job.State]int64)
	places := make(map[job.Ref]job.State)
	for _, state := range states {
		jobs, err := listAll(ctx, shard,
			store.Filter{Namespace: row.Namespace, Topic: row.Topic, States: []job.State{state}})
		if err != nil {
			return fmt.Errorf("list %s jobs: %w", state, err)
		}
		listed[state] = int64(len(jobs))
		for _, j := range jobs {
			if other, twice := places[j.Ref()]; twice {
				breach("%s is %s and %s", j.ID, other, state)
			}
			places[j.Ref()] = state
			if err := checkReason(j); err != nil {
				breach("%w", err)
			}
			got, err := shard.Get(ctx, j.Ref())
			switch {
			case err != nil:
				breach("%s is listed as %s, but: %w", j.ID, state, err)
			case j.State != state:
				breach("%s is listed as %s and has the state %s", j.ID, state, j.State)
			case got.State != state && (state != job.Scheduled || got.State != job.Ready): // it may have become due
				breach("%s is listed as %s and is %s", j.ID, state, got.State)
			case got.State.Ended() == got.FinishedAt.IsZero():
				breach("%s is %s and finished at %v", j.ID, got.State, got.FinishedAt)
			}
		}
	}
	if waiting := listed[job.Scheduled] + listed[job.Ready]; waiting != row.Scheduled+row.Ready {
		breach("%d waiting jobs are listed, %d counted", waiting, row.Scheduled+row.Ready)
	}
	if listed[job.Running] != row.Running {
		breach("%d running jobs are listed, %d counted", listed[job.Running], row.Running)
	}
	for state, counted := range map[job.State]int64{
		job.Delivered: row.Delivered, job.Dead: row.Dead, job.Cancelled: row.Cancelled,
	} {
		if listed[state] > counted {
			breach("%d %s jobs are listed, only %d counted", listed[state], state, counted)
		}
	}
	return errors.Join(breaches...)
}
