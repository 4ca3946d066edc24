package response

import (
	"time"

	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

// Schedule writes a schedule with its progress.
func (o *Buffer) Schedule(s *store.Schedule) {
	o.Text("state", scheduleState(s))
	o.Members(s)
	o.objectOrNull("job", s.HasSettings(), func() { o.scheduleJob(s.Job, s.ExpiresIn) })
	o.scheduleTicks("next", s.Next, s.Delay)
}

// scheduleState returns the state of a schedule.
func scheduleState(s *store.Schedule) string {
	switch {
	case s.Unreadable:
		return "unreadable"
	case s.Paused:
		return "paused"
	case s.Ended:
		return "ended"
	default:
		return "active"
	}
}

// scheduleTicks writes ticks to come, with the time at which their jobs are due.
func (o *Buffer) scheduleTicks(name string, ticks []schedule.Tick, delay time.Duration) {
	Objects(o, name, ticks, func(t *schedule.Tick) {
		o.Time("at", t.At)
		o.Text("local", t.Local.Format(time.RFC3339))
		o.Time("due_at", t.At.Add(delay))
		o.TextOrNull("note", t.Note)
	})
}

// BackfillCount writes the number of ticks that a backfill would run.
func (o *Buffer) BackfillCount(total int64) {
	o.Bool("dry_run", true)
	o.Number("total", total)
}

// Preview writes the first n ticks of a schedule that is not stored after an instant, and when it runs.
func (o *Buffer) Preview(s *schedule.Schedule, after time.Time, n int) {
	o.scheduleTicks("items", s.Ticks(after, n), 0)
	o.Text("description", s.Describe())
}
