// Package schedules serves the requests about schedules, in front of an interface that it declares.
package schedules

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/content"
	"github.com/ringback/ringback/api/cursor"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/api/scope"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/schedule"
	"github.com/ringback/ringback/store"
)

// Service stores schedules, whose ticks register jobs.
type Service interface {
	// PutSchedule creates or replaces a schedule by change, which gets the stored one. ifRevision is as for
	// store.CheckCondition. Errors: that of change, *job.InvalidError, *job.LimitError.
	PutSchedule(
		ctx context.Context, namespace, name string, ifRevision int64, change func(*store.Schedule) error,
	) (store.Schedule, error)
	// ChangeSchedule changes the pause or the backfill of a schedule. store.ErrNotFound.
	ChangeSchedule(
		ctx context.Context, namespace, name string, ifRevision int64, change func(*store.Schedule) error,
	) (store.Schedule, error)
	Schedule(ctx context.Context, namespace, name string) (store.Schedule, error)
	// ListSchedules returns schedules in order of name, at most limit after a name.
	ListSchedules(ctx context.Context, namespace, after string, limit int) ([]store.Schedule, error)
	// DeleteSchedule removes a schedule that check accepts.
	DeleteSchedule(
		ctx context.Context, namespace, name string, ifRevision int64, check func(*store.Schedule) error,
	) error
	// RunSchedule registers a job of a schedule that check accepts at once. Errors: those of a registration,
	// store.ErrNotFound.
	RunSchedule(
		ctx context.Context, namespace, name, actor string, check func(*store.Schedule) error,
	) (store.RoutedResult, error)
}

// Options configures Handlers.
type Options struct {
	Service Service
	// MaxBody bounds a job's body, in bytes.
	MaxBody int64
	// Audit logs a change.
	Audit func(r *http.Request, action access.Action, args ...any)
	// ServeList answers with a list of at most limit items, whose members write encodes.
	ServeList func(w http.ResponseWriter, r *http.Request, limit int, write func(*response.Buffer) error) error
	// AnswerJob answers with a job.
	AnswerJob func(w http.ResponseWriter, r *http.Request, status int, j *job.Job)
}

// Handlers serves requests. It is safe for concurrent use.
type Handlers struct{ opts Options }

// New returns Handlers.
func New(opts Options) *Handlers { return &Handlers{opts} }

// maxLimit is the default of the parameter limit, and its bound: schedules may be large.
const maxLimit = 100

// Put creates or replaces a schedule.
func (h *Handlers) Put(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathNewSchedule(r)
	if err != nil {
		return err
	}
	dry, err := request.DryRun(r)
	if err != nil {
		return err
	}
	text, err := content.ReadJSON(w, r, content.Limit(store.MaxScheduleBody))
	if err != nil {
		return err
	}
	return h.write(w, r, name, http.StatusOK, h.opts.Service.PutSchedule, store.DryRun(func(
		stored *store.Schedule,
	) error {
		was := *stored
		if p := request.DecodeSchedule(text, stored, h.opts.MaxBody, access.PrincipalOf(r.Context()).Actor); p != nil {
			return p
		}
		if err := scope.AdmitTemplate(r.Context(), &stored.Job); err != nil {
			return err
		}
		if was.Revision == 0 {
			stored.CreatedBy = access.PrincipalOf(r.Context()).Actor
			return nil
		}
		return checkTopic(r.Context(), &was)
	}, dry))
}

// checkTopic returns store.ErrNotFound for a schedule of a topic that the request's token may not use, or whose topic
// is not known because it is unreadable.
func checkTopic(ctx context.Context, s *store.Schedule) error {
	topic := s.Job.Topic
	if s.HasSettings() {
		topic = cmp.Or(topic, job.DefaultTopic)
	}
	if scope.CheckTopic(ctx, topic) != nil {
		return store.ErrNotFound
	}
	return nil
}

