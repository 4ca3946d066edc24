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
	o.Number("scheduled", l.Scheduled)
	o.Number("ready", l.Ready)
	o.Number("running", l.Running)
	o.Time("oldest_due_at", l.OldestDue)
	if l.LastFailure == nil {
		o.Null("last_failure")
		return
	}
	f := l.LastFailure
	o.Object("last_failure")
	o.Text("job_id", f.JobID)
	o.Time("at", f.At)
	o.numberOrNull("status", int64(f.Status))
	o.TextOrNull("error", f.Error)
	o.TextOrNull("error_class", string(f.ErrorClass))
	o.Close()
}
