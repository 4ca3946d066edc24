package api

import (
	"net/http"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
)

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
	// the service reads as many at a time
	return a.serveList(w, r, request.MaxListLimit, func(o *response.Buffer) error {
		found, err := a.store.Groups(r.Context(), filter, by)
		if err == nil {
			o.Groups(found)
		}
		return err
	})
}
