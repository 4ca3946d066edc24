package response

import "github.com/ringback/ringback/store"

// TroubledLanes writes lanes in trouble.
func (o *Buffer) TroubledLanes(all *store.TroubledLanes) {
	Objects(o, "items", all.Lanes, o.troubledLane)
	o.Number("total", int64(all.Total))
	o.Number("looked_at", int64(all.LookedAt))
	o.Bool("exact", all.Exact)
}

func (o *Buffer) troubledLane(l *store.TroubledLane) {
	o.Text("topic", l.Queue.Topic)
	o.Text("lane", l.Queue.Lane)
	Objects(o, "reasons", l.Reasons, o.obstacle)
	o.Members(l)
}
