package sim

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// workBody is what the ledger knows of bulk work: the body of its internal job.
type workBody struct {
	store.WorkOrder
	store.WorkCounts
	Left []string `json:"ids"`
	Plan []struct {
		ID string `json:"i"`
	} `json:"plan"`
}

func (l *ledger) workBody(e *entry, body []byte) (b workBody) {
	if err := json.Unmarshal(body, &b); err != nil {
		l.breach("%s: %v", e.spec.ID, err)
	}
	return b
}

// works returns the entries of bulk work, whoever was told of it.
func (l *ledger) works() (all []*entry) {
	for _, e := range l.entries {
		if e.spec.Topic == job.WorkTopic {
			all = append(all, e)
		}
	}
	return all
}

// plan notes the jobs that the next step of bulk work treats.
func (l *ledger) plan(e *entry) {
	b := l.workBody(e, e.body)
	clear(e.plan)
	for _, t := range b.Plan {
		e.plan[t.ID], e.planned[t.ID] = true, true
	}
	if e.state == job.Delivered {
		l.checkWorkEnd(e, &b)
	}
}

// planner returns the actor that removes a job, if only one bulk work plans it: nobody is named in what was removed.
func (l *ledger) planner(id string) (actor string) {
	found := 0
	for _, e := range l.works() {
		if e.plan[id] && l.workBody(e, e.first).Action == store.WorkPurge {
			actor = actorOf(e)
			found++
		}
	}
	switch found {
	case 0:
		l.breach("%s: was removed by nobody", id)
	case 1:
		return actor
	}
	return ""
}

// hasSkipped reports whether bulk work has counted a job as one that it does not treat.
func (l *ledger) hasSkipped(actor, id string) bool {
	return slices.ContainsFunc(l.works(), func(e *entry) bool {
		return actorOf(e) == actor && slices.ContainsFunc(l.workBody(e, e.body).Failures,
			func(f store.WorkFailure) bool { return f.ID == id })
	})
}

func actorOf(e *entry) string { return "work:" + strings.TrimPrefix(e.spec.ID, job.WorkIDPrefix) }

// checkWorkEnd checks that bulk work which ends has left no job that it should have treated: one that has been selected
// by its order, and was not touched, since before it began.
func (l *ledger) checkWorkEnd(work *entry, b *workBody) {
	named := l.workBody(work, work.first).Left
	if b.Action == store.WorkReplay {
		l.checkReplayEnd(work, b, named)
		return
	}
	reasons := make(map[string]string)
	for _, f := range b.Failures {
		reasons[f.ID] = f.Reason
	}
	for ref, e := range l.entries {
		isSelected := b.Filter.SelectsTopic(e.spec.Topic) && (b.Filter.Lane == "" || b.Filter.Lane == e.spec.Lane)
		if b.IDCount > 0 {
			isSelected = slices.Contains(named, ref.ID)
		}
		// After a step of the clock it may have been registered, or have ended, later by the store's clock.
		if !isSelected || !e.moved.Before(work.registered) || e.open || e.isMarked || e.isPurged ||
			l.stepped.After(e.registered) || e.isInternal() {
			continue
		}
		var isLeft bool
		switch b.Action {
		case store.WorkRevive, store.WorkPurge:
			isLeft = slices.Contains(b.Filter.States, e.state)
		case store.WorkRun:
			isLeft = e.state == "" && e.due.After(l.w.clock())
		case store.WorkCancel, store.WorkEdit:
			isLeft = e.state == ""
		}
		isFailed := strings.HasPrefix(reasons[ref.ID], "the job would expire") && !e.expires.IsZero() ||
			reasons[ref.ID] == "due before its turn" && (b.Rate.Limited() || b.LaneRate.Limited())
		if isLeft && !isFailed {
			l.breach("%s: %s has ended and has not treated %s, which is %q since before: %q",
				work.spec.ID, b.Action, ref.ID, e.state, reasons[ref.ID])
		}
	}
}

// checkWork checks that bulk work has treated each of its jobs once, and says why it has not treated some.
func (w *world) checkWork(ctx context.Context) {
	p := w.reader()
	for _, e := range w.ledger.works() {
		id := strings.TrimPrefix(e.spec.ID, job.WorkIDPrefix)
		found, err := p.Work(ctx, job.DefaultNamespace, id)
		if err != nil {
			w.ledger.breach("%s: %v", e.spec.ID, err)
			continue
		}
		// Of a job that is gone nothing is known any more.
		most := w.ledger.changes[actorOf(e)]
		least := most - w.ledger.gone[actorOf(e)]
		if found.Action == store.WorkPurge {
			most = w.ledger.removed(e)
		}
		isStopped := found.State == store.WorkStopped && e.askedCancel // a step that was lost is not repeated
		switch {
		case !isStopped && (found.State != store.WorkDone || found.Matched != found.Treated()):
			w.ledger.breach("%s: is %s: matched %d, %d done, %d failed, %d skipped",
				e.spec.ID, found.State, found.Matched, found.Done, found.Failed, found.Skipped)
		case found.Done > most, found.Done < least && !isStopped:
			w.ledger.breach("%s: to %s of %s says %d done, %d to %d jobs were changed",
				e.spec.ID, found.Action, found.Actor, found.Done, least, most)
		case int64(len(found.Failures)) != found.Failed+found.Skipped:
			w.ledger.breach("%s: has %d failed, %d skipped, and says why of %d",
				e.spec.ID, found.Failed, found.Skipped, len(found.Failures))
		}
		for _, f := range found.Failures {
			if f.Reason == "" || strings.HasPrefix(f.Reason, "internal error") {
				w.ledger.breach("%s: has failed for %s: %q", e.spec.ID, f.ID, f.Reason)
			}
		}
	}
}

// removed counts the jobs that bulk work has planned and that were removed, perhaps by another.
func (l *ledger) removed(work *entry) (n int64) {
	for id := range work.planned {
		if l.entries[job.Ref{Namespace: job.DefaultNamespace, ID: id}].isPurged {
			n++
		}
	}
	return n
}
