package request

import (
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A WorkRequest orders bulk work.
type WorkRequest struct {
	decoder
	store.WorkOrder
	DryRun bool
	all    bool
}

// workActions are the actions of bulk work.
var workActions = []store.WorkAction{store.WorkRevive, store.WorkPurge}

// DecodeWork reads an order of bulk work.
func DecodeWork(text []byte) (WorkRequest, *response.Problem) {
	var f WorkRequest
	var filtered, named bool
	note := func(given *bool, read fieldReader) fieldReader {
		return func(at string, raw []byte) {
			*given = *given || !isNull(raw)
			read(at, raw)
		}
	}
	where := f.filterFields(&f.Filter)
	for name, read := range where {
		where[name] = note(&filtered, read)
	}
	where["ids"] = note(&named, set(&f.IDs, f.ids))
	where["all"] = set(&f.all, f.boolean)
	change := fields{
		"url":        set(&f.URL, f.name),
		"delay":      set(&f.Delay, f.duration),
		"expires_in": set(&f.ExpiresIn, f.positiveDuration),
	}
	// object reads an object with its own fields, unless it is null.
	object := func(what string, table fields) fieldReader {
		return func(at string, raw []byte) {
			if !isNull(raw) {
				f.read(at, raw, what, table)
			}
		}
	}
	f.read("", text, "bulk work", fields{
		"action": set((*string)(&f.Action), f.name),
		"where": func(at string, raw []byte) {
			f.Request = slices.Clone(raw)
			object("where", where)(at, raw)
		},
		"change":    object("change", change),
		"rate":      set(&f.Rate, f.rate),
		"lane_rate": set(&f.LaneRate, f.rate),
		"dry_run":   set(&f.DryRun, f.boolean),
	})
	f.Filter.States = []job.State{job.Dead}
	f.CheckFilter("/where/", &f.Filter)
	switch {
	case len(f.errors) > 0:
	case f.Action == "":
		f.AddError("/action", "is required: revive or purge")
	case !slices.Contains(workActions, f.Action):
		f.AddError("/action", "must be revive or purge")
	case f.Action == store.WorkPurge && (f.URL != "" || f.Delay != 0 || f.ExpiresIn != 0):
		f.AddError("/change", "cannot be combined with the action purge")
	case f.Action == store.WorkPurge && (f.Rate.Limited() || f.LaneRate.Limited()):
		f.AddError("/rate", "cannot be combined with the action purge, which sends nothing")
	case named && filtered:
		f.errors = append(f.errors, job.MutuallyExclusive("/where/ids", "a filter"))
	case f.all && (named || filtered):
		f.errors = append(f.errors, job.MutuallyExclusive("/where/all", "ids or a filter"))
	case !f.all && !named && !filtered:
		f.AddError("/where", `must set ids, a filter such as topic, or "all": true for every dead job`)
	case f.Delay != 0 && !f.Rate.Limited() && !f.LaneRate.Limited():
		f.AddError("/change/delay", "requires rate or lane_rate")
	}
	if named {
		f.Request = nil
	}
	problem := f.problem(job.Validate(job.New{Spec: job.Spec{URL: f.URL}, Delay: f.Delay, ExpiresIn: f.expiry()}, time.Time{}))
	return f, problem
}

// expiry returns the new expiry counted from the registration, as job.Validate compares it with the delay.
func (f *WorkRequest) expiry() time.Duration {
	if f.ExpiresIn <= 0 {
		return f.ExpiresIn
	}
	return f.ExpiresIn + max(f.Delay, 0)
}

// ReadWork reads a request for bulk work.
func ReadWork(w http.ResponseWriter, r *http.Request) (WorkRequest, error) {
	text, err := ReadJSON(w, r, maxSelection)
	if err != nil {
		return WorkRequest{}, err
	}
	f, p := DecodeWork(text)
	if p != nil {
		return f, p
	}
	if f.IDs == nil {
		f.Filter.Namespace = namespaceOf(r)
	}
	return f, nil
}
