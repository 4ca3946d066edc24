package redis

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// Insert registers jobs in one script.
func (sh *shard) Insert(ctx context.Context, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	s := sh.store
	checkBatchSize(len(entries))
	if len(entries) == 0 {
		return nil, ctx.Err()
	}
	if err := s.health.refusal(); err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	var results []store.InsertResult
	err := s.retryStale(sh, func() (err error) {
		results, err = s.insert(ctx, sh, token, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	return results, nil
}

func (s *Store) insert(ctx context.Context, sh *shard, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	names, position := queuesOf(entries, func(e *store.NewJob) job.Queue { return e.Queue })
	queues, err := sh.intern(ctx, s.runner, names)
	if err != nil {
		return nil, err
	}
	c := s.newCall(sh, scriptInsert, sh.keys.Reply(string(token), "i"), queues, nil, 8*len(entries))
	for i := range entries {
		e := &entries[i]
		if len(e.Fingerprint) > 255 {
			return nil, fmt.Errorf("redis: a fingerprint of %d bytes is longer than 255", len(e.Fingerprint))
		}
		r := layout.Record{Spec: e.Spec, Fingerprint: e.Fingerprint != nil, MaxAge: layout.Millis(e.MaxAge)}
		head, rest, err := r.Encode(queues[position[i]-1].Number)
		if err != nil {
			return nil, err
		}
		c.add(position[i], layout.JobKey(e.Ref()), layout.FormatDue(e.Delay, e.RunAt), layout.FormatExpiry(e.ExpiresIn, e.ExpiresAt), e.Fingerprint, head, rest,
			r.MaxAge)
	}
	reply, reached, err := s.evalDurable(ctx, c.script, c.keys, c.args)
	if err != nil {
		return nil, err
	}
	answer := list(reply)
	if len(answer) != 2+len(entries) {
		return nil, malformed(scriptInsert)
	}
	now, later := num(answer[0]), num(answer[1])
	results := make([]store.InsertResult, len(entries))
	for i := range entries {
		if known := list(answer[2+i]); known != nil {
			if results[i], err = existing(sh, &entries[i], known); err != nil {
				return nil, err
			}
		} else {
			results[i] = store.InsertResult{Outcome: store.Created, Job: created(&entries[i], now, later)}
		}
		results[i].Job.Durability = reached
	}
	return results, nil
}

// created is a job as the script has just laid it down.
func created(e *store.NewJob, now, later int64) job.Job {
	base, due := now, now
	switch {
	case !e.RunAt.IsZero():
		due = max(now, layout.MillisAt(e.RunAt))
	case e.Delay > 0:
		base = later
		due = base + layout.Millis(e.Delay)
	}
	var expires int64
	switch {
	case !e.ExpiresAt.IsZero():
		expires = e.ExpiresAt.UnixMilli()
	case e.ExpiresIn > 0:
		expires = base + layout.Millis(e.ExpiresIn)
	}
	state := job.Scheduled
	if due <= now {
		state = job.Ready
	}
	return job.Job{Spec: e.Spec, Progress: job.Progress{
		State: state, CreatedAt: layout.Time(base), DueAt: layout.Time(due), FirstDueAt: layout.Time(due), ExpiresAt: layout.Time(expires), Version: 1,
	}}
}

// existing reads the answer for an id that was known: outcome, now, record, run, memory of the id, name of the queue.
func existing(sh *shard, e *store.NewJob, answer []any) (store.InsertResult, error) {
	if len(answer) != 6 {
		return store.InsertResult{}, malformed(scriptInsert)
	}
	result := store.InsertResult{Outcome: store.Conflict}
	if str(answer[0]) == "e" {
		result.Outcome = store.Existing
	}
	if rec := str(answer[2]); rec != "" {
		q, err := sh.queueOf(rec, str(answer[5]))
		if err != nil {
			return store.InsertResult{}, err
		}
		stored, err := layout.ParseJob(layout.JobKey(e.Ref()), rec, str(answer[3]), false, q.Queue)
		if err != nil {
			return store.InsertResult{}, err //nolint:wrapcheck // it names the job
		}
		result.Job = stored.Job(num(answer[1]))
		return result, nil
	}
	result.Job = job.Job{Spec: e.Spec}
	result.Job.Progress = layout.ParseEnded(str(answer[4]))
	return result, nil
}

// queueOf is the queue of a record, given the name that Redis has for its number.
func (sh *shard) queueOf(rec, name string) (*layout.Queue, error) {
	number, ok := layout.QueueNumber(rec)
	if !ok {
		return nil, layout.ErrRecord
	}
	return sh.numbered(number, name)
}
