package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

// maxSchedules is the default of the parameter limit, and its bound: schedules may be large.
const maxSchedules = 100

func (a *api) scheduleEndpoints() []endpoint {
	const schedule = "/v1/schedules/{schedule}"
	preview := query("cron", "timezone", "every", "offset", "starts_at", "ends_at", "from", "limit")
	conditional := func(e *endpoint) { e.conditions = request.SettingsConditions }
	return []endpoint{
		at("GET /v1/schedules", access.ReadSchedule, ofItems, a.on(onStore.schedules), paged()),
		at("GET /v1/schedules/preview", access.ReadSchedule, ofNone, a.preview, preview),
		at("GET "+schedule, access.ReadSchedule, ofSchedule, a.on(onStore.schedule)),
		at("PUT "+schedule, access.ChangeSchedule, ofRequest, a.on(onStore.putSchedule), query(dryRun), ofSettings),
		at("DELETE "+schedule, access.DeleteSchedule, ofSchedule, a.on(onStore.deleteSchedule), ofSettings),
		at("POST "+schedule+"/run", access.RunSchedule, ofSchedule, a.on(onStore.runSchedule)),
		at("POST "+schedule+"/pause", access.PauseSchedule, ofSchedule, a.on(pauseSchedule), ofSettings),
		at("POST "+schedule+"/resume", access.ResumeSchedule, ofSchedule, a.on(resumeSchedule), ofSettings),
		at("POST "+schedule+"/backfill", access.BackfillSchedule, ofSchedule, a.on(onStore.backfill), conditional),
	}
}

// putSchedule creates or replaces a schedule.
func (a onStore) putSchedule(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathNewSchedule(r)
	if err != nil {
		return err
	}
	dry, err := request.DryRun(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, request.Limit(store.MaxScheduleBody))
	if err != nil {
		return err
	}
	return a.writeSchedule(w, r, name, http.StatusOK, a.store.PutSchedule, store.DryRun(func(
		stored *store.Schedule,
	) error {
		was := *stored
		if p := request.DecodeSchedule(text, stored, a.maxBody, actorOf(r.Context())); p != nil {
			return p
		}
		if err := admitTemplate(r.Context(), &stored.Job); err != nil {
			return err
		}
		if was.Revision == 0 {
			stored.CreatedBy = actorOf(r.Context())
			return nil
		}
		return checkScheduleTopic(r.Context(), &was)
	}, dry))
}

// checkScheduleTopic returns store.ErrNotFound for a schedule of a topic that the request's token may not use, or whose
// topic is not known because it is unreadable.
func checkScheduleTopic(ctx context.Context, s *store.Schedule) error {
	topic := s.Job.Topic
	if s.HasSettings() {
		topic = cmp.Or(topic, job.DefaultTopic)
	}
	if checkTopic(ctx, topic) != nil {
		return store.ErrNotFound
	}
	return nil
}

// checkScheduleOf returns checkScheduleTopic for a request.
func checkScheduleOf(r *http.Request) func(*store.Schedule) error {
	return func(s *store.Schedule) error { return checkScheduleTopic(r.Context(), s) }
}

// pauseSchedule and resumeSchedule pause and resume a schedule.
var pauseSchedule, resumeSchedule = pauses(
	func(_ onStore, r *http.Request) (string, error) { return request.PathSchedule(r) },
	func(a onStore, w http.ResponseWriter, r *http.Request, name string, set setPause) error {
		return a.changeSchedule(w, r, name, http.StatusOK, func(stored *store.Schedule) error {
			set(&stored.Paused, &stored.Pause)
			return nil
		})
	})

