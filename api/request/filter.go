package request

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// filterParameters are the parameters of all lists of jobs that select jobs.
var filterParameters = []string{
	"topic", "lane", "kind", "label", "reason", "status", "error_class", "id_prefix",
	"created_after", "created_before", "due_after", "due_before", "ended_after", "ended_before",
}

// FilterParameters returns the parameters that select jobs, and others.
func FilterParameters(others ...string) []string { return slices.Concat(filterParameters, others) }

// states are those of jobs.
var states = []job.State{job.Scheduled, job.Ready, job.Running, job.Delivered, job.Dead, job.Cancelled}

// Filter reads the parameters of a list of jobs in one of some states; without any, in those of the parameter state.
func (q *Query) Filter(of ...job.State) store.Filter {
	f := q.selection(of)
	q.cursor(&f)
	return f
}

// selection is Filter without the cursor.
func (q *Query) selection(of []job.State) store.Filter {
	f := store.Filter{
		Namespace:  q.namespace,
		Topic:      q.Get("topic"),
		Lane:       q.Get("lane"),
		Kind:       q.Get("kind"),
		States:     of,
		Reason:     policy.Reason(q.Get("reason")),
		Status:     q.status("status"),
		ErrorClass: policy.ErrorClass(q.Get("error_class")),
		IDPrefix:   q.Get("id_prefix"),
		Created:    q.times("created"),
		Due:        q.times("due"),
		Ended:      q.times("ended"),
		Limit:      q.Limit(DefaultListLimit),
		Within:     q.within(),
	}
	if len(of) == 0 {
		f.States = q.states()
	}
	for _, text := range q.values["label"] {
		q.label("?label", text, &f)
	}
	switch q.Get("order") {
	case "", "newest":
	case "oldest":
		f.Oldest = true
	default:
		q.AddError("?order", "must be newest or oldest")
	}
	q.CheckFilter("?", &f)
	return f
}

// cursor reads the cursor of a list of jobs that a filter selects.
func (q *Query) cursor(f *store.Filter) {
	if text := q.Get("cursor"); text != "" && len(q.errors) == 0 {
		var err error
		if f.After, err = DecodeJobsCursor(text, f); err != nil {
			q.AddError("?cursor", err.Error())
		}
	}
}

