package api

import (
	"errors"
	"net/http"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// lanes lists the lanes of a topic that have settings of their own, in order of name.
func (a *api) lanes(w http.ResponseWriter, r *http.Request) error {
	topic, err := pathTopic(r)
	if err != nil {
		return err
	}
	q := newQuery(r, "limit", "cursor")
	limit, after := q.limit(lanesStandard), q.get("cursor")
	if after != "" && !job.IsLane(after) {
		q.fault("?cursor", "must be the next_cursor of an earlier answer")
	}
	if err := q.err(); err != nil {
		return err
	}
	return a.answerList(w, r, limit, func(o *out) error {
		// One more than is shown tells whether there are more.
		found, err := a.service.LanesPut(r.Context(), job.DefaultNamespace, topic, after, limit+1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if _, err := a.findTopic(r, topic); err != nil {
				return err
			}
		}
		o.open()
		o.array("items")
		for _, l := range found[:min(limit, len(found))] {
			o.open()
			o.lane(l)
			o.close()
		}
		o.closeArray()
		if len(found) > limit {
			o.text("next_cursor", found[limit-1].Queue.Lane)
		}
		o.close()
		return nil
	})
}

// lane shows a lane's own settings.
func (a *api) lane(w http.ResponseWriter, r *http.Request) error {
	q, err := pathLane(r)
	if err != nil {
		return err
	}
	l, err := a.service.Lane(r.Context(), q)
	if err == nil && l.Settings.IsZero() {
		err = store.ErrNotFound
	}
	if err != nil {
		return noLane(err)
	}
	l.Queue, l.Durability = q, nil // durability is of a change, which this is not
	answerLane(w, l)
	return nil
}

// putLane sets all of a lane's settings.
func (a *api) putLane(w http.ResponseWriter, r *http.Request) error {
	return a.formLane(w, r, putSettings)
}

// patchLane changes what is named of a lane's settings.
func (a *api) patchLane(w http.ResponseWriter, r *http.Request) error {
	return a.formLane(w, r, patchSettings)
}

func (a *api) formLane(w http.ResponseWriter, r *http.Request, form func([]byte, policy.Lane) (policy.Lane, *problem)) error {
	q, err := newLane(r)
	if err != nil {
		return err
	}
	text, err := readJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeLane(w, r, q, func(stored *policy.Lane) error {
		changed, p := form(text, *stored)
		if p != nil {
			return p
		}
		*stored = changed
		return nil
	})
}

// pauseLane pauses a lane, or resumes it.
func (a *api) pauseLane(paused bool) handler {
	return func(w http.ResponseWriter, r *http.Request) error {
		q, err := newLane(r)
		if err == nil {
			err = noBody(r)
		}
		if err != nil {
			return err
		}
		return a.changeLane(w, r, q, func(stored *policy.Lane) error {
			stored.Paused = paused
			return nil
		})
	}
}

// changeLane changes a lane's settings and shows them.
func (a *api) changeLane(w http.ResponseWriter, r *http.Request, q job.Queue, change func(*policy.Lane) error) error {
	l, err := a.service.ChangeLane(r.Context(), q, change)
	if err != nil {
		return err
	}
	l.Queue = q
	answerLane(w, l)
	return nil
}

// deleteLane removes all of a lane's settings, its secrets too.
func (a *api) deleteLane(w http.ResponseWriter, r *http.Request) error {
	q, err := pathLane(r)
	if err == nil {
		err = noBody(r)
	}
	if err != nil {
		return err
	}
	_, err = a.service.ChangeLane(r.Context(), q, func(stored *policy.Lane) error {
		if stored.IsZero() {
			return store.ErrNotFound
		}
		*stored = policy.Lane{}
		return nil
	})
	if err != nil {
		return noLane(err)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// noLane says of a lane without settings how they begin.
func noLane(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return refuse(http.StatusNotFound, "the lane has no settings of its own: a PUT gives it some; its topic's hold")
	}
	return err
}

// answerLane shows a lane, and how durable its change was.
func answerLane(w http.ResponseWriter, l store.Lane) {
	o := newOut()
	defer o.free()
	o.open()
	o.lane(l)
	o.durability(l.Durability)
	o.close()
	o.send(w, http.StatusOK)
}

// lane writes the members of a lane's own settings; secrets are not among them.
func (o *out) lane(l store.Lane) {
	o.text("topic", l.Queue.Topic)
	o.text("lane", l.Queue.Lane)
	o.number("revision", l.Revision)
	o.text("url", l.Settings.URL)
	o.headers("headers", l.Settings.Headers)
	if l.Settings.LaneConcurrency > 0 {
		o.number("lane_concurrency", int64(l.Settings.LaneConcurrency))
	} else {
		o.none("lane_concurrency")
	}
	o.text("lane_rate", job.FormatRate(l.Settings.LaneRate))
	o.flag("paused", l.Settings.Paused)
}
