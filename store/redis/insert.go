package redis

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
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
	c := s.newCall(sh, scriptInsert, sh.replyKey(string(token), "i"), queues, nil, 8*len(entries))
	for i := range entries {
		e := &entries[i]
		if len(e.Fingerprint) > 255 {
			return nil, fmt.Errorf("redis: a fingerprint of %d bytes is longer than 255", len(e.Fingerprint))
		}
		r := record{spec: e.Spec, fingerprint: e.Fingerprint != nil, maxAge: millisUp(e.MaxAge)}
		head, rest, err := r.encode(queues[position[i]-1].number)
		if err != nil {
			return nil, err
		}
		c.add(position[i], jobKey(e.Ref()), dueWish(e.Delay, e.RunAt), expiryWish(e.ExpiresIn, e.ExpiresAt), e.Fingerprint, head, rest,
			r.maxAge)
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
		due = max(now, ceilMilli(e.RunAt))
	case e.Delay > 0:
		base = later
		due = base + millisUp(e.Delay)
	}
	var expires int64
	switch {
	case !e.ExpiresAt.IsZero():
		expires = e.ExpiresAt.UnixMilli()
	case e.ExpiresIn > 0:
		expires = base + millisUp(e.ExpiresIn)
	}
	state := job.Scheduled
	if due <= now {
		state = job.Ready
	}
	return job.Job{Spec: e.Spec, Progress: job.Progress{
		State: state, CreatedAt: at(base), DueAt: at(due), FirstDueAt: at(due), ExpiresAt: at(expires), Version: 1,
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
		result.Job, err = assemble(jobKey(e.Ref()), rec, str(answer[3]), false, q.Queue, num(answer[1]))
		return result, err
	}
	result.Job = job.Job{Spec: e.Spec}
	if memory := str(answer[4]); memory != "" {
		result.Job.Progress = remembered(memory)
	}
	return result, nil
}

// remembered reads what stays of an ended job whose record is gone: the print and its length, then state, end, reason.
func remembered(memory string) job.Progress {
	var p job.Progress
	width := int(memory[0])
	if len(memory) < 1+width {
		return p
	}
	var state, reason string
	var fin, forget int64
	if n, err := fmt.Sscanf(memory[1+width:], "%s %d %s %d", &state, &fin, &reason, &forget); err != nil || n != 4 {
		return p
	}
	p.State, p.FinishedAt, p.Reason = run{lease: "-", state: state}.jobState(0), at(fin), reasonOf(reason)
	return p
}

// queueOf is the queue of a record, given the name that Redis has for its number.
func (sh *shard) queueOf(rec, name string) (*queue, error) {
	if len(rec) < dueEnd {
		return nil, errRecord
	}
	return sh.numbered(strconv.FormatInt(bigEndian([]byte(rec[2:6])), 10), name)
}

// dueWish writes a due time as scripts read it.
func dueWish(delay time.Duration, runAt time.Time) string {
	if !runAt.IsZero() {
		return "@" + strconv.FormatInt(ceilMilli(runAt), 10)
	}
	return wait(delay)
}

// expiryWish writes an expiry, empty for none.
func expiryWish(in time.Duration, when time.Time) string {
	switch {
	case !when.IsZero():
		return "@" + strconv.FormatInt(when.UnixMilli(), 10)
	case in > 0:
		return wait(in)
	default:
		return ""
	}
}

// wait writes a wait in whole ms.
func wait(d time.Duration) string { return strconv.FormatInt(max(0, millisUp(d)), 10) }

// ceilMilli is an instant in ms, parts of one counting as a whole one: never early.
func ceilMilli(t time.Time) int64 {
	ms := t.UnixMilli()
	if time.UnixMilli(ms).Before(t) {
		ms++
	}
	return max(0, ms)
}
