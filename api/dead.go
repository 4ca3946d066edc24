package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
)

func (a *api) deadEndpoints() []endpoint {
	list := request.FilterParameters("order", "limit", "cursor", "within")
	groups := request.FilterParameters("by", "within")
	return []endpoint{
		at("GET /v1/dead", access.ListJobs, ofRequest, a.on(onStore.dead), query(list...)),
		at("GET /v1/dead/groups", access.ListJobs, ofRequest, a.on(onStore.deadGroups), query(groups...)),
		at("POST /v1/dead/revive", access.ReviveDead, ofRequest, a.on(onStore.reviveDead), query("within")),
		at("POST /v1/dead/purge", access.PurgeDead, ofRequest, a.on(onStore.purgeDead), query("within")),
	}
}

// dead answers with a page of dead letters.
func (a onStore) dead(w http.ResponseWriter, r *http.Request) error {
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
func (a onStore) deadGroups(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	by, filter := q.GroupBy(), q.Filter(job.Dead)
	if err := q.Err(); err != nil {
		return err
	}
	if err := checkTopic(r.Context(), filter.Topic); err != nil {
		return err
	}
	a.boundCount(r, &by)
	return a.answerList(w, r, func(o *response.Buffer, _ func() error) error {
		found, err := a.store.Groups(r.Context(), filter, by)
		if err == nil {
			o.Groups(found)
		}
		return err
	})
}
