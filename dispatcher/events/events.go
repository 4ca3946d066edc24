// Package events makes one job of an event for each lane of its topic that subscribes to it.
//
//	Send ─▶ internal job with the event and its lanes ─▶ Step: jobs to the outbox, in parts ─▶ carrier ─▶ queues
//
// An event is an internal job, in the queue of its topic's events. Its steps write the jobs to the outbox in the same
// settlement that notes how far it is, so that each lane gets one job whatever crashes, and the event ends with the
// last part. It is kept as the policy of job.EventTopic says. Jobs have ids that follow from the event
// and the lane.
//
// The lanes are those that subscribe when the event is due: of one that is due at once, when it is sent.
package events

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// partJobs and partBytes bound the jobs of a step, and their bodies together.
	partJobs  = store.MaxEventLanes
	partBytes = 4 << 20
	// maxRefused bounds the lanes whose refusal is kept.
	maxRefused = 20
)

// Jobs is the part of the store that holds events.
type Jobs interface {
	internaljobs.Jobs
	Get(ctx context.Context, ref job.Ref) (job.Job, error)
	StatusOnAny(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error)
	ShardOf(q job.Queue) int
}

// Registrar registers events, and prepares their jobs as a registration would.
type Registrar interface {
	// InsertJobs registers internal jobs within the quotas of their namespaces.
	InsertJobs(ctx context.Context, jobs []store.NewJob) []store.RoutedResult
	// PrepareJobs prepares jobs. With an error it returns those before the first that was refused.
	PrepareJobs(ctx context.Context, jobs []job.New) ([]store.NewJob, error)
	// Seal seals the secrets of a job that is stored as a part of an event.
	Seal(n *job.New)
}

// Service sends, expands and shows the events of a store. It is safe for concurrent use.
type Service struct {
	Jobs          Jobs
	Registrar     Registrar
	Subscriptions *Subscriptions
	// Observe is called with the numbers of an event's jobs, and of lanes whose job was refused, when it ends, before
	// that is recorded; nil: it is not.
	Observe func(namespace, topic string, jobs int64, refused int)
}

// progress is the body of an event's internal job.
type progress struct {
	store.EventSpec

	// Lanes are those that get a job, in order; nil: they are found by steps, in order of name after the last one.
	Lanes []string `json:"lanes,omitzero"`
	Last  string   `json:"last,omitempty"`
	// Made are the lanes that got a job, up to store.MaxEventLanes.
	Made    []string             `json:"made,omitempty"`
	Count   int64                `json:"count,omitempty"`
	Refused []store.EventRefusal `json:"refused,omitempty"`
	// WaitingFor is why the rest of the jobs wait.
	WaitingFor string `json:"waiting_for,omitempty"`
}

func queueOf(namespace, topic string) job.Queue {
	return job.Queue{Namespace: namespace, Topic: job.EventTopic, Lane: topic}
}

func refOf(namespace, id string) job.Ref {
	return job.Ref{Namespace: namespace, ID: job.EventIDPrefix + id}
}

// Send registers events of a namespace, and returns a result for each. actor is the name of the client. Errors:
// *job.InvalidError, *job.TakenError, *job.QuotaError, store.ErrUnavailable.
func (s *Service) Send(ctx context.Context, namespace, actor string, all []store.EventSpec) []store.SentEvent {
	results := make([]store.SentEvent, len(all))
	records := make([]store.NewJob, 0, len(all))
	at := make([]int, 0, len(all))
	for i := range all {
		record, _, err := s.record(ctx, namespace, actor, all[i])
		if err != nil {
			results[i].Err = err
			continue
		}
		records, at = append(records, record), append(at, i)
	}
	for k, inserted := range s.Registrar.InsertJobs(ctx, records) {
		r := &results[at[k]]
		switch {
		case inserted.Err != nil:
			r.Err = inserted.Err
		case inserted.Outcome == store.Conflict:
			r.Err = &job.TakenError{ID: all[at[k]].ID}
		default:
			r.Event = decode(&inserted.Job)
			r.Event.Known = inserted.Outcome == store.Existing
			r.Event.Expanded = r.Event.Expanded || r.Event.Chosen // in a moment
		}
	}
	return results
}

