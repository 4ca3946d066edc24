package request

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

const (
	// MaxSelectedIDs bounds how many dead letters can be named by their ids.
	MaxSelectedIDs = 10_000
	// maxSelection bounds the request, in bytes: so many ids fit.
	maxSelection = 2 << 20
)

// A DeadLetterRequest is which dead letters are meant and what becomes of them, as a client described it.
type DeadLetterRequest struct {
	decoder
	store.Selection
	store.RevivePlan
	All      bool
	filtered bool // a filter is named
	named    bool // ids are named
	paced    bool // a pace of lanes is named
	delayed  bool // a beginning of the pace is named
}

// DecodeDeadLetters reads a selection; with revival also how they are sent again.
func DecodeDeadLetters(text []byte, revival bool) (DeadLetterRequest, *response.Problem) {
	f := DeadLetterRequest{Selection: store.Selection{Filter: store.Filter{Namespace: job.DefaultNamespace}}}
	for name, value := range f.object("", text) {
		switch {
		case f.selectionField(string(name), value), revival && f.planField(string(name), value):
		case revival:
			f.unknownField("", name, "a revival")
		default:
			f.unknownField("", name, "a purge")
		}
	}
	f.CheckFilter("/", &f.Filter)
	switch {
	case f.named && f.filtered:
		f.errors = append(f.errors, job.MutuallyExclusive("/ids", "a filter"))
	case f.All && (f.named || f.filtered):
		f.errors = append(f.errors, job.MutuallyExclusive("/all", "ids or a filter"))
	case len(f.errors) == 0 && !f.All && !f.named && !f.filtered:
		f.AddError("", `must name ids, or a filter such as topic, or say "all": true to mean every dead letter`)
	}
	if f.paced && f.named {
		f.AddError("/lane_rate", "needs a filter: a job's lane is not known by its id")
	}
	if f.delayed && !f.Rate.Limited() && !f.LaneRate.Limited() {
		f.AddError("/delay", "needs rate or lane_rate beside it: it says where their pace goes on")
	}
	return f, f.problem(job.Validate(job.New{Spec: job.Spec{URL: f.URL}, Delay: f.Delay, ExpiresIn: f.expiry()}, time.Time{}))
}

// expiry is the new one, from the beginning of the pace on, as job.Validate compares it.
func (f *DeadLetterRequest) expiry() time.Duration {
	if f.ExpiresIn <= 0 {
		return f.ExpiresIn
	}
	return f.ExpiresIn + max(f.Delay, 0)
}

// selectionField takes in a field of the selection; false when there is no such.
func (f *DeadLetterRequest) selectionField(name string, value []byte) bool {
	null := isNull(value)
	text := func(at string) string {
		f.filtered = f.filtered || !null
		return optional(null, func() string { return f.name(at, value) })
	}
	moment := func(at string) time.Time {
		f.filtered = f.filtered || !null
		return optional(null, func() time.Time { return f.time(at, value) })
	}
	switch at := "/" + name; name {
	case "topic":
		f.Filter.Topic = text(at)
	case "lane":
		f.Filter.Lane = text(at)
	case "label":
		f.label(at, text(at), &f.Filter)
	case "reason":
		f.Filter.Reason = policy.Reason(text(at))
	case "status":
		f.filtered = f.filtered || !null
		f.Filter.Status = optional(null, func() int { return outOfRangeIfZero(clampInt(f.integer(at, value))) })
	case "after":
		f.Filter.After = moment(at)
	case "before":
		f.Filter.Before = moment(at)
	case "ids":
		f.named = !null
		f.IDs = optional(null, func() []string { return f.ids(at, value) })
	case "all":
		f.All = optional(null, func() bool { return f.boolean(at, value) })
	case "dry_run":
		f.DryRun = optional(null, func() bool { return f.boolean(at, value) })
	default:
		return false
	}
	return true
}

// planField takes in a field of a revival; false when there is no such.
func (f *DeadLetterRequest) planField(name string, value []byte) bool {
	null := isNull(value)
	switch at := "/" + name; name {
	case "rate":
		f.Rate = optional(null, func() policy.Rate { return f.rate(at, value) })
	case "lane_rate":
		f.LaneRate = optional(null, func() policy.Rate { return f.rate(at, value) })
		f.paced = f.LaneRate.Limited()
	case "delay":
		f.delayed = !null
		f.Delay = optional(null, func() time.Duration { return f.duration(at, value) })
	case "expires_in":
		f.ExpiresIn = optional(null, func() time.Duration { return outOfRangeIfZero(f.duration(at, value)) })
	case "url":
		f.URL = optional(null, func() string { return f.name(at, value) })
	default:
		return false
	}
	return true
}

// ids reads the ids of jobs.
func (d *decoder) ids(at string, raw []byte) []string {
	if raw[0] != '[' {
		d.wrongType(at, raw, "an array of strings")
		return nil
	}
	var all []string
	for i, value := range Elements(raw) {
		if i == MaxSelectedIDs {
			d.AddError(at, fmt.Sprintf("must be at most %d", MaxSelectedIDs))
			return nil
		}
		id := ""
		if value[0] == '"' {
			id = unquote(value)
		}
		if !job.IsID(id) {
			d.AddError(at+"/"+strconv.Itoa(i), "must be the id of a job")
		}
		all = append(all, id)
	}
	if len(all) == 0 {
		d.AddError(at, "must name a job")
	}
	return all
}

// label splits key:value; an empty text is none.
func (d *decoder) label(at, text string, filter *store.Filter) {
	if text == "" {
		return
	}
	var ok bool
	if filter.Label, filter.Value, ok = strings.Cut(text, ":"); !ok || !job.IsTopic(filter.Label) {
		d.AddError(at, "must be key:value")
	}
}

// addErrorOnce notes a fault of a field that has none yet.
func (d *decoder) addErrorOnce(field, detail string) {
	if !slices.ContainsFunc(d.errors, func(f job.FieldError) bool { return f.Field == field }) {
		d.AddError(field, detail)
	}
}

// CheckFilter finds what is wrong with a filter of dead letters. mark begins the names of its fields in faults.
func (d *decoder) CheckFilter(mark string, f *store.Filter) {
	if f.Topic != "" && !job.IsTopic(f.Topic) {
		d.addErrorOnce(mark+"topic", "must name a topic")
	}
	switch {
	case f.Lane == "":
	case !job.IsLane(f.Lane):
		d.addErrorOnce(mark+"lane", "must be the name of a lane: 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	case f.Topic == "":
		d.addErrorOnce(mark+"lane", "needs a topic beside it: lanes are those of a topic")
	}
	if f.Reason != "" && !slices.Contains(policy.Reasons(), f.Reason) {
		d.addErrorOnce(mark+"reason", "must be one of "+reasonNames())
	}
	if f.Status != 0 && (f.Status < 100 || f.Status > 999) {
		d.addErrorOnce(mark+"status", "must be a status of 100 to 999")
	}
}

// reasonNames are the reasons for which a job dies.
func reasonNames() string {
	var names []string
	for _, r := range policy.Reasons() {
		names = append(names, string(r))
	}
	return strings.Join(names, ", ")
}

// ReadDeadLetters reads which dead letters a revival or purge selects, and how a revival sends them.
func ReadDeadLetters(w http.ResponseWriter, r *http.Request, revival bool) (DeadLetterRequest, error) {
	text, err := ReadJSON(w, r, maxSelection)
	if err != nil {
		return DeadLetterRequest{}, err
	}
	f, p := DecodeDeadLetters(text, revival)
	if p != nil {
		return f, p
	}
	return f, nil
}
