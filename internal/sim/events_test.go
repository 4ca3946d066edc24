package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// send sends events, again with the same ids until all are answered.
func (w *world) send(r *rand.Rand) {
	all := make([]store.EventSpec, 1+r.IntN(4))
	for i := range all {
		e := &all[i]
		w.events++
		e.ID, e.Type = fmt.Sprint("e", w.events), one(r, "order.paid", "order.shipped", "user.new")
		e.Job.Topic, e.Job.Body, e.Job.BodyKind = one(r, topics...), []byte(e.ID), job.BodyText
		e.Job.Delay = one(r, 0, 0, time.Duration(r.IntN(20_000))*time.Millisecond)
	}
	if r.IntN(2) == 0 { // perhaps in a step
		w.remove(r, one(r, names...), (*process).doom)
	}
	w.client(r, 6, func(ctx context.Context, p *process) (failed error) {
		for i, sent := range p.SendEvents(ctx, job.DefaultNamespace, "", all) {
			if sent.Err != nil {
				failed = sent.Err
				continue
			}
			w.ledger.sent(all[i].ID)
		}
		return failed
	})
}

// sent notes the answer to a client that its event is sent.
func (l *ledger) sent(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.get(job.Ref{Namespace: job.DefaultNamespace, ID: job.EventIDPrefix + id}, "an event that was answered as sent")
}

// eventBody is what the ledger knows of an event: the body of its internal job.
type eventBody struct {
	store.EventSpec

	Made    []string             `json:"made"`
	Refused []store.EventRefusal `json:"refused"`
	Count   int                  `json:"count"`
}

// treated returns the lanes that have a job, or were refused one.
func (b *eventBody) treated() []string {
	all := slices.Clone(b.Made)
	for _, refused := range b.Refused {
		all = append(all, refused.Lane)
	}
	return all
}

// subscribed returns how many of the settings that a lane had at some time after another select an event, and whether
// all of them do.
func (l *ledger) subscribed(q job.Queue, b *eventBody, at time.Time) (n int, all bool) {
	settings := since(l.lanes[q], at)
	if len(settings) == 0 || l.lanes[q][0].from.After(at) {
		settings = append(settings, policy.Lane{})
	}
	for i := range settings {
		if settings[i].Matches(b.Type, b.Job.Labels) {
			n++
		}
	}
	return n, n == len(settings)
}

// expand checks a step of an event, before its jobs are noted: each subscribed lane gets one, and no other lane does.
func (l *ledger) expand(e *entry, s *store.Settlement) {
	var b eventBody
	if err := json.Unmarshal(e.body, &b); err != nil {
		l.breach("%s: %v", s.Ref.ID, err)
		return
	}
	at, made := e.registered.Add(-arrival), make(map[string]bool)
	for i := range s.Outbox {
		n := &s.Outbox[i]
		if made[n.ID] = true; n.ID != job.EventJobID(b.ID, b.Job.Topic, n.Lane) || l.outbox[n.Ref()] {
			l.breach("%s: makes %s for lane %s, which has a job, or one of another id", s.Ref.ID, n.ID, n.Lane)
		}
		if some, _ := l.subscribed(n.Queue, &b, at); some == 0 {
			l.breach("%s: makes %s for lane %s, which has not subscribed", s.Ref.ID, n.ID, n.Lane)
		}
	}
	if s.Verdict.Kind != policy.Delivered {
		return
	}
	if len(b.Made) != b.Count {
		l.breach("%s: has %d jobs, for %v", s.Ref.ID, b.Count, b.Made)
	}
	for _, lane := range b.Made {
		ref := job.Ref{Namespace: s.Ref.Namespace, ID: job.EventJobID(b.ID, b.Job.Topic, lane)}
		if !made[ref.ID] && !l.outbox[ref] {
			l.breach("%s: has ended, and lane %s has no job", s.Ref.ID, lane)
		}
	}
	treated := b.treated()
	for q := range l.lanes {
		if _, all := l.subscribed(q, &b, at); all && q.Topic == b.Job.Topic && !slices.Contains(treated, q.Lane) {
			l.breach("%s: has ended, and has left out lane %s", s.Ref.ID, q.Lane)
		}
	}
}

// replay checks a step of a replay, before its jobs are noted, and counts them.
func (l *ledger) replay(e *entry, s *store.Settlement) {
	work, at := strings.TrimPrefix(e.spec.ID, job.WorkIDPrefix), e.registered.Add(-arrival)
	for i := range s.Outbox {
		n := &s.Outbox[i]
		if n.ID != job.ReplayJobID(n.Origin, n.Topic, n.Lane, work) || l.outbox[n.Ref()] {
			l.breach("%s: makes %s for lane %s, which has a job of it, or one of another id", s.Ref.ID, n.ID, n.Lane)
		}
		b := l.event(n.Origin)
		if some, _ := l.subscribed(n.Queue, &b, at); some == 0 {
			l.breach("%s: makes %s for lane %s, which has not subscribed", s.Ref.ID, n.ID, n.Lane)
		}
	}
	l.changes[actorOf(e)] += int64(len(s.Outbox))
}

// event returns an event that was sent.
func (l *ledger) event(id string) (b eventBody) {
	e := l.get(job.Ref{Namespace: job.DefaultNamespace, ID: job.EventIDPrefix + id}, "an event that is sent again")
	if err := json.Unmarshal(e.body, &b); err != nil {
		l.breach("%s: %v", e.spec.ID, err)
	}
	return b
}

// checkReplayEnd checks that a replay to all lanes has made a job of each event that it selects for each lane that has
// subscribed all the time, or says why it has not.
func (l *ledger) checkReplayEnd(work *entry, b *workBody, named []string) {
	if len(b.Filter.States) > 0 {
		return
	}
	id := strings.TrimPrefix(work.spec.ID, job.WorkIDPrefix)
	for _, e := range l.entries {
		event := strings.TrimPrefix(e.spec.ID, job.EventIDPrefix)
		isSelected := e.spec.Topic == job.EventTopic && b.Filter.SelectsTopic(e.spec.Lane)
		if b.IDCount > 0 {
			isSelected = slices.Contains(named, event)
		}
		hasEnded := e.state == job.Delivered && e.moved.Before(work.registered)
		if !isSelected || !hasEnded || l.stepped.After(e.registered) {
			continue
		}
		of := l.event(event)
		for q := range l.lanes {
			_, all := l.subscribed(q, &of, work.registered.Add(-arrival))
			ref := job.Ref{Namespace: job.DefaultNamespace, ID: job.ReplayJobID(event, q.Topic, q.Lane, id)}
			hasFailed := slices.ContainsFunc(b.Failures, func(f store.WorkFailure) bool {
				return f.ID == event && strings.Contains(f.Reason, q.Lane)
			})
			isAsked := all && q.Topic == of.Job.Topic && (b.Filter.Lane == "" || b.Filter.Lane == q.Lane)
			if isAsked && !l.outbox[ref] && !hasFailed {
				l.breach("%s: has ended and has not sent %s to lane %s again", work.spec.ID, event, q.Lane)
			}
		}
	}
}

// checkEvents checks that each event has ended.
func (l *ledger) checkEvents() {
	for _, e := range l.entries {
		if e.spec.Topic == job.EventTopic && e.state != job.Delivered {
			l.breach("%s: is %q at the end", e.spec.ID, e.state)
		}
	}
}
