package response

import "github.com/ringback/ringback/store"

// Work writes bulk work.
func (o *Buffer) Work(w *store.Work) {
	o.Members(w)
	if w.Total < 0 {
		o.Null("total")
	} else {
		o.Number("total", w.Total)
	}
}

// WorkCount writes the number of jobs that bulk work would select.
func (o *Buffer) WorkCount(counted store.Groups) {
	matched := int64(0)
	for _, g := range counted.Groups {
		matched += g.Count
	}
	o.Bool("dry_run", true)
	o.Number("matched", matched)
	o.Bool("exact", counted.Exact)
	Objects(o, "groups", counted.Groups, func(g *store.Group) {
		o.TextOrNull("topic", g.Topic)
		o.TextOrNull("reason", string(g.Reason))
		o.Number("count", g.Count)
	})
}
