package api

import (
	"net/http"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// onlyDead is the hint for jobs in other states.
const onlyDead = "only dead jobs can be revived or purged here"

// dead answers with a page of dead letters.
func (a *api) dead(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	filter := q.Filter(job.Dead)
	if err := q.Err(); err != nil {
		return err
	}
	if err := checkTopic(r.Context(), filter.Topic); err != nil {
		return err
	}
	return a.serveJobs(w, r, filter)
}

// deadGroups answers with the groups of dead letters.
func (a *api) deadGroups(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	by, filter := q.GroupBy(), q.Filter(job.Dead)
	if err := q.Err(); err != nil {
		return err
	}
	if err := checkTopic(r.Context(), filter.Topic); err != nil {
		return err
	}
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error { // the service reads as many at a time
		found, err := a.service.Groups(r.Context(), filter, by)
		if err == nil {
			o.Groups(found)
		}
		return err
	})
}

// reviveDead revives dead letters.
func (a *api) reviveDead(w http.ResponseWriter, r *http.Request) error {
	f, err := a.readDeadLetters(w, r, true)
	if err != nil {
		return err
	}
	f.Actor = actorOf(r.Context())
	done, err := a.service.ReviveDead(r.Context(), f.Selection, f.RevivePlan)
	a.auditDead(r, access.ReviveDead, f, done, err)
	if err != nil {
		return err
	}
	a.answerBulk(w, "revived", f.DryRun, done)
	return nil
}

// purgeDead removes dead letters.
func (a *api) purgeDead(w http.ResponseWriter, r *http.Request) error {
	f, err := a.readDeadLetters(w, r, false)
	if err != nil {
		return err
	}
	done, err := a.service.PurgeDead(r.Context(), f.Selection)
	a.auditDead(r, access.PurgeDead, f, done, err)
	if err != nil {
		return err
	}
	a.answerBulk(w, "purged", f.DryRun, done)
	return nil
}

// readDeadLetters reads a selection, whose topic the request's token must allow.
func (a *api) readDeadLetters(w http.ResponseWriter, r *http.Request, revival bool) (request.DeadLetterRequest, error) {
	f, err := request.ReadDeadLetters(w, r, revival)
	if err == nil {
		err = checkTopic(r.Context(), f.Filter.Topic)
	}
	return f, err
}

// auditDead logs a revival or a purge.
func (a *api) auditDead(r *http.Request, action access.Action, f request.DeadLetterRequest, worked store.BulkResult, err error) {
	if f.DryRun || err != nil && response.FromError(err).Status < http.StatusInternalServerError {
		return // nothing was changed
	}
	args := []any{"topic", f.Filter.Topic, "matched", worked.Matched, "done", worked.Done, "failed", len(worked.Failed), "more", worked.More}
	switch {
	case len(f.IDs) > 0:
		args = append(args, "ids", len(f.IDs))
	case f.All:
		args = append(args, "all", true)
	}
	if f.Filter.Lane != "" {
		args = append(args, "lane", f.Filter.Lane)
	}
	if err != nil { // some jobs may have been changed before
		args = append(args, "err", err)
	}
	a.audit(r, action, args...)
}

// roundUp rounds a delay up to milliseconds, so that no attempt starts too early.
func roundUp(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// answerBulk answers with the result of a revival or a purge. done is the name of the count.
func (a *api) answerBulk(w http.ResponseWriter, done string, dry bool, worked store.BulkResult) {
	response.Answer(w, http.StatusOK, func(o *response.Buffer) {
		o.Bool("dry_run", dry)
		o.Number("matched", worked.Matched)
		o.Number(done, worked.Done)
		response.Objects(o, "failed", worked.Failed, func(f *store.BulkFailure) {
			p := response.FromError(response.WithHint(f.Err, onlyDead))
			if p.Status == http.StatusInternalServerError {
				a.log.Error("change of a dead letter failed", "job", f.ID, "err", f.Err)
			}
			o.Text("id", f.ID)
			o.Problem("error", p)
		})
		o.Bool("more", worked.More)
		if done == "revived" {
			o.DurationOrNull("next_delay", roundUp(worked.NextDelay))
		}
	})
}