// states returns the states that the parameter state names, once each.
func (q *Query) states() []job.State {
	var all []job.State
	for _, text := range q.values["state"] {
		for name := range strings.SplitSeq(text, ",") {
			if name != "" {
				all = append(all, job.State(name))
			}
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	if slices.ContainsFunc(all, func(s job.State) bool { return !slices.Contains(states, s) }) {
		q.AddError("?state",
			"must be scheduled, ready, running, delivered, dead or cancelled, several separated by commas")
	}
	return all
}

// times returns the range between the parameters NAME_after and NAME_before.
func (q *Query) times(name string) store.TimeRange {
	return store.TimeRange{After: q.time(name + "_after"), Before: q.time(name + "_before")}
}

// within returns the time for which jobs are looked at; zero when there is none.
func (q *Query) within() time.Duration {
	d, err := units.ParseDuration(q.Get("within"))
	if q.Get("within") != "" && (err != nil || d < store.MinGroupTime || d > store.MaxGroupTime) {
		q.addErrorOnce("?within", "must be a duration from 1ms to 10s")
	}
	return d
}

// GroupBy reads the parameters by and within.
func (q *Query) GroupBy() store.GroupBy {
	by := store.GroupBy{Within: q.within()}
	for name := range strings.SplitSeq(q.Get("by"), ",") {
		switch name {
		case "topic":
			by.Topic = true
		case "lane":
			by.Lane = true
		case "reason":
			by.Reason = true
		case "status":
			by.Status = true
		case "error_class":
			by.ErrorClass = true
		default:
			q.AddError("?by", "must be topic, lane, reason, status or error_class, several separated by commas")
			return by
		}
	}
	return by
}

// filterFields returns the readers of the fields that select jobs.
func (d *decoder) filterFields(f *store.Filter) fields {
	return fields{
		"topic":          set(&f.Topic, d.name),
		"lane":           set(&f.Lane, d.name),
		"kind":           set(&f.Kind, d.name),
		"label":          func(at string, raw []byte) { d.labelFilter(at, raw, f) },
		"reason":         set((*string)(&f.Reason), d.name),
		"status":         set(&f.Status, d.positiveCount),
		"error_class":    set((*string)(&f.ErrorClass), d.name),
		"id_prefix":      set(&f.IDPrefix, d.name),
		"created_after":  set(&f.Created.After, d.time),
		"created_before": set(&f.Created.Before, d.time),
		"due_after":      set(&f.Due.After, d.time),
		"due_before":     set(&f.Due.Before, d.time),
		"ended_after":    set(&f.Ended.After, d.time),
		"ended_before":   set(&f.Ended.Before, d.time),
	}
}

// labelFilter reads one label, or an array of labels.
func (d *decoder) labelFilter(at string, raw []byte, f *store.Filter) {
	switch {
	case isNull(raw):
	case raw[0] == '[':
		for _, text := range d.texts(at, raw) {
			d.label(at, text, f)
		}
	default:
		if text := d.name(at, raw); text != "" {
			d.label(at, text, f)
		}
	}
}

// label adds the label key:value.
func (d *decoder) label(at, text string, f *store.Filter) {
	key, value, ok := strings.Cut(text, ":")
	switch {
	case !ok || !job.IsTopic(key):
		d.addErrorOnce(at, "must be key:value")
	case len(f.Labels) == job.MaxLabels:
		d.addErrorOnce(at, fmt.Sprintf("must be at most %d labels", job.MaxLabels))
	default:
		f.Labels = append(f.Labels, store.Label{Key: key, Value: value})
	}
}

// addErrorOnce adds an error unless the field has one.
func (d *decoder) addErrorOnce(field, detail string) {
	if !slices.ContainsFunc(d.errors, func(f job.FieldError) bool { return f.Field == field }) {
		d.AddError(field, detail)
	}
}

// CheckFilter checks a filter whose Kind is as clients write it, and sets that of package store. mark is the prefix of
// its fields in errors: / or ?.
func (d *decoder) CheckFilter(mark string, f *store.Filter) {
	if f.Topic != "" && !job.IsTopic(f.Topic) {
		d.addErrorOnce(mark+"topic", "must name a topic")
	}
	if f.Lane != "" && !job.IsLane(f.Lane) {
		d.addErrorOnce(mark+"lane", "must be the name of a lane: 1 to 128 of A-Z a-z 0-9 . _ : [ ] and -")
	}
	if f.IDPrefix != "" && !job.IsID(f.IDPrefix) {
		d.addErrorOnce(mark+"id_prefix", "must be the beginning of a job's id: up to 64 of A-Z a-z 0-9 _ : and -")
	}
	if f.Status != 0 && (f.Status < 100 || f.Status > 999) {
		d.addErrorOnce(mark+"status", "must be a status of 100 to 999")
	}
	d.checkErrorClass(mark+"error_class", f)
	d.checkKind(mark+"kind", f)
	d.checkReason(mark+"reason", f)
	d.checkTimes(mark+"created", f.Created)
	d.checkTimes(mark+"due", f.Due)
	d.checkTimes(mark+"ended", f.Ended)
	if !f.Ended.IsZero() && len(f.States) > 0 && !slices.ContainsFunc(f.States, job.State.Ended) {
		field := "ended_after"
		if f.Ended.After.IsZero() {
			field = "ended_before"
		}
		d.addErrorOnce(mark+field, "requires a state in which jobs have ended: delivered, dead or cancelled")
	}
}

// allKinds is the kind in requests that selects jobs of every kind.
const allKinds = "all"

// checkKind checks the kind. Without one, jobs that clients registered are selected, or all jobs of a reserved topic.
func (d *decoder) checkKind(field string, f *store.Filter) {
	reserved := job.IsReserved(f.Topic)
	switch kind := f.Kind; {
	case kind == allKinds || kind == "" && reserved:
		f.Kind = ""
	case kind == "":
		f.Kind = job.KindRegistered
	case kind == job.KindRegistered:
		if reserved {
			d.addErrorOnce(field, "registered jobs are in topics that do not begin with _: leave out kind or topic")
		}
	case !slices.Contains(job.Kinds(), kind):
		d.addErrorOnce(field, "must be all, registered, "+strings.Join(job.Kinds(), " or "))
	case f.Topic != "" && !reserved:
		d.addErrorOnce(field, "jobs of the kind "+kind+" are in topics that begin with _: leave out kind or topic")
	}
}

// checkReason checks the reason.
func (d *decoder) checkReason(field string, f *store.Filter) {
	of := job.Dead
	switch {
	case f.Reason == "":
		return
	case f.Reason == job.ReasonCancelled:
		of = job.Cancelled
	case !slices.Contains(policy.Reasons(), f.Reason):
		d.addErrorOnce(field, "must be one of "+reasonNames())
		return
	}
	if len(f.States) > 0 && !slices.Contains(f.States, of) {
		d.addErrorOnce(field, fmt.Sprintf("%s is the reason of %s jobs, which are not in the list", f.Reason, of))
	}
}

// checkErrorClass checks the error class.
func (d *decoder) checkErrorClass(field string, f *store.Filter) {
	switch c := f.ErrorClass; {
	case c == "":
	case c != store.AnyError && c != store.UnknownAnswer && !slices.Contains(policy.ErrorClasses[:], c):
		d.addErrorOnce(field, "must be any, unknown, or an error class such as timeout_dial: see docs/reasons.md")
	case f.Status != 0:
		d.addErrorOnce(field, "cannot be combined with status: a job has one of them")
	}
}

// reasonNames lists the reasons for which a job dies, and that of a cancelled one.
func reasonNames() string {
	var names []string
	for _, r := range policy.Reasons() {
		names = append(names, string(r))
	}
	return strings.Join(append(names, string(job.ReasonCancelled)), ", ")
}

// checkTimes checks the order of the bounds of a range.
func (d *decoder) checkTimes(name string, r store.TimeRange) {
	if !r.After.IsZero() && !r.Before.IsZero() && !r.After.Before(r.Before) {
		d.addErrorOnce(name+"_before", "must be later than "+name[1:]+"_after")
	}
}
