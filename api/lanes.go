package api

import (
	"context"
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

func (a *api) laneEndpoints() []endpoint {
	const lanes, lane = "/v1/topics/{topic}/lanes", "/v1/topics/{topic}/lanes/{lane}"
	return []endpoint{
		at("GET /v1/lanes/troubled", access.ReadStats, ofItems, a.on(onStore.troubledLanes),
			query("limit", "topic", "lane", "code")),
		at("GET "+lanes, access.ReadLane, ofPath, a.on(onStore.lanes), paged("type")),
		at("GET "+lane, access.ReadLane, ofPath, a.on(onStore.lane)),
		at("PUT "+lane, access.ChangeLane, ofPath, a.on(onStore.putLane), query(dryRun), ofSettings),
		at("PATCH "+lane, access.ChangeLane, ofPath, a.on(onStore.patchLane), ofSettings),
		at("DELETE "+lane, access.DeleteLane, ofPath, a.on(onStore.deleteLane), ofSettings),
		at("POST "+lane+"/pause", access.PauseLane, ofPath, a.on(pauseLane), ofSettings),
		at("POST "+lane+"/resume", access.ResumeLane, ofPath, a.on(resumeLane), ofSettings),
		at("POST "+lane+"/test", access.TestLane, ofPath, a.on(onStore.testLane), query("type", "wait")),
	}
}

// lanes lists the lanes of a topic that have settings, in order of name.
func (a onStore) lanes(w http.ResponseWriter, r *http.Request) error {
	topic, err := request.PathTopic(r)
	if err != nil {
		return err
	}
	q := request.NewQuery(r)
	p, eventType := readPage(q, request.Lanes), q.EventType()
	if err := q.Err(); err != nil {
		return err
	}
	return a.serveList(w, r, p.limit, func(o *response.Buffer) error {
		found, err := a.store.ListLanes(r.Context(), namespaceOf(r), topic, eventType, p.after, p.limit+1)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			if _, err := a.findTopic(r, topic); err != nil {
				return err
			}
		}
		for i := range found {
			found[i].Durability = nil // of a change only
		}
		writePage(o, p, found, (*response.Buffer).Lane, func(l *store.Lane) string { return l.Queue.Lane })
		return nil
	})
}

// lane answers with a lane's own settings.
func (a onStore) lane(w http.ResponseWriter, r *http.Request) error {
	q, err := request.PathQueue(r)
	if err != nil {
		return err
	}
	l, err := a.store.Lane(r.Context(), q)
	if err == nil && l.Settings.IsZero() {
		err = store.ErrNotFound
	}
	if err != nil {
		return noLane(err)
	}
	if same, err := notModified(w, r, l.Revision); same || err != nil {
		return err
	}
	l.Queue, l.Durability = q, nil // of a change only
	answerLane(w, r, l)
	return nil
}

// testLane sends a test event to a lane, and answers with its job once it has ended.
func (a onStore) testLane(w http.ResponseWriter, r *http.Request) error {
	q, _, err := request.Bodiless(r, request.PathQueue)
	if err != nil {
		return err
	}
	eventType, wait, err := request.Test(r)
	if err != nil {
		return err
	}
	leave, err := a.enterWait(r, a.waiting)
	if err != nil {
		return err
	}
	defer leave()
	result := a.store.TestLane(r.Context(), q, eventType, actorOf(r.Context()))
	status, p := batchStatus(&result)
	if p != nil {
		return p
	}
	w.Header()["Location"] = []string{"/v1/jobs/" + result.Job.ID}
	a.answerEnd(w, r, status, result.Job, wait)
	return nil
}

// putLane sets all settings of a lane.
func (a onStore) putLane(w http.ResponseWriter, r *http.Request) error {
	return a.decodeLane(w, r, request.PutLane, a.store.ReplaceLane)
}

// patchLane changes some settings of a lane.
func (a onStore) patchLane(w http.ResponseWriter, r *http.Request) error {
	return a.decodeLane(w, r, func(text []byte, stored policy.Lane) (policy.Lane, *response.Problem) {
		return request.PatchLane(text, stored, request.PrincipalOf(r.Context()).Bodies)
	}, a.store.ChangeLane)
}

// writeLane is Lanes.ChangeLane or Lanes.ReplaceLane.
type writeLane func(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
) (store.Lane, error)

func (a *api) decodeLane(
	w http.ResponseWriter, r *http.Request, form func([]byte, policy.Lane) (policy.Lane, *response.Problem),
	write writeLane,
) error {
	q, err := request.PathNewQueue(r)
	if err != nil {
		return err
	}
	dry, err := request.DryRun(r)
	if err != nil {
		return err
	}
	text, err := request.ReadJSON(w, r, maxPolicy)
	if err != nil {
		return err
	}
	return a.changeLane(w, r, q, store.DryRun(func(stored *policy.Lane) error {
		changed, p := form(text, *stored)
		if p != nil {
			return p
		}
		*stored = changed
		return nil
	}, dry), write)
}

// pauseLane and resumeLane pause and resume a lane.
var pauseLane, resumeLane = pauses(
	func(_ onStore, r *http.Request) (job.Queue, error) { return request.PathNewQueue(r) },
	func(a onStore, w http.ResponseWriter, r *http.Request, q job.Queue, set setPause) error {
		return a.changeLane(w, r, q, func(stored *policy.Lane) error {
			set(&stored.Paused, &stored.Pause)
			return nil
		}, a.store.ChangeLane)
	})

// changeLane changes a lane's settings and answers with them.
func (a *api) changeLane(
	w http.ResponseWriter, r *http.Request, q job.Queue, change func(*policy.Lane) error, write writeLane,
) error {
	ifRevision, err := request.IfRevision(r)
	if err != nil {
		return err
	}
	l, err := write(r.Context(), q, changeOptions(r, ifRevision), change)
	if err != nil {
		return err
	}
	l.Queue = q
	answerLane(w, r, l)
	return nil
}

// deleteLane removes a lane's settings and secrets.
func (a onStore) deleteLane(w http.ResponseWriter, r *http.Request) error {
	q, ifRevision, err := request.Bodiless(r, request.PathQueue)
	if err != nil {
		return err
	}
	_, err = a.store.ReplaceLane(r.Context(), q, changeOptions(r, ifRevision), func(stored *policy.Lane) error {
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

// noLane explains how a lane gets settings.
func noLane(err error) error {
	return orNotFound(err, "the lane has no settings: create them, or use its topic's")
}

// answerLane answers with a lane and the durability of its change.
func answerLane(w http.ResponseWriter, r *http.Request, l store.Lane) {
	answerDocument(w, r, http.StatusOK, l.Revision, func(o *response.Buffer) { o.Lane(&l) })
}
