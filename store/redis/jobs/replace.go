package jobs

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
	"github.com/ringback/ringback/store/redis/shard"
)

// changeTries bounds how often a change is retried because the job changed between reading and writing.
const changeTries = 16

var errAgain = errors.New("redis: the job changed meanwhile")

// storedJob is a job as it was read, with what a change needs.
type storedJob struct {
	layout.StoredJob
	queue    *layout.Queue
	now      int64
	attempts string
}

// read reads a job's record, run and attempts at once. ErrNotFound. replyKey is the key of the change for which the job
// is read: when the change has ended and removed the job, its reply holds it.
func (s *Jobs) read(ctx context.Context, ref job.Ref, replyKey string) (*storedJob, error) {
	c := s.NewCall(scriptGet, replyKey, nil, nil, 1)
	c.Add(layout.JobKey(ref))
	answer, err := s.RunList(ctx, c, 6)
	if err != nil {
		return nil, err
	}
	key, rec, line := layout.JobKey(ref), layout.Str(answer[1]), layout.Str(answer[2])
	if rec == "" {
		line, rec, _ = strings.Cut(layout.Str(answer[4]), "\n")
	}
	if rec == "" {
		return nil, store.ErrNotFound
	}
	q, err := s.QueueOf(rec, layout.Str(answer[5]))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", key, err)
	}
	stored, err := layout.ParseJob(key, rec, line, false, q.Queue)
	if err != nil {
		return nil, err
	}
	return &storedJob{StoredJob: stored, queue: q, now: layout.Num(answer[0]), attempts: layout.Str(answer[3])}, nil
}

// Get reads a job with its record.
func (s *Jobs) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	var found job.Job
	err := s.RetryStale(func() error {
		st, err := s.read(ctx, ref, s.Keys.Reply("", ""))
		if err != nil {
			return err
		}
		found = st.Job(st.now)
		return layout.AddEntries(&found, st.attempts)
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("get: %w", err)
	}
	return found, nil
}

// idStatuses are the results of known.lua.
var idStatuses = map[byte]store.IDStatus{
	'0': {},
	'-': {Exists: true},
	'd': {Exists: true, Ended: job.Delivered}, 'D': {Ended: job.Delivered},
	'x': {Exists: true, Ended: job.Dead}, 'X': {Ended: job.Dead},
	'c': {Exists: true, Ended: job.Cancelled}, 'C': {Ended: job.Cancelled},
}

// Known looks among jobs and remembered ids.
func (s *Jobs) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	shard.CheckBatchSize(len(refs))
	c := s.NewCall(scriptKnown, s.Keys.Reply("", ""), nil, nil, len(refs))
	for _, ref := range refs {
		c.Add(layout.JobKey(ref))
	}
	reply, err := s.Run(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("look for ids: %w", err)
	}
	answer := layout.Str(reply)
	if len(answer) != len(refs) {
		return nil, scriptKnown.Malformed()
	}
	statuses := make([]store.IDStatus, len(refs))
	for i := range statuses {
		status, ok := idStatuses[answer[i]]
		if !ok {
			return nil, scriptKnown.Malformed()
		}
		statuses[i] = status
	}
	return statuses, nil
}

// change reads a job, makes the call that prepare makes of it, and does so again when the job changed in between.
// kind names the method under the token.
func (s *Jobs) change(ctx context.Context, token store.Token, kind string, ref job.Ref, prepare func(
	st *storedJob, replyKey string,
) (*layout.Call, error),
) (job.Job, error) {
	replyKey := s.Keys.Reply(string(token), kind)
	var changed job.Job
	err := s.retryChanged(func() error {
		st, err := s.read(ctx, ref, replyKey)
		if err != nil {
			return err
		}
		c, err := prepare(st, replyKey)
		if err != nil {
			return err
		}
		reply, reached, err := s.RunDurably(ctx, c)
		if err != nil {
			return err
		}
		changed, err = s.changed(st, reply)
		changed.Durability = reached
		return err
	})
	return changed, err
}

// retryChanged calls do, and again while it returns errAgain.
func (s *Jobs) retryChanged(do func() error) error {
	for range changeTries {
		if err := s.RetryStale(do); !errors.Is(err, errAgain) {
			return err
		}
	}
	return &store.UnavailableError{Reason: "redis: too many concurrent updates of the job", Err: errAgain}
}

// changed reads the answer of cancel and replace.
func (s *Jobs) changed(st *storedJob, reply any) (job.Job, error) {
	answer := layout.List(reply)
	if len(answer) == 1 && answer[0] == "again" {
		return job.Job{}, errAgain
	}
	if len(answer) != 4 {
		return job.Job{}, scriptReplace.Malformed()
	}
	switch answer[0] {
	case "ok":
		changed, err := layout.ParseJob(st.Key, layout.Str(answer[2]), layout.Str(answer[3]), false, st.queue.Queue)
		if err != nil {
			return job.Job{}, err
		}
		return changed.Job(layout.Num(answer[1])), nil
	case "state":
		r, err := layout.ParseRun(layout.Str(answer[3]), st.Record)
		if err != nil {
			return job.Job{}, err
		}
		return job.Job{}, &store.StateError{State: r.JobState(layout.Num(answer[1]))}
	case "none":
		return job.Job{}, store.ErrNotFound
	case "version":
		return job.Job{}, store.ErrVersion
	case "expired":
		return job.Job{}, store.ErrExpired
	default:
		return job.Job{}, scriptReplace.Malformed()
	}
}

// Cancel ends a job, or marks it while it is claimed.
func (s *Jobs) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	event := cancellation.Event(time.Time{})
	j, err := s.change(ctx, token, "x", ref, func(st *storedJob, replyKey string) (*layout.Call, error) {
		c := s.NewCall(scriptCancel, replyKey, []*layout.Queue{st.queue}, nil, 3)
		c.Add(st.Key, event.JSONUpToTime(), cancellation.IfVersion)
		return c, nil
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("cancel: %w", err)
	}
	return j, nil
}

// Replace changes a scheduled or ready job.
func (s *Jobs) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	due, moves, event := "", 0, replacement.Event(time.Time{})
	if replacement.Due != nil {
		due = layout.FormatDue(replacement.Due.In, replacement.Due.At)
	}
	if replacement.MovesTime() {
		moves = 1
	}
	j, err := s.change(ctx, token, "e", ref, func(st *storedJob, replyKey string) (*layout.Call, error) {
		expiry := ""
		switch {
		case replacement.Expiry != nil:
			expiry = layout.FormatExpiry(replacement.Expiry.In, replacement.Expiry.At)
		case st.Record.Expires != 0:
			expiry = "@" + strconv.FormatInt(st.Record.Expires, 10)
		}
		replaced := *st.Record
		replacement.Apply(&replaced.Spec)
		head, rest, err := replaced.Encode(st.queue.Number)
		if err != nil {
			return nil, err
		}
		c := s.NewCall(scriptReplace, replyKey, []*layout.Queue{st.queue}, nil, 9)
		c.Add(st.Key, st.Run.Version, replacement.IfVersion, due, expiry, head, rest, event.JSONUpToTime(), moves)
		return c, nil
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("replace: %w", err)
	}
	return j, nil
}
