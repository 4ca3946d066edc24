package deadpages

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/form"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

const (
	// defaultRate is the pace that the form suggests: receivers that have just come back are not flooded.
	defaultRate = "10/s"
	perSecond   = 10
	// sampleJobs are shown of those that match.
	sampleJobs = 5
	// countedField is the hidden field with the time at which the jobs were counted.
	countedField = "counted_at"
)

// orderData is the data of the page that counts jobs before bulk work.
type orderData struct {
	Lead  string
	Class string

	Selection *filter.Form
	Action    web.Field  // a select
	Chosen    bool       // there is an action
	Choices   []web.Link // of actions, without one
	Verb      string

	Which   string
	Groups  []countRow
	Others  int64 // groups that are not shown
	Samples []jobRow
	Happens []string
	Later   string // what jobs that are left out have done since the count

	// The form that starts the work.
	Startable bool
	Hidden    []web.Link // names and values
	Errors    web.FormErrors
	Pace      []web.Field
	Changes   []web.Field
	MustFill  bool // the changes are what it is for
	All       *allBox
	Submit    string
	Confirm   string
}

// countRow is a number of jobs of a topic and a reason.
type countRow struct{ Topic, Why, Count string }

// allBox is the box that is ticked to select all jobs.
type allBox struct{ Text, Error string }

// order is what the page is asked for.
type order struct {
	action  action
	known   bool
	texts   form.Texts // of the changes
	rates   map[string]string
	all     bool // the box is ticked
	counted time.Time
	problem web.FormErrors
}

// bounded returns the filter of the jobs that were counted, and whose number the reader confirms: without those that
// were registered, or have ended, since then. The time is by the clock of this process, and those of jobs are by the
// store's: jobs that were registered or have ended around it, by no more than the clocks differ, are left out or
// selected although they came later.
func (o *order) bounded(f filter.Filter) filter.Filter {
	bound := &f.CreatedBefore
	if o.action.isOfEnded() {
		bound = &f.EndedBefore
	}
	if bound.IsZero() || o.counted.Before(*bound) {
		*bound = o.counted
	}
	return f
}

// newOrder shows what bulk work would do.
func newOrder(v *web.Visit) (web.Answer, error) {
	q := v.Request.URL.Query()
	var o order
	o.action, o.known = actionOf(v.Query("action"))
	if o.action.paced {
		o.rates = map[string]string{"rate": defaultRate}
	}
	return showOrder(v, readSelection(v, q, "action", "live"), o)
}

// showOrder counts the jobs and shows the form.
func showOrder(v *web.Visit, s *filter.Form, o order) (web.Answer, error) {
	s.Without = []string{"state"}
	s.Extra = []web.Field{{Name: "state", Label: "State", Placeholder: "as the action has it"}}
	data := &orderData{
		Selection: s, Chosen: o.known, Verb: o.action.verb, Errors: o.problem,
		Which: o.action.which(filter.Selection{Filter: s.Filter}),
	}
	data.Action = web.Field{
		Name: "action", Label: "What to do", Kind: "select", Value: o.action.code,
		Options: []web.Link{{Text: "choose"}},
	}
	for _, a := range actions {
		data.Action.Options = append(data.Action.Options, web.Link{To: a.code, Text: a.verb})
	}
	if !o.known {
		data.Action.Value = ""
	}
	page := &web.Page{
		View: "work-order", Title: "Change many jobs", Section: "work",
		Crumbs: []web.Link{{To: v.Path("work"), Text: "Work"}}, Data: data, Status: http.StatusOK,
	}
	switch {
	case s.Errors.Any():
		data.Lead = "These jobs cannot be counted."
	case !o.known:
		data.Lead = "Choose what to do with which jobs. They are counted first; nothing changes yet."
		page.Status = cmp.Or(o.problem.Status, s.Errors.Status)
		data.Choices, data.Errors = choicesOf(v, s.Filter), withoutInputs(data.Errors)
		return page, nil
	default:
		err := data.count(v, o)
		if err == nil {
			break
		}
		if err := s.Fail(err); err != nil {
			return nil, err
		}
		data.Lead = "The API refuses this selection."
	}
	if o.known {
		page.Title = o.action.verb + " many jobs"
	}
	if !data.Startable {
		data.Errors = withoutInputs(data.Errors)
	}
	page.Status = cmp.Or(o.problem.Status, s.Errors.Status)
	return page, nil
}

// withoutInputs returns the errors of a form that the page does not show, so that they do not lead to its inputs.
func withoutInputs(f web.FormErrors) web.FormErrors {
	f.General = slices.Clone(f.General)
	for _, name := range slices.Sorted(maps.Keys(f.Fields)) {
		f.General = append(f.General, name+": "+f.Fields[name])
	}
	f.Fields = nil
	return f
}

// choicesOf returns the actions that can change jobs of the filter's states.
func choicesOf(v *web.Visit, f filter.Filter) []web.Link {
	var links []web.Link
	for _, a := range actions {
		can := a.states
		if slices.Contains(can, client.Dead) {
			can = append(slices.Clone(can), client.Delivered, client.Cancelled)
		}
		if len(f.State) == 0 ||
			!slices.ContainsFunc(f.State, func(s client.State) bool { return !slices.Contains(can, s) }) {
			links = append(links, web.Link{To: orderLink(v, a.code, f), Text: a.verb + "…"})
		}
	}
	return links
}

