package storetest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// knownID is an id that stays known for its id_window.
type knownID struct {
	topic       topicName
	fingerprint []byte
	// state, finishedAt and reason are set when the job ends.
	state      job.State
	finishedAt time.Time
	reason     policy.Reason
}

// Insert inserts the jobs one after the other.
func (s *modelShard) Insert(
	ctx context.Context, token store.Token, entries []store.NewJob,
) ([]store.InsertResult, error) {
	m := s.model
	bound(len(entries))
	now, err := m.open(ctx)
	if err != nil {
		return nil, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"insert", token}, func() ([]store.InsertResult, error) {
		results := make([]store.InsertResult, len(entries))
		for i, e := range entries {
			results[i] = s.insert(e, now)
		}
		return results, nil
	})
}

// bound panics when a call has more than MaxBatch items.
func bound(n int) {
	if n > store.MaxBatch {
		panic("storetest: more items in a call than store.MaxBatch")
	}
}

func (s *modelShard) insert(e store.NewJob, now time.Time) store.InsertResult {
	ref := e.Ref()
	if known := s.jobs[ref]; known != nil {
		view := known.view(now)
		return store.InsertResult{Outcome: outcome(known.fingerprint, e.Fingerprint, view.State), Job: view}
	}
	if id := s.ids[ref]; id != nil {
		gone := job.Job{Spec: e.Spec}
		gone.State, gone.FinishedAt, gone.Reason = id.state, id.finishedAt, id.reason
		return store.InsertResult{Outcome: outcome(id.fingerprint, e.Fingerprint, id.state), Job: gone}
	}
	r := &record{fingerprint: slices.Clone(e.Fingerprint), queue: s.queue(e.Queue)}
	r.job.Spec = clone(e.Spec)
	r.job.CreatedAt, r.job.Version = now, 1
	r.job.DueAt = dueAt(now, e.Delay, e.RunAt)
	r.job.FirstDueAt = r.job.DueAt
	r.job.ExpiresAt = expiresAt(now, e.ExpiresIn, e.ExpiresAt)
	r.maxAge = e.MaxAge
	s.hasTTL = s.hasTTL || !r.endOfLife().IsZero()
	s.registrations++
	r.registered = s.registrations
	s.jobs[ref] = r
	if e.Fingerprint != nil {
		s.ids[ref] = &knownID{topic: r.queue.topic.name, fingerprint: r.fingerprint}
	}
	r.queue.topic.registered++
	s.schedule(r, now)
	return store.InsertResult{Outcome: store.Created, Job: r.view(now)}
}

func outcome(known, sent []byte, state job.State) store.Outcome {
	if state != job.Cancelled && bytes.Equal(known, sent) {
		return store.Existing
	}
	return store.Conflict
}

// dueAt returns the due time, rounded up to milliseconds.
func dueAt(now time.Time, delay time.Duration, runAt time.Time) time.Time {
	if runAt.IsZero() {
		return after(now, delay)
	}
	at := job.Millis(runAt)
	if at.Before(runAt) {
		at = at.Add(time.Millisecond)
	}
	if at.Before(now) {
		return now
	}
	return at
}

func after(now time.Time, wait time.Duration) time.Time {
	if wait <= 0 {
		return now
	}
	return now.Add((wait + time.Millisecond - 1).Truncate(time.Millisecond))
}

func expiresAt(now time.Time, in time.Duration, at time.Time) time.Time {
	switch {
	case !at.IsZero():
		return job.Millis(at)
	case in > 0:
		return after(now, in)
	default:
		return time.Time{}
	}
}

// view returns a copy of a job, without its history. The model never writes to memory that the copy shares.
func (r *record) view(now time.Time) job.Job {
	j := r.job
	j.History, j.Events = nil, nil
	if j.State == job.Scheduled && !j.DueAt.After(now) {
		j.State = job.Ready
	}
	return j
}

// addAttempt appends to a job's history, which views may share.
func (r *record) addAttempt(a job.Attempt) {
	r.job.History = slices.Clone(r.job.History)
	r.job.AddAttempt(a)
}

// addEvent appends to a job's events, which views may share.
func (r *record) addEvent(e job.Event) {
	r.job.Events = slices.Clone(r.job.Events)
	r.job.AddEvent(e)
}

// clone returns a copy that shares no memory with the caller.
func clone(s job.Spec) job.Spec {
	s.Header = cloneHeader(s.Header)
	s.Body = slices.Clone(s.Body)
	s.Labels = maps.Clone(s.Labels)
	s.Ladder = slices.Clone(s.Ladder)
	if s.Retries != nil {
		s.Retries = new(*s.Retries)
	}
	s.OnDelivered, s.OnDead = cloneCallback(s.OnDelivered), cloneCallback(s.OnDead)
	return s
}

func cloneHeader(h map[string][]string) map[string][]string {
	h = maps.Clone(h)
	for name, values := range h {
		h[name] = slices.Clone(values)
	}
	return h
}

func cloneCallback(c *policy.Callback) *policy.Callback {
	if c == nil {
		return nil
	}
	own := *c
	own.Headers = cloneHeader(own.Headers)
	own.Include = slices.Clone(own.Include)
	if own.Retries != nil {
		own.Retries = new(*own.Retries)
	}
	return &own
}
