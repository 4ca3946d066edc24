package response

import "github.com/ringback/ringback/store"

// HeldLanes writes lanes that hold jobs back.
func (o *Buffer) HeldLanes(all *store.HeldLanes) {
	Objects(o, "items", all.Lanes, o.heldLane)
	o.Number("total", int64(all.Total))
	o.Number("looked_at", int64(all.LookedAt))
	o.Bool("exact", all.Exact)
}

func (o *Buffer) heldLane(l *store.HeldLane) {
	o.Text("topic", l.Queue.Topic)
	o.Text("lane", l.Queue.Lane)
	Objects(o, "reasons", l.Reasons, o.obstacle)
	o.Members(l)
}
