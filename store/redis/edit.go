package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/redis/layout"
)

// changeTries bounds how often a change is made anew because the job changed between reading and writing.
const changeTries = 16

var errAgain = errors.New("redis: the job changed meanwhile")

// storedJob is a job as it was read, with what a change needs.
type storedJob struct {
	layout.StoredJob
	queue *layout.Queue
	now   int64
	tries string
}

// read reads a job's record, run and attempts at once. ErrNotFound. replyKey is the key of the change for which the job is
// read: when the change has ended and removed the job, its reply holds it.
func (s *Store) read(ctx context.Context, sh *shard, ref job.Ref, replyKey string) (*storedJob, error) {
	c := s.newCall(sh, scriptGet, replyKey, nil, nil, 1)
	c.add(layout.JobKey(ref))
	reply, err := s.do(ctx, c)
	if err != nil {
		return nil, err
	}
	answer := list(reply)
	if len(answer) != 6 {
		return nil, malformed(scriptGet)
	}
	key, rec, line := layout.JobKey(ref), str(answer[1]), str(answer[2])
	if rec == "" {
		line, rec, _ = strings.Cut(str(answer[4]), "\n")
	}
	if rec == "" {
		return nil, store.ErrNotFound
	}
	q, err := sh.queueOf(rec, str(answer[5]))
	if err != nil {
		return nil, fmt.Errorf("read job %s: %w", key, err)
	}
	stored, err := layout.ParseJob(key, rec, line, false, q.Queue)
	if err != nil {
		return nil, err //nolint:wrapcheck // it names the job
	}
	return &storedJob{StoredJob: stored, queue: q, now: num(answer[0]), tries: str(answer[3])}, nil
}

// Get reads a job with its record.
func (sh *shard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	s := sh.store
	var found job.Job
	err := s.retryStale(sh, func() error {
		st, err := s.read(ctx, sh, ref, sh.keys.Reply("", ""))
		if err != nil {
			return err
		}
		found = st.Job(st.now)
		found.History, err = layout.ParseAttempts(st.tries)
		return err
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("get: %w", err)
	}
	return found, nil
}

// Known looks among jobs and remembered ids.
func (sh *shard) Known(ctx context.Context, refs []job.Ref) ([]bool, error) {
	s := sh.store
	checkBatchSize(len(refs))
	c := s.newCall(sh, scriptKnown, sh.keys.Reply("", ""), nil, nil, len(refs))
	for _, ref := range refs {
		c.add(layout.JobKey(ref))
	}
	reply, err := s.do(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("look for ids: %w", err)
	}
	answer := str(reply)
	if len(answer) != len(refs) {
		return nil, malformed(scriptKnown)
	}
	known := make([]bool, len(refs))
	for i := range known {
		known[i] = answer[i] == '1'
	}
	return known, nil
}

// change reads a job, makes the call that prepare makes of it, and does so again when the job changed in between.
// kind names the method under the token.
func (sh *shard) change(ctx context.Context, token store.Token, kind string, ref job.Ref, prepare func(st *storedJob, replyKey string) (*call, error)) (job.Job, error) {
	s := sh.store
	replyKey := sh.keys.Reply(string(token), kind)
	for range changeTries {
		var changed job.Job
		err := s.retryStale(sh, func() error {
			st, err := s.read(ctx, sh, ref, replyKey)
			if err != nil {
				return err
			}
			c, err := prepare(st, replyKey)
			if err != nil {
				return err
			}
			reply, reached, err := s.evalDurable(ctx, c.script, c.keys, c.args)
			if err != nil {
				return err
			}
			changed, err = s.changed(st, reply)
			changed.Durability = reached
			return err
		})
		if !errors.Is(err, errAgain) {
			return changed, err
		}
	}
	return job.Job{}, &store.UnavailableError{Reason: "redis: too many concurrent updates of the job", Err: errAgain}
}

// changed reads the answer of cancel and replace.
func (s *Store) changed(st *storedJob, reply any) (job.Job, error) {
	answer := list(reply)
	code := ""
	if len(answer) > 0 {
		code = str(answer[0])
	}
	switch code {
	case "none":
		return job.Job{}, store.ErrNotFound
	case "version":
		return job.Job{}, store.ErrVersion
	case "expired":
		return job.Job{}, store.ErrExpired
	case "again":
		return job.Job{}, errAgain
	case "ok", "state":
	default:
		return job.Job{}, errors.New("redis: unknown reply to a change")
	}
	if len(answer) != 4 {
		return job.Job{}, malformed(scriptReplace)
	}
	if code == "state" {
		r, err := layout.ParseRun(str(answer[3]), st.Record)
		if err != nil {
			return job.Job{}, err
		}
		return job.Job{}, &store.StateError{State: r.JobState(num(answer[1]))}
	}
	changed, err := layout.ParseJob(st.Key, str(answer[2]), str(answer[3]), false, st.queue.Queue)
	if err != nil {
		return job.Job{}, err //nolint:wrapcheck // it names the job
	}
	return changed.Job(num(answer[1])), nil
}

// Cancel ends a job, or marks it while it is held.
func (sh *shard) Cancel(ctx context.Context, token store.Token, ref job.Ref) (job.Job, error) {
	s := sh.store
	j, err := sh.change(ctx, token, "x", ref, func(st *storedJob, replyKey string) (*call, error) {
		c := s.newCall(sh, scriptCancel, replyKey, []*layout.Queue{st.queue}, nil, 1)
		c.add(st.Key)
		return c, nil
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("cancel: %w", err)
	}
	return j, nil
}

// Replace changes a job that nobody holds.
func (sh *shard) Replace(ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement) (job.Job, error) {
	s := sh.store
	due, moves := "", 0
	if replacement.Due != nil {
		due = layout.FormatDue(replacement.Due.In, replacement.Due.At)
	}
	if replacement.MovesTime() {
		moves = 1
	}
	j, err := sh.change(ctx, token, "e", ref, func(st *storedJob, replyKey string) (*call, error) {
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
		c := s.newCall(sh, scriptReplace, replyKey, []*layout.Queue{st.queue}, nil, 9)
		c.add(st.Key, st.Run.Version, replacement.IfVersion, due, expiry, head, rest, string(replacement.Kind), moves)
		return c, nil
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("replace: %w", err)
	}
	return j, nil
}