// checkTopicOf returns checkTopic for a request.
func checkTopicOf(r *http.Request) func(*store.Schedule) error {
	return func(s *store.Schedule) error { return checkTopic(r.Context(), s) }
}

// Pause pauses a schedule.
func (h *Handlers) Pause(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err != nil {
		return err
	}
	note, err := request.ReadPause(w, r)
	if err != nil {
		return err
	}
	return h.change(w, r, name, http.StatusOK, func(stored *store.Schedule) error {
		stored.Pause = request.NewPause(r, stored.Paused, stored.Pause, note)
		stored.Paused = true
		return nil
	})
}

// Resume resumes a schedule.
func (h *Handlers) Resume(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err == nil {
		err = content.RequireNoBody(r)
	}
	if err != nil {
		return err
	}
	return h.change(w, r, name, http.StatusOK, func(stored *store.Schedule) error {
		stored.Paused, stored.Pause = false, policy.Pause{}
		return nil
	})
}

// Backfill runs the ticks of a past time, or counts them.
func (h *Handlers) Backfill(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err != nil {
		return err
	}
	now := job.Millis(time.Now())
	order, dryRun, err := request.ReadBackfill(w, r, now)
	if err != nil {
		return err
	}
	order.CreatedAt, order.Actor = now, access.PrincipalOf(r.Context()).Actor
	found, err := h.find(r, name)
	if err != nil {
		return err
	}
	if order.Total, err = countTicks(&found, &order); err != nil {
		return err
	}
	if dryRun {
		response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.BackfillCount(order.Total) })
		return nil
	}
	err = h.change(w, r, name, http.StatusAccepted, func(stored *store.Schedule) error {
		total, err := countTicks(stored, &order)
		if err == nil {
			order.Total, stored.Backfill = total, new(order)
		}
		return err
	})
	if err == nil {
		h.opts.Audit(r, access.BackfillSchedule, "schedule", name, "topic", cmp.Or(found.Job.Topic, job.DefaultTopic),
			"after", order.After, "before", order.Before, "ticks", order.Total)
	}
	return err
}

// countTicks counts the ticks of a backfill.
func countTicks(s *store.Schedule, order *store.Backfill) (total int64, err error) {
	if s.Unreadable {
		return 0, store.ErrUnreadable
	}
	ticks, err := schedule.Parse(s.Spec)
	if err != nil {
		return 0, err
	}
	if total, _ = ticks.Count(order.After.Add(-1), order.Before.Add(-1), store.MaxBackfill+
		1); total > store.MaxBackfill {
		return 0, response.Invalid(job.FieldError{
			Field:  "/before",
			Detail: fmt.Sprintf("selects more than %d ticks: backfill a shorter time", store.MaxBackfill),
		})
	}
	return total, nil
}

// change changes a schedule and answers with it.
func (h *Handlers) change(
	w http.ResponseWriter, r *http.Request, name string, status int, change func(*store.Schedule) error,
) error {
	return h.write(w, r, name, status, h.opts.Service.ChangeSchedule, func(stored *store.Schedule) error {
		if err := checkTopic(r.Context(), stored); err != nil {
			return err
		}
		return change(stored)
	})
}

// write writes a schedule and answers with it.
func (h *Handlers) write(
	w http.ResponseWriter, r *http.Request, name string, status int,
	write func(
		ctx context.Context, namespace, name string, ifRevision int64, change func(*store.Schedule) error,
	) (store.Schedule, error),
	change func(*store.Schedule) error,
) error {
	ifRevision, err := content.IfRevision(r)
	if err != nil {
		return err
	}
	written, err := write(r.Context(), access.PrincipalOf(r.Context()).Namespace, name, ifRevision, change)
	if err != nil {
		return noSchedule(err)
	}
	h.answer(w, r, status, &written)
	return nil
}

