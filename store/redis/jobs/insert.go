package jobs

import (
	"context"
	"fmt"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// Insert registers jobs in one script.
func (s *Jobs) Insert(ctx context.Context, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	shard.CheckBatchSize(len(entries))
	if len(entries) == 0 {
		return nil, ctx.Err()
	}
	if err := s.health.CheckInsert(); err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	var results []store.InsertResult
	err := s.RetryStale(func() (err error) {
		results, err = s.insert(ctx, token, entries)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("insert: %w", err)
	}
	return results, nil
}

func (s *Jobs) insert(ctx context.Context, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	names, position := shard.QueuesOf(entries, func(e *store.NewJob) job.Queue { return e.Queue })
	queues, err := s.Intern(ctx, names)
	if err != nil {
		return nil, err
	}
	c := s.NewCall(scriptInsert, s.Keys.Reply(string(token), "i"), queues, nil, 8*len(entries))
	var r layout.Record // one for all entries: Encode's receiver is allocated
	for i := range entries {
		e := &entries[i]
		if len(e.Fingerprint) > 255 {
			return nil, fmt.Errorf("redis: a fingerprint of %d bytes is longer than 255", len(e.Fingerprint))
		}
		r = layout.Record{Spec: e.Spec, Fingerprint: e.Fingerprint != nil, MaxAge: layout.Millis(e.MaxAge)}
		head, rest, err := r.Encode(queues[position[i]-1].Number)
		if err != nil {
			return nil, err
		}
		c.Add(position[i], layout.JobKey(e.Ref()), layout.FormatDue(e.Delay, e.RunAt),
			layout.FormatExpiry(e.ExpiresIn, e.ExpiresAt), e.Fingerprint, head, rest, r.MaxAge)
	}
	reply, reached, err := s.RunDurably(ctx, c)
	if err != nil {
		return nil, err
	}
	answer := layout.List(reply)
	if len(answer) != 2+len(entries) {
		return nil, scriptInsert.Malformed()
	}
	now, later := layout.Num(answer[0]), layout.Num(answer[1])
	results := make([]store.InsertResult, len(entries))
	for i := range entries {
		if known := layout.List(answer[2+i]); known != nil {
			if results[i], err = s.existing(&entries[i], known); err != nil {
				return nil, err
			}
		} else {
			results[i] = store.InsertResult{Outcome: store.Created, Job: created(&entries[i], now, later)}
		}
		results[i].Job.Durability = reached
	}
	return results, nil
}

// created returns a job as the script has stored it.
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
		State: state, CreatedAt: layout.Time(base), DueAt: layout.Time(due), FirstDueAt: layout.Time(due),
		ExpiresAt: layout.Time(expires), Version: 1,
	}}
}

// existing reads the answer for an id that was known: outcome, now, record, run, entry of the remembered id, name of
// the queue.
func (s *Jobs) existing(e *store.NewJob, answer []any) (store.InsertResult, error) {
	if len(answer) != 6 {
		return store.InsertResult{}, scriptInsert.Malformed()
	}
	result := store.InsertResult{Outcome: store.Conflict}
	if layout.Str(answer[0]) == "e" {
		result.Outcome = store.Existing
	}
	if rec := layout.Str(answer[2]); rec != "" {
		q, err := s.QueueOf(rec, layout.Str(answer[5]))
		if err != nil {
			return store.InsertResult{}, err
		}
		stored, err := layout.ParseJob(layout.JobKey(e.Ref()), rec, layout.Str(answer[3]), false, q.Queue)
		if err != nil {
			return store.InsertResult{}, err
		}
		result.Job = stored.Job(layout.Num(answer[1]))
		return result, nil
	}
	result.Job = job.Job{Spec: e.Spec}
	result.Job.Progress = layout.ParseEnded(layout.Str(answer[4]))
	return result, nil
}