// record returns the internal job of an event, and the lanes that subscribe to it now, in order of name.
func (s *Service) record(
	ctx context.Context, namespace, actor string, e store.EventSpec,
) (record store.NewJob, lanes []string, err error) {
	q := queueOf(namespace, e.Job.Topic)
	if e.ID != "" {
		fingerprint := sha256.New()
		if err := json.NewEncoder(fingerprint).Encode(&e); err != nil {
			return store.NewJob{}, nil, err
		}
		record.Fingerprint = fingerprint.Sum(nil)
	} else {
		e.ID = job.NewID(time.Now(), s.Jobs.ShardOf(q))
	}
	s.Registrar.Seal(&e.Job)
	if lanes, err = s.lanes(ctx, namespace, &e); err != nil {
		return store.NewJob{}, nil, err
	}
	if len(lanes)*len(e.Job.Body) > store.MaxEventBytes && !s.IsKnown(ctx, namespace, &e) {
		return store.NewJob{}, nil, &job.InvalidError{Errors: []job.FieldError{{
			Field:  "/body",
			Detail: fmt.Sprintf("is too large for %d lanes: all copies together must be at most 64 MiB", len(lanes)),
		}}}
	}
	p := progress{EventSpec: e}
	if e.Job.Delay <= 0 && !e.Job.RunAt.After(time.Now()) && len(lanes) <= store.MaxEventLanes {
		p.Lanes = append([]string{}, lanes...) // not nil
	}
	body, err := json.Marshal(&p)
	record.New = job.New{Spec: job.Spec{
		ID: job.EventIDPrefix + e.ID, Queue: q, CreatedBy: actor, BodyKind: job.BodyJSON, Body: body,
		Labels: labelsOf(&e),
	}, Delay: e.Job.Delay, RunAt: e.Job.RunAt}
	return record, lanes, err
}

// IsKnown reports whether an event was sent before: whether it is the same is for the store to say.
func (s *Service) IsKnown(ctx context.Context, namespace string, e *store.EventSpec) bool {
	known, err := s.Jobs.StatusOnAny(ctx, []job.Ref{refOf(namespace, e.ID)})
	return err == nil && known[0].Known()
}

// lanes returns the lanes that subscribe to an event, in order of name.
func (s *Service) lanes(ctx context.Context, namespace string, e *store.EventSpec) ([]string, error) {
	return s.Subscriptions.Find(ctx, namespace, e.Job.Topic,
		func(of *policy.Subscription) bool { return of.Matches(e.Type, e.Job.Labels) })
}

// Preview returns an event as it would be sent now. Without an id of the client its jobs have none.
func (s *Service) Preview(ctx context.Context, namespace, actor string, e store.EventSpec) (store.Event, error) {
	chosen := e.ID
	record, lanes, err := s.record(ctx, namespace, actor, e)
	if err != nil {
		return store.Event{}, err
	}
	now := job.Millis(time.Now())
	found := decode(&job.Job{Spec: record.Spec, Progress: job.Progress{CreatedAt: now, FirstDueAt: now}})
	found.Lanes = lanesOf(found.ID, e.Job.Topic, lanes[:min(len(lanes), store.MaxEventLanes)])
	found.ID, found.Jobs = chosen, int64(len(lanes))
	if chosen == "" {
		for i := range found.Lanes {
			found.Lanes[i].JobID = ""
		}
	}
	return found, nil
}

// Step makes the next jobs of an event.
func (s *Service) Step(ctx context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
	var p progress
	if err := json.Unmarshal(j.Body, &p); err != nil {
		return internaljobs.Step{}, fmt.Errorf("read an event: %w", err)
	}
	left, err := s.left(ctx, j.Namespace, &p)
	if err != nil {
		return internaljobs.Step{}, err
	}
	part := left[:min(len(left), partJobs, max(1, partBytes/max(1, len(p.Job.Body))))]
	made, wait, err := s.prepare(ctx, j, &p, part)
	if err != nil {
		return internaljobs.Step{}, err
	}
	step := internaljobs.Step{Outbox: made, Wait: wait, Done: len(left) == 0 || p.Last == left[len(left)-1]}
	if step.Done && s.Observe != nil {
		s.Observe(j.Namespace, p.Job.Topic, p.Count, len(p.Refused))
	}
	step.Body, err = json.Marshal(&p)
	return step, err
}