// backfill runs the ticks of a past time, or counts them.
func (a onStore) backfill(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err != nil {
		return err
	}
	now := job.Millis(time.Now())
	order, dryRun, err := request.ReadBackfill(w, r, now)
	if err != nil {
		return err
	}
	order.CreatedAt, order.Actor = now, actorOf(r.Context())
	found, err := a.findSchedule(r, name)
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
	err = a.changeSchedule(w, r, name, http.StatusAccepted, func(stored *store.Schedule) error {
		total, err := countTicks(stored, &order)
		if err == nil {
			order.Total, stored.Backfill = total, new(order)
		}
		return err
	})
	if err == nil {
		a.audit(r, access.BackfillSchedule, "schedule", name, "topic", cmp.Or(found.Job.Topic, job.DefaultTopic),
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

// changeSchedule changes a schedule and answers with it.
func (a onStore) changeSchedule(
	w http.ResponseWriter, r *http.Request, name string, status int, change func(*store.Schedule) error,
) error {
	return a.writeSchedule(w, r, name, status, a.store.ChangeSchedule, func(stored *store.Schedule) error {
		if err := checkScheduleTopic(r.Context(), stored); err != nil {
			return err
		}
		return change(stored)
	})
}

// writeSchedule writes a schedule and answers with it.
func (a onStore) writeSchedule(
	w http.ResponseWriter, r *http.Request, name string, status int,
	write func(
		ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
	) (store.Schedule, error),
	change func(*store.Schedule) error,
) error {
	ifRevision, err := request.IfRevision(r)
	if err != nil {
		return err
	}
	written, err := write(r.Context(), namespaceOf(r), name, changeOptions(r, ifRevision), change)
	if err != nil {
		return noSchedule(err)
	}
	a.answerSchedule(w, r, status, &written)
	return nil
}

// runSchedule registers a job of a schedule beside its ticks.
func (a onStore) runSchedule(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err == nil {
		err = request.RequireNoBody(r)
	}
	if err != nil {
		return err
	}
	p := request.PrincipalOf(r.Context())
	result, err := a.store.RunSchedule(r.Context(), p.Namespace, name, p.Actor, checkScheduleOf(r))
	if err != nil {
		return noSchedule(err)
	}
	a.audit(r, access.RunSchedule, "schedule", name, "topic", result.Job.Topic, "job", result.Job.ID)
	w.Header()["Location"] = []string{"/v1/jobs/" + result.Job.ID}
	a.answerJob(w, r, http.StatusCreated, &result.Job)
	return nil
}

// deleteSchedule removes a schedule.
func (a onStore) deleteSchedule(w http.ResponseWriter, r *http.Request) error {
	name, ifRevision, err := request.Bodiless(r, request.PathSchedule)
	if err == nil {
		err = noSchedule(a.store.DeleteSchedule(r.Context(), namespaceOf(r), name,
			ifRevision, checkScheduleOf(r)))
	}
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// schedule answers with a schedule.
func (a onStore) schedule(w http.ResponseWriter, r *http.Request) error {
	name, err := request.PathSchedule(r)
	if err != nil {
		return err
	}
	found, err := a.findSchedule(r, name)
	if err != nil {
		return err
	}
	found.Durability = nil // of a change only
	a.answerSchedule(w, r, http.StatusOK, &found)
	return nil
}

// findSchedule reads a schedule. One that the request's token may not see is not found.
func (a onStore) findSchedule(r *http.Request, name string) (store.Schedule, error) {
	found, err := a.store.Schedule(r.Context(), namespaceOf(r), name)
	if err == nil {
		err = checkScheduleTopic(r.Context(), &found)
	}
	return found, noSchedule(err)
}

// schedules answers with a page of schedules. A token that is restricted to topics sees those whose jobs are of one of
// them.
func (a onStore) schedules(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	after, limit := q.Cursor(request.Schedules), q.Limit(maxSchedules)
	if limit > maxSchedules {
		q.AddError("?limit", fmt.Sprintf("must be 1 to %d", maxSchedules))
	}
	if err := q.Err(); err != nil {
		return err
	}
	// some are as large as several jobs
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
		found, err := a.visibleSchedules(r, after, limit)
		if err != nil {
			return err
		}
		shown := found[:min(limit, len(found))]
		response.Objects(o, "items", shown, func(s *store.Schedule) {
			hideTemplate(r, &s.Job)
			o.Schedule(s)
		})
		if len(found) > len(shown) {
			o.Text("next_cursor", request.Schedules.Encode(shown[len(shown)-1].Name))
		} else {
			o.Null("next_cursor")
		}
		return nil
	})
}

// visibleSchedules reads at most limit schedules after a name that the request's token may see, and one more unless
// there is none.
func (a onStore) visibleSchedules(r *http.Request, after string, limit int) (visible []store.Schedule, err error) {
	for {
		found, err := a.store.ListSchedules(r.Context(),
			namespaceOf(r), after, limit+1)
		if err != nil {
			return nil, err
		}
		for i := range found {
			if after = found[i].Name; checkScheduleTopic(r.Context(), &found[i]) == nil {
				visible = append(visible, found[i])
			}
		}
		if len(found) <= limit || len(visible) > limit {
			return visible, nil
		}
	}
}

// preview answers with the ticks of a schedule that is not stored.
func (a *api) preview(w http.ResponseWriter, r *http.Request) error {
	ticks, after, n, err := request.NewQuery(r).Preview(time.Now())
	if err != nil {
		return err
	}
	response.Answer(w, http.StatusOK, func(o *response.Buffer) { o.Preview(ticks, after, n) })
	return nil
}

// answerSchedule answers with a schedule.
func (a onStore) answerSchedule(w http.ResponseWriter, r *http.Request, status int, s *store.Schedule) {
	hideTemplate(r, &s.Job)
	answerDocument(w, r, status, s.Revision, func(o *response.Buffer) { o.Schedule(s) })
}

// noSchedule explains how a schedule is created.
func noSchedule(err error) error {
	return orNotFound(err, "no such schedule: create it first")
}
