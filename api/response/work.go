package response

import (
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
)

// Work writes bulk work.
func (o *Buffer) Work(w *store.Work) {
	o.Text("id", w.ID)
	o.Text("action", string(w.Action))
	if len(w.Request) > 0 {
		o.Member("where", w.Request)
	} else {
		o.Null("where")
	}
	o.Object("change")
	o.TextOrNull("url", w.URL)
	o.DurationOrNull("delay", w.Delay)
	o.DurationOrNull("expires_in", w.ExpiresIn)
	o.Close()
	o.TextOrNull("rate", units.FormatRate(w.Rate))
	o.TextOrNull("lane_rate", units.FormatRate(w.LaneRate))
	o.Text("state", string(w.State))
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
	if w.EndedAt.IsZero() {
		o.Null("ended_at")
	} else {
		o.Time("ended_at", w.EndedAt)
	}
	o.TextOrNull("created_by", w.Actor)
}

// WorkCount writes the number of jobs that bulk work would select.
func (o *Buffer) WorkCount(matched int64, exact bool, groups []store.Group) {
	o.Bool("dry_run", true)
	o.Number("matched", matched)
	o.Bool("exact", exact)
	Objects(o, "groups", groups, func(g *store.Group) {
		o.TextOrNull("topic", g.Topic)
		o.TextOrNull("reason", string(g.Reason))
		o.Number("count", g.Count)
	})
}
