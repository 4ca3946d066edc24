// Package held serves the request for the lanes that hold jobs back, in front of an interface that it declares.
package held

import (
	"context"
	"net/http"

	"github.com/ringback/ringback/access"
	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Service finds lanes that hold jobs back.
type Service interface {
	HeldLanes(ctx context.Context, filter store.HeldFilter) (store.HeldLanes, error)
}

// standardLimit is the default of the parameter limit.
const standardLimit = 20

// ServeList answers with a list of at most limit items, whose members write encodes.
type ServeList func(w http.ResponseWriter, r *http.Request, limit int, write func(*response.Buffer) error) error

// Handler serves GET /v1/lanes/held. A token that is restricted to topics sees only their lanes.
func Handler(service Service, serveList ServeList) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		q := request.NewQuery(r)
		principal := access.PrincipalOf(r.Context())
		filter := store.HeldFilter{
			Namespace: principal.Namespace, Topic: q.Get("topic"), Lane: q.Lane(), Shown: principal.Topics.Match,
			Limit: q.Limit(standardLimit),
		}
		switch {
		case filter.Topic != "" && !job.IsTopic(filter.Topic):
			q.AddError("?topic", "must name a topic")
		case filter.Topic == "" && filter.Lane != "":
			q.AddError("?lane", "requires topic")
		}
		if err := q.Err(); err != nil {
			return err
		}
		// Whatever the limit, the service holds the settings of many lanes while it looks at them.
		return serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
			found, err := service.HeldLanes(r.Context(), filter)
			if err == nil {
				o.HeldLanes(&found)
			}
			return err
		})
	}
}
