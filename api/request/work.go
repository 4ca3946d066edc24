package request

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

const (
	// MaxSelectedIDs bounds the ids of a selection.
	MaxSelectedIDs = 10_000
	// maxSelection bounds the request, in bytes. MaxSelectedIDs ids fit.
	maxSelection = 2 << 20
)

// A WorkRequest orders bulk work.
type WorkRequest struct {
	decoder
	store.WorkOrder
	DryRun bool
	Within time.Duration // for which a dry run counts; zero: the default

	all, filtered bool     // whether all jobs are selected, and whether a filter is given
	states        []string // as given
	eventType     string
	revival       store.Revival
	where, change echo
}

// echo collects members of a request, to show them.
type echo struct{ members map[string][]byte }

// collect returns readers that also add what they read to the echo, except null where it has no meaning.
func (e *echo) collect(table fields, given *bool) fields {
	e.members = make(map[string][]byte)
	for name, read := range table {
		table[name] = func(at string, raw []byte) {
			if !isNull(raw) || name == "headers" { // null removes the headers
				e.members[name], *given = raw, true
			}
			read(at, raw)
		}
	}
	return table
}

// object returns the members as an object; nil: there are none.
func (e *echo) object() []byte {
	if len(e.members) == 0 {
		return nil
	}
	o := new(response.Buffer)
	o.Open()
	for _, name := range slices.Sorted(maps.Keys(e.members)) {
		o.Member(name, e.members[name])
	}
	o.Close()
	return o.Bytes()
}

// DecodeWork reads an order of bulk work. Times are compared with now.
func DecodeWork(text []byte, now time.Time) (WorkRequest, *response.Problem) {
	var f WorkRequest
	var change []byte
	where := f.selection()
	where["state"] = f.echoed("state", func(at string, raw []byte) { f.states = f.textOrTexts(at, raw) })
	where["type"] = f.echoed("type", set(&f.eventType, f.name))
	f.read("", text, "bulk work", fields{
		"action": set((*string)(&f.Action), f.name),
		"where": func(at string, raw []byte) {
			if !isNull(raw) {
				f.read(at, raw, "where", where)
			}
		},
		"change": func(_ string, raw []byte) {
			if !isNull(raw) {
				change = raw
			}
		},
		"rate":      set(&f.Rate, f.rate),
		"lane_rate": set(&f.LaneRate, f.rate),
		"dry_run":   set(&f.DryRun, f.boolean),
	})
	if !slices.Contains(store.WorkActions(), f.Action) {
		f.addErrorOnce("/action", "must be revive, purge, cancel, run, edit or replay")
		return f, f.problem(nil)
	}
	f.readChange(change, now)
	return f, f.check("/where/", "/change/")
}

// readChange reads the changes that an action makes.
func (f *WorkRequest) readChange(raw []byte, now time.Time) {
	switch {
	case f.Action == store.WorkRevive && raw != nil:
		f.read("/change", raw, "change", f.change.collect(f.revivalFields(&f.revival), new(bool)))
	case f.Action == store.WorkEdit && raw == nil:
		f.AddError("/change", "is required: the fields to change, as in PATCH /v1/jobs/{id}")
	case f.Action == store.WorkEdit:
		f.readEdit(raw, now)
	case raw != nil:
		f.AddError("/change", "cannot be combined with the action "+string(f.Action))
	}
}

// readEdit reads the change of the action edit.
func (f *WorkRequest) readEdit(raw []byte, now time.Time) {
	const ofOne = "cannot be changed for many jobs: change each with PATCH /v1/jobs/{id}"
	var e jobForm
	e.readEdit(raw, map[string]string{"body": ofOne, "body_text": ofOne, "body_base64": ofOne, "content_type": ofOne})
	if p := e.checkEdit(now, 0); p != nil {
		for _, err := range p.Fields {
			f.AddError("/change"+err.Field, err.Detail)
		}
		if f.duplicateKey == "" && e.duplicateKey != "" {
			f.duplicateKey = "/change" + e.duplicateKey
		}
		return
	}
	edit := e.edit()
	f.Edit, f.change.members = &edit, make(map[string][]byte)
	for name, value := range Members(raw) {
		f.change.members[string(name)] = value
	}
}