// left returns the lanes that have not been treated yet, in order of name.
func (s *Service) left(ctx context.Context, namespace string, p *progress) ([]string, error) {
	lanes := p.Lanes
	if lanes == nil {
		var err error
		if lanes, err = s.lanes(ctx, namespace, &p.EventSpec); err != nil {
			return nil, err
		}
	}
	for i, lane := range lanes {
		if lane > p.Last {
			return lanes[i:], nil
		}
	}
	return nil, nil
}

// prepare returns the jobs of lanes, and notes them. Lanes whose job is refused are noted, too; after some of them it
// ends, since each makes it begin anew. wait is set if a quota is full: then the lanes from there on are left.
func (s *Service) prepare(
	ctx context.Context, j *store.ClaimedJob, p *progress, lanes []string,
) (made []store.NewJob, wait time.Duration, err error) {
	p.WaitingFor = ""
	jobs := make([]job.New, len(lanes))
	for i, lane := range lanes {
		jobs[i].Lane, jobs[i].CreatedBy = lane, j.CreatedBy
		p.complete(&jobs[i], j.Namespace, j.CreatedAt)
		jobs[i].ID = job.EventJobID(p.ID, p.Job.Topic, lane)
	}
	made, errs := s.prepareAll(ctx, jobs)
	for i, err := range errs {
		if err == nil {
			if p.Count++; len(p.Made) < store.MaxEventLanes {
				p.Made = append(p.Made, lanes[i])
			}
		} else if wait, over := internaljobs.QuotaWait(err); over {
			p.WaitingFor = internaljobs.Reason(err)
			return made, wait, nil
		} else if !internaljobs.IsRefused(err) {
			return nil, 0, err
		} else if len(p.Refused) < maxRefused {
			p.Refused = append(p.Refused, store.EventRefusal{Lane: lanes[i], Reason: internaljobs.Reason(err)})
		}
		p.Last = lanes[i]
	}
	return made, 0, nil
}

// prepareAll prepares jobs, and returns an error or nil for each up to the first that is not refused for good, or up to
// some that are, since each makes it begin anew.
func (s *Service) prepareAll(ctx context.Context, jobs []job.New) (made []store.NewJob, errs []error) {
	for refused := 0; len(errs) < len(jobs) && refused < maxRefused; refused++ {
		prepared, err := s.Registrar.PrepareJobs(ctx, jobs[len(errs):])
		made, errs = append(made, prepared...), append(errs, make([]error, len(prepared))...)
		if err != nil {
			errs = append(errs, err)
		}
		if err != nil && !internaljobs.IsRefused(err) {
			break
		}
	}
	return made, errs
}

// complete makes the job of a lane, whose Lane, CreatedBy and RunAt are set. Its time to expire counts from since.
func (p *progress) complete(n *job.New, namespace string, since time.Time) {
	lane, actor := n.Lane, n.CreatedBy
	n.Spec, n.ExpiresAt = p.Job.Spec, p.Job.ExpiresAt
	if p.Job.ExpiresIn > 0 {
		n.ExpiresAt = since.Add(p.Job.ExpiresIn)
	}
	n.Queue = job.Queue{Namespace: namespace, Topic: p.Job.Topic, Lane: lane}
	n.Origin, n.CreatedBy, n.Labels = p.ID, actor, labelsOf(&p.EventSpec)
}

// labelsOf returns the labels of an event and its jobs: those that it was sent with, and its type.
func labelsOf(e *store.EventSpec) map[string]string {
	labels := maps.Clone(e.Job.Labels)
	if labels == nil {
		labels = make(map[string]string, 1)
	}
	labels[job.LabelEvent] = e.Type
	return labels
}
