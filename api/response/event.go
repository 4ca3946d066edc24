package response

import "github.com/ringback/ringback/store"

// Event writes an event without its body.
func (o *Buffer) Event(e *store.Event) { o.Members(e) }

// EventResult writes what became of an event in a batch.
func (o *Buffer) EventResult(index int, e *store.Event, status int, p *Problem) {
	o.Open()
	o.Number("index", int64(index))
	o.TextOrNull("id", e.ID)
	o.Number("status", int64(status))
	if p != nil {
		o.nulls("jobs", "expanded")
		o.Problem("error", p)
	} else {
		o.Number("jobs", e.Jobs)
		o.Bool("expanded", e.Expanded)
		o.Null("error")
	}
	o.Close()
}