// Run registers a job of a schedule beside its ticks.
func (h *Handlers) Run(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err == nil {
		err = content.RequireNoBody(r)
	}
	if err != nil {
		return err
	}
	p := access.PrincipalOf(r.Context())
	result, err := h.opts.Service.RunSchedule(r.Context(), p.Namespace, name, p.Actor, checkTopicOf(r))
	if err != nil {
		return noSchedule(err)
	}
	h.opts.Audit(r, access.RunSchedule, "schedule", name, "topic", result.Job.Topic, "job", result.Job.ID)
	w.Header()["Location"] = []string{"/v1/jobs/" + result.Job.ID}
	h.opts.AnswerJob(w, r, http.StatusCreated, &result.Job)
	return nil
}

// Delete removes a schedule.
func (h *Handlers) Delete(w http.ResponseWriter, r *http.Request) error {
	name, ifRevision, err := content.Bodiless(r, request.PathSchedule)
	if err == nil {
		err = noSchedule(h.opts.Service.DeleteSchedule(r.Context(), access.PrincipalOf(r.Context()).Namespace, name,
			ifRevision, checkTopicOf(r)))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Get answers with a schedule.
func (h *Handlers) Get(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err != nil {
		return err
	}
	found, err := h.find(r, name)
	if err != nil {
		return err
	}
	found.Durability = nil // of a change only
	h.answer(w, r, http.StatusOK, &found)
	return nil
}

// find reads a schedule. One that the request's token may not see is not found.
func (h *Handlers) find(r *http.Request, name string) (store.Schedule, error) {
	found, err := h.opts.Service.Schedule(r.Context(), access.PrincipalOf(r.Context()).Namespace, name)
	if err == nil {
		err = checkTopic(r.Context(), &found)
	}
	return found, noSchedule(err)
}

// List answers with a page of schedules. A token that is restricted to topics sees those whose jobs are of one of them.
func (h *Handlers) List(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	after, limit := q.Cursor(cursor.Schedules), q.Limit(maxLimit)
	if limit > maxLimit {
		q.AddError("?limit", fmt.Sprintf("must be 1 to %d", maxLimit))
	}
	if err := q.Err(); err != nil {
		return err
	}
	// some are as large as several jobs
	return h.opts.ServeList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
		found, err := h.visible(r, after, limit)
		if err != nil {
			return err
		}
		shown := found[:min(limit, len(found))]
		response.Objects(o, "items", shown, func(s *store.Schedule) {
			scope.HideTemplate(r, &s.Job)
			o.Schedule(s)
		})
		if len(found) > len(shown) {
			o.Text("next_cursor", cursor.Schedules.Encode(shown[len(shown)-1].Name))
		} else {
			o.Null("next_cursor")
		}
		return nil
	})
}

// visible reads at most limit schedules after a name that the request's token may see, and one more unless there is
// none.
func (h *Handlers) visible(r *http.Request, after string, limit int) (visible []store.Schedule, err error) {
	for {
		found, err := h.opts.Service.ListSchedules(r.Context(),
			access.PrincipalOf(r.Context()).Namespace, after, limit+1)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if after = found[i].Name; checkTopic(r.Context(), &found[i]) == nil {
				visible = append(visible, found[i])
			}
		}
		if len(found) <= limit || len(visible) > limit {
			return visible, nil
		}
	}
}

// Preview answers with the ticks of a schedule that is not stored.
func (h *Handlers) Preview(w http.ResponseWriter, r *http.Request) error {
	ticks, after, n, err := request.NewQuery(r).Preview(time.Now())
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Preview(ticks, after, n) })
	return nil
}

// answer answers with a schedule.
func (h *Handlers) answer(w http.ResponseWriter, r *http.Request, status int, s *store.Schedule) {
	w.Header().Set("Etag", content.ETag(s.Revision))
	scope.HideTemplate(r, &s.Job)
	response.Answer(w, status, func(o *response.Buffer) {
		o.ShowHeadersTo(access.PrincipalOf(r.Context()))
		o.Schedule(s)
	})
}

// noSchedule explains how a schedule is created.
func noSchedule(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return response.NewProblem(response.NotFound, "no such schedule: create it with PUT /v1/schedules/NAME")
	}
	return err
}
