package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// onlyDead says why a job was left as it is that has not died.
const onlyDead = "only dead jobs are worked with here"

// dead lists dead letters, of a topic or of all.
func (a *api) dead(w http.ResponseWriter, r *http.Request) error {
	q := newQuery(r, "topic", "lane", "label", "reason", "status", "after", "before", "limit", "cursor")
	filter := q.filter()
	q.checkFilter("?", &filter)
	if err := q.err(); err != nil {
		return err
	}
	return a.answerList(w, r, filter.Limit, func(o *out) error {
		page, err := a.service.Dead(r.Context(), filter)
		if err == nil {
			o.page(page)
		}
		return err
	})
}

// filter reads the parameters of a list; what is wrong with the names in it is for others to find.
func (q *query) filter() store.Filter {
	f := store.Filter{
		Namespace: job.DefaultNamespace,
		Topic:     q.get("topic"),
		Lane:      q.get("lane"),
		Reason:    policy.Reason(q.get("reason")),
		Status:    q.status("status"),
		After:     q.moment("after"),
		Before:    q.moment("before"),
		Limit:     q.limit(listStandard),
		Cursor:    q.get("cursor"),
	}
	q.label("?label", q.get("label"), &f)
	return f
}

// reviveDead sends dead letters on another round.
func (a *api) reviveDead(w http.ResponseWriter, r *http.Request) error {
	f, err := readDead(w, r, true)
	if err != nil {
		return err
	}
	done, err := a.service.ReviveDead(r.Context(), f.Selection, f.RevivePlan)
	a.auditDead(r, "revive", f, done, err)
	if err != nil {
		return err
	}
	a.answerWorked(w, "revived", f.DryRun, done)
	return nil
}

// purgeDead removes dead letters for good.
func (a *api) purgeDead(w http.ResponseWriter, r *http.Request) error {
	f, err := readDead(w, r, false)
	if err != nil {
		return err
	}
	done, err := a.service.PurgeDead(r.Context(), f.Selection)
	a.auditDead(r, "purge", f, done, err)
	if err != nil {
		return err
	}
	a.answerWorked(w, "purged", f.DryRun, done)
	return nil
}

// auditDead logs what was done to dead letters.
func (a *api) auditDead(r *http.Request, action string, f deadForm, worked store.BulkResult, err error) {
	if f.DryRun || err != nil && problemOf(err).status < http.StatusInternalServerError {
		return // nothing was changed
	}
	args := []any{"topic", f.Filter.Topic, "matched", worked.Matched, "done", worked.Done, "failed", len(worked.Failed), "more", worked.More}
	switch {
	case len(f.IDs) > 0:
		args = append(args, "ids", len(f.IDs))
	case f.all:
		args = append(args, "all", true)
	}
	if f.Filter.Lane != "" {
		args = append(args, "lane", f.Filter.Lane)
	}
	if err != nil { // some may have been worked with before it
		args = append(args, "err", err)
	}
	a.audit(r, action, args...)
}

func readDead(w http.ResponseWriter, r *http.Request, revival bool) (deadForm, error) {
	text, err := readJSON(w, r, maxSelection)
	if err != nil {
		return deadForm{}, err
	}
	f, p := decodeDead(text, revival)
	if p != nil {
		return f, p
	}
	return f, nil
}

// answerWorked says what became of a selection; done names what was done to it.
func (a *api) answerWorked(w http.ResponseWriter, done string, dry bool, worked store.BulkResult) {
	o := newOut()
	defer o.free()
	o.open()
	o.flag("dry_run", dry)
	o.number("matched", worked.Matched)
	o.number(done, worked.Done)
	o.array("failed")
	for _, f := range worked.Failed {
		p := problemOf(because(f.Err, onlyDead))
		if p.status == http.StatusInternalServerError {
			a.log.Error("a dead letter could not be worked with", "job", f.ID, "err", f.Err)
		}
		o.open()
		o.text("id", f.ID)
		o.key("error")
		p.into(o)
		o.close()
	}
	o.closeArray()
	o.flag("more", worked.More)
	if worked.NextDelay > 0 {
		o.duration("next_delay", worked.NextDelay+time.Millisecond-1) // in whole milliseconds, and no start too early
	}
	o.close()
	o.send(w, http.StatusOK)
}
