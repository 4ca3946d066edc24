package response

import (
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
)

// Work writes bulk work.
func (o *Buffer) Work(w *store.Work) {
	o.Text("id", w.ID)
	o.TextOrNull("action", string(w.Action))
	o.memberOrNull("where", w.Where)
	o.memberOrNull("change", w.Change)
	o.TextOrNull("rate", units.FormatRate(w.Rate))
	o.TextOrNull("lane_rate", units.FormatRate(w.LaneRate))
	o.Text("state", string(w.State))
	if w.Total < 0 {
		o.Null("total")
	} else {
		o.Number("total", w.Total)
	}
	o.Number("matched", w.Matched)
	o.Bool("exact", w.Listed)
	o.Number("done", w.Done)
	o.Number("failed", w.Failed)
	o.Number("skipped", w.Skipped)
	Objects(o, "failures", w.Failures, func(f *store.WorkFailure) {
		o.Text("id", f.ID)
		o.Text("reason", f.Reason)
	})
	o.Time("created_at", w.CreatedAt)
	o.Time("eta_at", w.ETA)
	o.Time("ended_at", w.EndedAt)
	o.TextOrNull("created_by", w.Actor)
}

// memberOrNull writes a member that is JSON; empty: null.
func (o *Buffer) memberOrNull(name string, value []byte) {
	if len(value) == 0 {
		o.Null(name)
	} else {
		o.Member(name, value)
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
