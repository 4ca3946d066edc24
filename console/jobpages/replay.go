package jobpages

import (
	"cmp"
	"encoding/json"
	"net/url"
	"reflect"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// defaultRate is the pace that the form of a replay suggests.
const defaultRate = "10/s"

// replayData is the data of the page that sends events again.
type replayData struct {
	Lead    string
	Errors  web.FormErrors
	Fields  []web.Field
	Counted bool // the form can start what was counted
}

// countReplay answers with the form of a replay, and with the number of its jobs once it is filled.
func countReplay(v *web.Visit) (web.Answer, error) {
	q := v.Request.URL.Query()
	if len(q) == 0 {
		q = url.Values{"rate": {defaultRate}}
	}
	d := &replayData{Lead: "Choose which events are sent again, and to which lanes. Their jobs are counted first."}
	isFilled := q.Get("rate") != defaultRate || len(q) > 1
	o := d.read(v, q)
	if isFilled && o.Where.Topic == "" && o.Where.IDs == nil {
		d.Errors.Add("topic", "is required, or ids")
		d.Fields[0].Error = d.Errors.Of("topic")
	}
	if !isFilled || d.Errors.Any() {
		return d.page(), nil
	}
	count, err := v.API.CountWork(v.Request.Context(), o)
	if err != nil {
		return d.refuse(err)
	}
	d.Counted = count.Matched > 0
	number := words.Count(count.Matched, "job")
	if !count.Exact {
		d.Counted, number = true, "at least "+number
	}
	d.Lead = words.Sentence("This would make", number)
	return d.page(), nil
}

// startReplay starts the replay that was counted.
func startReplay(v *web.Visit) (web.Answer, error) {
	d := &replayData{Lead: "Nothing was started."}
	o := d.read(v, v.Request.PostForm)
	if d.Errors.Any() {
		return d.page(), nil
	}
	same, err := findReplay(v, o)
	if err != nil {
		return nil, err
	}
	if same != nil {
		return web.Warn(v.Path("work", same.ID),
			"Nothing was started: this replay was begun before, from the same count."), nil
	}
	started, err := v.API.StartWork(v.Request.Context(), o)
	if err != nil {
		return d.refuse(err)
	}
	return &web.Redirect{To: v.Path("work", started.ID)}, nil
}

// findReplay returns the replay that the same form began, which was sent again; nil: there is none. As the selection
// has the time of the count, it is that of no other form. A selection by ids has no time, and is not recognised.
func findReplay(v *web.Visit, order client.WorkOrder) (*client.Work, error) {
	if order.Where.CreatedBefore.IsZero() {
		return nil, nil
	}
	page, err := v.API.WorkPage(v.Request.Context(), client.PageOptions{Limit: 100})
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(order.Where)
	if err != nil {
		return nil, err
	}
	var wanted client.Where
	if err := json.Unmarshal(raw, &wanted); err != nil {
		return nil, err
	}
	for i := range page.Items {
		w, has := &page.Items[i], client.Where{}
		if w.Action == order.Action && json.Unmarshal(w.Where, &has) == nil && reflect.DeepEqual(has, wanted) {
			return w, nil
		}
	}
	return nil, nil
}

// read reads what the page is asked for, and makes the fields of its form. Events that are sent after the count are
// left out.
func (d *replayData) read(v *web.Visit, q url.Values) client.WorkOrder {
	of := make(url.Values)
	for _, name := range []string{"topic", "lane", "state", "created_after", "created_before"} {
		of[name] = q[name]
	}
	f, wrong := filter.Parse(of, v.Now)
	o := client.WorkOrder{Action: client.ActionReplay, Where: f.Where(), Rate: strings.TrimSpace(q.Get("rate"))}
	o.Where.Type = strings.TrimSpace(q.Get("type"))
	if ids := strings.Fields(q.Get("ids")); len(ids) > 0 {
		o.Where.IDs = ids
	}
	for name, sentence := range wrong {
		d.Errors.Add(name, sentence)
	}
	if o.Where.CreatedBefore.IsZero() && o.Where.Topic != "" {
		o.Where.CreatedBefore = v.Now
	}
	for _, at := range []*time.Time{&o.Where.CreatedAfter, &o.Where.CreatedBefore} {
		*at = at.Truncate(time.Millisecond) // as the store keeps them
	}
	texts := map[string]string{ // times as they are read now
		"created_after": timeText(o.Where.CreatedAfter), "created_before": timeText(o.Where.CreatedBefore),
	}
	field := func(name, label, hint string) web.Field {
		value := cmp.Or(texts[name], strings.TrimSpace(q.Get(name)))
		return web.Field{Name: name, Label: label, Hint: hint, Value: value, Error: wrong[name]}
	}
	state := field("state", "Whose job of the event", "")
	state.Kind, state.Options = "select", []web.Link{
		{Text: "is in any state, or missing"},
		{To: string(client.Missed), Text: "is missing: they had none"},
		{To: string(client.Dead), Text: "is dead"},
		{To: string(client.Delivered), Text: "is delivered"},
	}
	d.Fields = []web.Field{
		field("topic", "Topic", ""), field("type", "Type", ""),
		field("ids", "Ids of events", "Instead of topic, type and times."),
		field("created_after", "Sent after", "In UTC, such as 2030-01-31T08:00, or how long ago: 90m, 2d."),
		field("created_before", "Sent before", ""), field("lane", "To the lane", "Empty: to all that subscribe."),
		state,
		field("rate", "Jobs that become due", "Such as 10/s. Empty: all at once."),
	}
	return o
}

// timeText returns a time as the form reads it; empty: none.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// refuse answers with what the API found wrong.
func (d *replayData) refuse(err error) (web.Answer, error) {
	var names []string
	for _, f := range d.Fields {
		names = append(names, f.Name)
	}
	found, ok := web.FormErrorsOf(err, names...)
	if !ok {
		return nil, err
	}
	for i := range d.Fields {
		d.Fields[i].Error = found.Of(d.Fields[i].Name)
	}
	d.Errors, d.Lead = found, "The API refuses this replay."
	return d.page(), nil
}

func (d *replayData) page() *web.Page {
	return &web.Page{
		View: "replay", Title: "Send events again", Section: eventSection, Data: d, Status: d.Errors.Status,
	}
}
