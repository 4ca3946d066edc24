package deadpages

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
)

// startWork starts bulk work.
func startWork(v *web.Visit) (web.Answer, error) {
	var o order
	o.action, o.known = actionOf(v.Form("action"))
	sent := slices.Concat([]string{"action", "all", "rate", "lane_rate", countedField}, o.action.changes)
	s := readSelection(v, v.Request.PostForm, sent...)
	o.read(v)
	change, changed, wrong := changeForm.Changes(nil, o.texts)
	o.problem = wrong
	var err error
	if o.counted, err = time.Parse(time.RFC3339Nano, v.Form(countedField)); err != nil {
		o.problem.General = append(o.problem.General,
			"The form does not say when the jobs were counted: they were counted again now.")
		o.problem.Status = http.StatusUnprocessableEntity
	}
	work := client.WorkOrder{
		Action: v.Form("action"), Where: o.bounded(s.Filter).Where(), Rate: o.rates["rate"],
		LaneRate: o.rates["lane_rate"],
	}
	if len(changed) == 0 && o.action.code == client.ActionEdit && !wrong.Any() {
		o.problem.General = append(o.problem.General, "Fill in at least one field: an edit changes those that you "+
			"fill in.")
		o.problem.Status = http.StatusUnprocessableEntity
	}
	if s.SelectsAll() && !o.all {
		o.problem.Add("all", "must be ticked, or give a filter: without one all jobs are selected")
	}
	if o.problem.Any() || s.Errors.Any() {
		return showOrder(v, s, o)
	}
	same, err := findRunning(v, work)
	if err != nil {
		return nil, err
	}
	if same != nil {
		return web.Warn(v.Path("work", same.ID),
			"Nothing was started: this work was begun before, from the same count. Stop it first if it shall have "+
				"other options."), nil
	}
	started, err := start(v, work, change)
	if err != nil {
		known := slices.Concat(filter.Names(), o.action.changes, []string{"rate", "lane_rate"})
		found, ok := web.FormErrorsOf(err, known...)
		if !ok {
			return nil, err
		}
		o.problem = found
		return showOrder(v, s, o)
	}
	return &web.Redirect{To: v.Path("work", started.ID)}, nil // the page says how far it is
}

// start starts work with a change.
func start(v *web.Visit, work client.WorkOrder, change json.RawMessage) (*client.Work, error) {
	raw, err := json.Marshal(work)
	if err != nil {
		return nil, err
	}
	if string(change) != "{}" {
		raw = slices.Concat(raw[:len(raw)-1], []byte(`,"change":`), change, []byte("}"))
	}
	raw, err = v.API.Call(v.Request.Context(),
		client.Request{Method: http.MethodPost, Path: "/v1/work", Body: raw, Once: true})
	if err != nil {
		return nil, err
	}
	started := new(client.Work)
	return started, json.Unmarshal(raw, started)
}

// maxRunning is the number of works among which a repeated one is looked for: the largest page, and about as many as
// can run.
const maxRunning = 100

// findRunning returns running work with the action and the selection of an order; nil: there is none. As the selection
// has the time of the count, it was begun by the same form, which was sent again because its answer was lost or late.
// Once that work has ended, the repeat finds no jobs. Two forms that are sent at the same moment are not recognised.
func findRunning(v *web.Visit, order client.WorkOrder) (*client.Work, error) {
	raw, err := json.Marshal(order.Where)
	if err != nil {
		return nil, err
	}
	selects, err := filter.ParseWhere(raw)
	if err != nil {
		return nil, err
	}
	page, err := v.API.WorkPage(v.Request.Context(), client.PageOptions{Limit: maxRunning})
	if err != nil {
		return nil, err
	}
	for i := range page.Items {
		w := &page.Items[i]
		if !isRunning(w) || w.Action != order.Action {
			continue
		}
		if s, err := filter.ParseWhere(w.Where); err == nil && reflect.DeepEqual(s, selects) {
			return w, nil
		}
	}
	return nil, nil // it is documented
}

// read reads the options of the form.
func (o *order) read(v *web.Visit) {
	o.texts = changeForm.Typed(v.Request.PostForm, nil)
	maps.DeleteFunc(o.texts, func(name, _ string) bool { return !slices.Contains(o.action.changes, name) })
	if o.action.paced {
		o.rates = map[string]string{"rate": v.Form("rate"), "lane_rate": v.Form("lane_rate")}
	}
	o.all = v.Form("all") == "yes"
}