// DecodeDead reads the short form of an order that revives or purges dead jobs: without where and change.
func DecodeDead(text []byte, action store.WorkAction) (WorkRequest, *response.Problem) {
	f := WorkRequest{WorkOrder: store.WorkOrder{Action: action}}
	table, what := f.selection(), "a purge"
	table["dry_run"] = set(&f.DryRun, f.boolean)
	if action == store.WorkRevive {
		what = "a revival"
		maps.Copy(table, f.change.collect(f.revivalFields(&f.revival), new(bool)))
		table["rate"] = set(&f.Rate, f.rate)
		table["lane_rate"] = set(&f.LaneRate, f.rate)
	}
	f.read("", text, what, table)
	return f, f.check("/", "/")
}

// selection returns the readers of the fields that select jobs.
func (f *WorkRequest) selection() fields {
	table := f.where.collect(f.filterFields(&f.Filter), &f.filtered)
	table["ids"] = set(&f.IDs, f.ids)
	table["all"] = f.echoed("all", set(&f.all, f.boolean))
	return table
}

// echoed returns a reader that also adds what it reads to where.
func (f *WorkRequest) echoed(name string, read fieldReader) fieldReader {
	return func(at string, raw []byte) {
		if !isNull(raw) {
			f.where.members[name] = raw
			read(at, raw)
		}
	}
}

// check validates the order. where and change are the prefixes of the fields in them.
func (f *WorkRequest) check(where, change string) *response.Problem {
	f.checkStates(where)
	f.CheckFilter(where, &f.Filter)
	f.checkReplay(where)
	f.rejectRedacted(change+"headers", f.revival.Header)
	named := f.IDs != nil
	switch {
	case len(f.errors) > 0:
	case named && f.filtered:
		f.errors = append(f.errors, job.MutuallyExclusive(where+"ids", "a filter"))
	case f.all && (named || f.filtered):
		f.errors = append(f.errors, job.MutuallyExclusive(where+"all", "ids or a filter"))
	case !f.all && !named && !f.filtered:
		f.AddError(strings.TrimSuffix(where, "/"), `must set ids, a filter such as topic, or "all": true for every `+
			`job in the states of the action`)
	case f.Filter.Kind == job.KindWork || f.Filter.Kind == job.KindSchedule || f.Filter.Topic != "" &&
		store.IsInternal(f.Filter.Topic):
		f.AddError(where+"topic", "must be a topic whose jobs are sent: POST /v1/work/{id}/stop stops bulk work")
	case !f.Action.HasRate() && (f.Rate.Limited() || f.LaneRate.Limited()):
		f.AddError("/rate", "cannot be combined with the action "+string(f.Action)+", which sends nothing")
	case f.revival.Delay != 0 && !f.Rate.Limited() && !f.LaneRate.Limited():
		f.AddError(change+"delay", "requires rate or lane_rate")
	}
	f.URL, f.Header, f.Delay, f.ExpiresIn = f.revival.URL, job.CanonicalHeader(f.revival.Header), f.revival.Delay,
		f.revival.ExpiresIn
	f.Where, f.Change = f.where.object(), f.change.object()
	if named {
		f.where.members["ids_count"] = []byte(strconv.Itoa(len(f.IDs)))
		f.Where = f.where.object()
	}
	n := job.New{Spec: job.Spec{URL: f.URL, Header: f.Header}, Delay: f.Delay, ExpiresIn: f.ExpiresIn}
	if n.ExpiresIn > 0 {
		n.ExpiresIn += max(f.Delay, 0) // job.Validate compares it with the delay
	}
	checked := job.Validate(n, time.Time{})
	for i := range checked {
		checked[i].Field = change + strings.TrimPrefix(checked[i].Field, "/")
	}
	return f.problem(checked)
}

// ofReplay are the fields that select events, and their lanes, for the action replay.
var ofReplay = map[string]bool{
	"topic": true, "lane": true, "type": true, "label": true, "created_after": true, "created_before": true,
	"state": true, "all": true,
}

