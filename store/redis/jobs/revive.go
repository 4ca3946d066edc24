package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

const (
	// reviveReply bounds the records with bodies in a reply, in bytes. Jobs beyond it come without their body.
	reviveReply = 8 << 20
	// reviveStored bounds the records that are stored for a repeat of the call. A repeat reads the others again.
	reviveStored = 256 << 10
)

// Revive makes ended jobs due again in one script.
func (s *Jobs) Revive(ctx context.Context, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	shard.CheckBatchSize(len(items))
	if len(items) == 0 {
		return nil, ctx.Err()
	}
	refs := make([]job.Ref, len(items))
	for i := range items {
		refs[i] = items[i].Ref
	}
	var results []store.ReviveResult
	err := s.withQueues(ctx, refs, func(queues []*layout.Queue, position []int) error {
		c := s.NewCall(scriptRevive, s.Keys.Reply(string(token), "v"), queues, nil, 2+7*len(items))
		c.Add(reviveReply, reviveStored)
		for i := range items {
			item := &items[i]
			event := item.Event(time.Time{})
			c.Add(position[i], layout.JobKey(item.Ref), layout.FormatDue(item.Delay, item.RunAt),
				changedFields(queues, position[i], item), requiredState(item.From, item.IfVersion),
				layout.FormatExpiry(item.ExpiresIn, time.Time{}), event.JSONUpToTime())
		}
		reply, reached, err := s.RunDurably(ctx, c)
		if err != nil {
			return err
		}
		results, err = s.revived(items, reply)
		for i := range results {
			if results[i].Err == nil {
				results[i].Job.Durability = reached
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("revive: %w", err)
	}
	return results, nil
}

// requiredState formats the state and the version that a job must have.
func requiredState(from job.State, version int64) string {
	state := layout.FormatState(from)
	if version != 0 {
		state += strconv.FormatInt(version, 10)
	}
	return state
}

// changedFields encodes the new URL and the new headers of a job of a queue, empty when both stay.
func changedFields(queues []*layout.Queue, position int, item *store.Revival) (fields []byte) {
	if item.URL != "" && position > 0 {
		fields = codec.AppendURL(nil, queues[position-1].Lane, item.URL)
	}
	if item.Header != nil {
		fields = codec.AppendHeader(fields, item.Header)
	}
	return fields
}

// revived reads the script's answer.
func (s *Jobs) revived(items []store.Revival, reply any) ([]store.ReviveResult, error) {
	answer := layout.List(reply)
	if layout.Str(reply) == "again" {
		return nil, errAgain
	}
	if len(answer) != 1+len(items) {
		return nil, scriptRevive.Malformed()
	}
	now := layout.Num(answer[0])
	results := make([]store.ReviveResult, len(items))
	for i := range items {
		one := layout.Strs(answer[1+i])
		if len(one) != 4 {
			return nil, scriptRevive.Malformed()
		}
		code, line, rec, name := one[0], one[1], one[2], one[3]
		switch code {
		case "none":
			results[i].Err = store.ErrNotFound
		case "version":
			results[i].Err = store.ErrVersion
		case "expired":
			results[i].Err = store.ErrExpired
		case "state":
			r, err := layout.ParseRun(line, nil)
			if err != nil {
				return nil, err
			}
			results[i].Err = &store.StateError{State: r.JobState(now)}
		case "ok", "bare":
			q, err := s.QueueOf(rec, name)
			if err != nil {
				return nil, err
			}
			stored, err := layout.ParseJob(layout.JobKey(items[i].Ref), rec, line, code == "bare", q.Queue)
			if results[i].Err = err; err == nil {
				results[i].Job = stored.Job(now)
			}
		default:
			results[i].Err = fmt.Errorf("read job %s: %w", layout.JobKey(items[i].Ref), layout.ErrRecord)
		}
	}
	return results, nil
}

// Purge removes ended jobs in one script.
func (s *Jobs) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	shard.CheckBatchSize(len(items))
	if len(items) == 0 {
		return nil, ctx.Err()
	}
	refs := make([]job.Ref, len(items))
	for i := range items {
		refs[i] = items[i].Ref
	}
	errs := make([]error, len(items))
	err := s.withQueues(ctx, refs, func(queues []*layout.Queue, position []int) error {
		c := s.NewCall(scriptPurge, s.Keys.Reply(string(token), "g"), queues, nil, 3*len(items))
		for i, item := range items {
			c.Add(position[i], layout.JobKey(item.Ref), requiredState(item.From, item.IfVersion))
		}
		reply, err := s.Run(ctx, c)
		if err != nil {
			return err
		}
		answer := layout.Str(reply)
		switch {
		case answer == "again":
			return errAgain
		case len(answer) != len(items):
			return scriptPurge.Malformed()
		}
		for i := range errs {
			errs[i] = purged(items[i].Ref, answer[i])
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("purge: %w", err)
	}
	return errs, nil
}

// purged reads what became of one job.
func purged(ref job.Ref, code byte) error {
	switch code {
	case '1':
		return nil
	case 'v':
		return store.ErrVersion
	case 'd':
		return &store.StateError{State: job.Delivered}
	case 'x':
		return &store.StateError{State: job.Dead}
	case 'c':
		return &store.StateError{State: job.Cancelled}
	case 'r':
		return &store.StateError{State: job.Running}
	case 'y':
		return &store.StateError{State: job.Ready}
	case 'w':
		return &store.StateError{State: job.Scheduled}
	case 'f':
		return fmt.Errorf("read job %s: %w", layout.JobKey(ref), layout.ErrRecord)
	default:
		return store.ErrNotFound
	}
}

// withQueues calls do with the queues of jobs and each job's position among them, from 1 (0: there is no such job), and
// again while it returns errAgain because a job is of another queue by now.
func (s *Jobs) withQueues(
	ctx context.Context, refs []job.Ref, do func(queues []*layout.Queue, position []int) error,
) error {
	return s.retryChanged(func() error {
		queues, position, err := s.queuesOfJobs(ctx, refs)
		if err != nil {
			return err
		}
		return do(queues, position)
	})
}

// queuesOfJobs reads the queues of jobs from their records.
func (s *Jobs) queuesOfJobs(ctx context.Context, refs []job.Ref) (queues []*layout.Queue, position []int, err error) {
	at := map[*layout.Queue]int{}
	position = make([]int, 0, len(refs))
	members := make([]any, len(refs))
	for i, ref := range refs {
		members[i] = layout.JobKey(ref)
	}
	err = s.EachJob(ctx, members, func(_ int, _ int64, rec, _, name string) error {
		q, err := s.QueueOf(rec, name)
		if errors.Is(err, layout.ErrRecord) {
			// there is no job, its record cannot be read, or the name of its queue is lost
			position = append(position, 0)
			return nil
		}
		if err != nil {
			return err
		}
		if at[q] == 0 {
			queues = append(queues, q)
			at[q] = len(queues)
		}
		position = append(position, at[q])
		return nil
	})
	return queues, position, err
}