// count counts the jobs and sets what follows from their number.
func (d *orderData) count(v *web.Visit, o order) error {
	o.counted = v.Now.Truncate(time.Millisecond)
	f := d.Selection.Filter
	counted, err := v.API.CountWork(v.Request.Context(), client.WorkOrder{
		Action: o.action.code, Where: o.bounded(f).Where(), Within: countTime(v), Change: countedChange(o.action),
	})
	if err != nil {
		return err
	}
	d.Others = int64(max(0, len(counted.Groups)-maxGroups))
	for _, g := range counted.Groups[:min(len(counted.Groups), maxGroups)] {
		d.Groups = append(d.Groups, countRow{g.Topic, words.Reason(g.Reason), words.Number(g.Count)})
	}
	if counted.Matched > 0 {
		q := o.bounded(f).WithStates(o.action.states...).Query()
		q.Limit, q.Within = sampleJobs, sampleWithin
		jobs, err := v.API.JobPage(v.Request.Context(), q)
		if err != nil {
			return err
		}
		for _, j := range jobs.Items {
			d.Samples = append(d.Samples, newJobRow(j))
		}
	}
	d.setLead(counted, o)
	if d.Startable = counted.Matched > 0 || !counted.Exact; d.Startable {
		d.setForm(v, counted, o)
	}
	return nil
}

// countedChange returns a change with which the API accepts the count of an edit. It is not made.
func countedChange(a action) *client.Change {
	if a.code != client.ActionEdit {
		return nil
	}
	return &client.Change{Timeout: time.Second}
}

func (d *orderData) setLead(counted *client.WorkCount, o order) {
	match := words.CountVerb(counted.Matched, "job", "matches", "match") + ". Nothing is changed yet."
	switch {
	case counted.Matched == 0 && counted.Exact:
		d.Lead = "No job matches: there is nothing to " + words.LowerFirst(o.action.verb) + "."
	case counted.Matched == 0:
		d.Lead = "No job was found yet that matches, and there are more to look at. Nothing is changed yet."
	case counted.Exact:
		d.Lead = "Exactly " + match
	default:
		d.Lead = "At least " + match
	}
	if o.action.confirmOf(d.Selection.State) != "" && counted.Matched > 0 {
		d.Class = "warn"
	}
}

// setForm sets the form that starts the work.
func (d *orderData) setForm(v *web.Visit, counted *client.WorkCount, o order) {
	d.Happens, d.Later = o.action.happens, "are registered"
	if o.action.isOfEnded() {
		d.Later = "end"
	}
	pairs := d.Selection.Pairs()
	d.Hidden = []web.Link{
		{To: "action", Text: o.action.code},
		{To: countedField, Text: o.counted.UTC().Format(time.RFC3339Nano)},
	}
	for i := 0; i < len(pairs); i += 2 {
		d.Hidden = append(d.Hidden, web.Link{To: pairs[i], Text: pairs[i+1]})
	}
	number := "the jobs that match"
	if counted.Exact {
		number = words.Count(counted.Matched, "job")
	}
	if d.Selection.SelectsAll() && !counted.Exact {
		number = d.Which
	}
	d.Submit = o.action.verb + " " + number
	if confirm := o.action.confirmOf(d.Selection.State); confirm != "" {
		d.Confirm = d.Submit + "? " + confirm
		if o.action.confirm == "" { // what happens does not say it
			d.Happens = append(slices.Clone(d.Happens), confirm)
		}
	}
	if d.Selection.SelectsAll() {
		d.All = &allBox{Error: o.problem.Of("all"), Text: "I mean ALL " +
			d.Selection.WithStates(o.action.states...).Words() + " of the namespace " + v.Namespace}
	}
	if o.action.paced {
		hint := "How many become due in a time, such as 10/s or 100/1m. Empty: all at once."
		if counted.Exact && o.rates["rate"] == defaultRate {
			seconds := (counted.Matched + perSecond - 1) / perSecond
			hint += " At " + defaultRate + " it takes about " + words.Duration(time.Duration(seconds)*time.Second) + "."
		}
		d.Pace = []web.Field{
			{Name: "rate", Label: "Pace", Value: o.rates["rate"], Hint: hint, Error: o.problem.Of("rate")},
			{
				Name: "lane_rate", Label: "Pace of each lane", Value: o.rates["lane_rate"], Placeholder: "2/s",
				Error: o.problem.Of("lane_rate"),
				Hint:  "Spares a receiver that has just come back. Empty: no limit of its own.",
			},
		}
	}
	d.setChanges(o)
}

// changeForm is the form of the changes.
var changeForm = form.Of[client.Change](form.Group{Fields: form.JobFields("", editable...)})

// changeHints replace the hints of a single job's form. Those of an action follow its code.
var changeHints = map[string]string{
	"url": "Empty: as it is. Jobs with secret headers are not sent to another host unless you give the " +
		"headers, too.",
	"headers":      "One a line. They replace all headers of each job. Empty: as they are.",
	"delay":        "From now on, such as 90s, 1h30m or 2d. Empty: the due time stays.",
	"revive delay": "How much later the first one is due. It needs a pace. Empty: now.",
	"retries":      "Attempts after the first, 0 to 1000. Empty: as it is.",
	"ladder":       "The waits between attempts. Empty: as it is.",
	"timeout":      "Of an attempt, 100ms to 10m. Empty: as it is.",
	"expires_in":   "No attempt starts later. Empty: as it is.",
	"revive expires_in": "No attempt starts later. A job whose expiry has passed is revived only with a new one. " +
		"Empty: as it is.",
	"labels": "One name=value a line. They replace all labels of each job. Empty: as they are.",
}

// setChanges sets the fields of the changes.
func (d *orderData) setChanges(o order) {
	d.MustFill = o.action.code == client.ActionEdit
	d.Changes = changeForm.Fields(o.texts, o.problem, o.action.changes...)
	for i := range d.Changes {
		name := d.Changes[i].Name
		d.Changes[i].Hint = cmp.Or(changeHints[o.action.code+" "+name], changeHints[name])
	}
}