// checkReplay checks the fields of the action replay. With ids, its lane and states are no filter of the events.
func (f *WorkRequest) checkReplay(where string) {
	if f.Action != store.WorkReplay {
		if f.eventType != "" {
			f.AddError(where+"type", "requires the action replay: it is the type of events")
		}
		return
	}
	f.filtered = false
	for _, name := range slices.Sorted(maps.Keys(f.where.members)) {
		if !ofReplay[name] {
			f.AddError(where+name, "cannot be combined with the action replay, which selects events")
		}
		f.filtered = f.filtered || name != "lane" && name != "state" && name != "all"
	}
	if f.eventType != "" {
		f.checkEventType(where+"type", f.eventType)
		f.Filter.Labels = append(f.Filter.Labels, store.Label{Key: job.LabelEvent, Value: f.eventType})
	}
	if f.Filter.Lane != "" && f.Filter.Topic == "" && f.IDs == nil {
		f.AddError(where+"topic", "is required with lane")
	}
}

// checkStates sets the states of the filter: those that the request names, else those of the action.
func (f *WorkRequest) checkStates(where string) {
	all, chosen := f.Action.States()
	f.Filter.States = chosen
	if f.states == nil {
		return
	}
	f.Filter.States = nil
	if len(f.states) == 0 {
		f.addErrorOnce(where+"state", "must name a state")
	}
	for _, text := range f.states {
		for name := range strings.SplitSeq(text, ",") {
			if !slices.Contains(all, job.State(name)) {
				f.addErrorOnce(where+"state",
					fmt.Sprintf("must be one or several of %v for the action %s", all, f.Action))
			}
			f.Filter.States = append(f.Filter.States, job.State(name))
		}
	}
	slices.Sort(f.Filter.States)
	f.Filter.States = slices.Compact(f.Filter.States)
}

// textOrTexts reads a string, or an array of strings.
func (d *decoder) textOrTexts(at string, raw []byte) []string {
	if raw[0] == '[' {
		return d.texts(at, raw)
	}
	return []string{d.name(at, raw)}
}

// ids reads the ids of jobs, each once.
func (d *decoder) ids(at string, raw []byte) []string {
	if raw[0] != '[' {
		d.wrongType(at, raw, "an array of strings")
		return nil
	}
	all, seen := []string{}, make(map[string]bool)
	for i, value := range Elements(raw) {
		if i == MaxSelectedIDs {
			d.AddError(at, fmt.Sprintf("must be at most %d", MaxSelectedIDs))
			return nil
		}
		id := ""
		if value[0] == '"' {
			id = Unquote(value)
		}
		if !job.IsID(id) {
			d.AddError(at+"/"+strconv.Itoa(i), "must be the id of a job")
		}
		if !seen[id] {
			all, seen[id] = append(all, id), true
		}
	}
	if len(all) == 0 {
		d.AddError(at, "must name a job")
	}
	return all
}

// ReadWork reads a request for bulk work.
func ReadWork(w http.ResponseWriter, r *http.Request) (WorkRequest, error) {
	return readOrder(w, r, func(text []byte) (WorkRequest, *response.Problem) { return DecodeWork(text, time.Now()) })
}

// ReadDead reads a request to revive or purge dead jobs.
func ReadDead(w http.ResponseWriter, r *http.Request, action store.WorkAction) (WorkRequest, error) {
	return readOrder(w, r, func(text []byte) (WorkRequest, *response.Problem) { return DecodeDead(text, action) })
}

func readOrder(
	w http.ResponseWriter, r *http.Request, decode func([]byte) (WorkRequest, *response.Problem),
) (WorkRequest, error) {
	q := NewQuery(r)
	within := q.within()
	if err := q.Err(); err != nil {
		return WorkRequest{}, err
	}
	text, err := ReadJSON(w, r, maxSelection)
	if err != nil {
		return WorkRequest{}, err
	}
	f, p := decode(text)
	if p != nil {
		return f, p
	}
	if f.Within = within; within > 0 && !f.DryRun {
		q.AddError("?within", "bounds the time of a dry run: set dry_run, too")
	}
	f.Filter.Namespace = namespaceOf(r)
	return f, q.Err()
}
