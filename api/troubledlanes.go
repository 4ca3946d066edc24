package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// standardTroubled is the default of the parameter limit.
const standardTroubled = 20

// troubledLanes lists the lanes whose receiver fails or that hold jobs back. A token that is restricted to
// topics sees only their lanes.
func (a onStore) troubledLanes(w http.ResponseWriter, r *http.Request) error {
	q := request.NewQuery(r)
	principal := request.PrincipalOf(r.Context())
	filter := store.TroubledFilter{
		Namespace: principal.Namespace, Topic: q.Get("topic"), Lane: q.Lane(), Shown: principal.Topics.Match,
		Limit: q.Limit(standardTroubled),
		Code:  job.ObstacleCode(q.Get("code")),
	}
	switch {
	case filter.Topic != "" && !job.IsTopic(filter.Topic):
		q.AddError("?topic", "must name a topic")
	case filter.Code != "" && filter.Code.Severity() == 0:
		q.AddError("?code", "must be a code of the reasons of lanes")
	case filter.Topic == "" && filter.Lane != "":
		q.AddError("?lane", "requires topic")
	}
	if err := q.Err(); err != nil {
		return err
	}
	// Whatever the limit, the store holds the settings of many lanes while it looks at them.
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
		found, err := a.store.TroubledLanes(r.Context(), filter)
		if err == nil {
			o.TroubledLanes(&found)
		}
		return err
	})
}
