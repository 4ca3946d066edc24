package jobpages

import (
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// eventSection is the item of the navigation.
const eventSection = "events"

// maxEventLanes bounds the lanes on the page of an event.
const maxEventLanes = 200

// eventList is the data of the list of events.
type eventList struct {
	Lead   string
	Fields []web.Field
	Rows   []client.SentEvent
	Pager  web.Pager
}

// showEvents answers with a page of events.
func showEvents(v *web.Visit) (web.Answer, error) {
	f := client.EventFilter{
		Topic: v.Query("topic"), Type: v.Query("type"),
		PageOptions: client.PageOptions{Cursor: v.Query("cursor"), Limit: pageSize},
	}
	d := &eventList{Fields: []web.Field{
		{Name: "topic", Label: "Topic", Value: f.Topic, Search: true}, {Name: "type", Label: "Type", Value: f.Type},
	}}
	page := &web.Page{View: "event-list", Title: "Events", Section: eventSection, Data: d}
	found, err := v.API.EventsPage(v.Request.Context(), f)
	if errs, ok := web.FormErrorsOf(err, "topic", "type"); ok {
		d.Lead, page.Status = "The API refuses this filter.", errs.Status
		for i := range d.Fields {
			d.Fields[i].Error = errs.Of(d.Fields[i].Name)
		}
		return page, nil
	}
	if err != nil {
		return nil, err
	}
	d.Rows, d.Pager = found.Items, v.Pager(found.NextCursor)
	switch {
	case len(d.Rows) > 0:
		d.Lead = "The newest events first."
	case f.Topic != "" || f.Type != "":
		d.Lead = "No event matches."
	default:
		d.Lead = "There are no events."
	}
	return page, nil
}

// eventData is the data of the page of an event.
type eventData struct {
	*client.SentEvent

	Lead, Class string
	Lanes       []client.EventLane
	More        int64 // jobs that are not shown
	Jobs        string
	Body        string
}

// showEvent answers with an event and its jobs.
func showEvent(v *web.Visit) (web.Answer, error) {
	e, err := v.API.GetEvent(v.Request.Context(), v.PathValue("event"))
	if err != nil {
		return nil, err
	}
	d := &eventData{SentEvent: e, Lanes: e.Lanes[:min(len(e.Lanes), maxEventLanes)], Body: string(e.Body)}
	d.Lead, d.Class = eventLead(e)
	d.More = e.Jobs - int64(len(d.Lanes))
	d.Jobs = v.PathQuery(v.Path("jobs"), "topic", e.Topic, "id_prefix", eventPrefix+e.ID+":")
	if e.BodyText != nil {
		d.Body = *e.BodyText
	} else if len(e.BodyBase64) > 0 {
		d.Body = words.Count(int64(len(e.BodyBase64)), "byte") + " that are no text"
	}
	return &web.Page{
		View: "event", Reload: true, Title: "Event " + e.ID, Section: eventSection,
		Crumbs: []web.Link{{To: v.Path("events"), Text: "Events"}}, Data: d,
	}, nil
}

// eventLead says what became of an event, and how bad that is.
func eventLead(e *client.SentEvent) (text, class string) {
	c := e.Counts
	var parts []string
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, words.Number(n)+" "+what)
		}
	}
	add(c.Delivered, "delivered")
	add(c.Waiting, "waiting")
	add(c.Dead, "dead")
	add(c.Cancelled, "cancelled")
	add(c.Forgotten, "no longer known")
	switch {
	case e.WaitingFor != "":
		return words.Sentence("The rest of its jobs wait:", e.WaitingFor), "warn"
	case !e.Expanded:
		return "Its lanes get their jobs when it is due, some after others.", ""
	case e.Jobs == 0 && len(e.Refused) > 0:
		return "It has no jobs: those of its lanes were refused.", "bad"
	case e.Jobs == 0:
		return "No lane subscribed to it, so it has no jobs.", "warn"
	case c.Dead > 0:
		class = "bad"
	case c.Delivered == e.Jobs:
		class = "ok"
	}
	text = words.Count(e.Jobs, "job") + ": " + strings.Join(parts, ", ")
	if !c.Exact {
		text += ", of the first 1,000"
	}
	return words.Sentence(text), class
}
