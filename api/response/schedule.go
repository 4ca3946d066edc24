package response

import (
	"time"

	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
)

// Schedule writes a schedule with its progress.
func (o *Buffer) Schedule(s *store.Schedule) {
	o.Text("name", s.Name)
	o.Number("revision", s.Revision)
	o.Text("state", scheduleState(s))
	o.TextOrNull("cron", s.Cron)
	o.TextOrNull("timezone", s.Timezone)
	o.DurationOrNull("every", s.Every)
	o.DurationOrNull("offset", s.Offset)
	o.DurationOrNull("jitter", s.Jitter)
	o.Time("starts_at", s.StartsAt)
	o.Time("ends_at", s.EndsAt)
	o.objectOrNull("job", s.HasSettings(), func() { o.scheduleJob(&s.Job, s.ExpiresIn) })
	o.TextOrNull("overlap", string(s.Overlap))
	o.objectOrNull("catch_up", s.CatchUp.Runs != "", func() {
		o.Duration("window", s.CatchUp.Window)
		o.Text("runs", string(s.CatchUp.Runs))
	})
	o.numberOrNull("max_runs", s.MaxRuns)
	o.numberOrNull("pause_after_dead", int64(s.PauseAfterDead))
	o.TextOrNull("note", s.Note)
	o.TextOrNull("managed_by", s.ManagedBy)
	o.pause(s.Paused, s.Pause)
	o.Time("created_at", s.CreatedAt)
	o.TextOrNull("created_by", s.CreatedBy)
	o.updated(s.Updated)
	o.TextOrNull("description", s.Description)
	o.DurationOrNull("jitter_delay", s.Delay)
	o.scheduleTicks("next", s.Next, s.Delay)
	Objects(o, "last", s.Last, func(t *store.ScheduleTick) {
		o.Time("at", t.At)
		o.Text("outcome", string(t.Outcome))
		o.TextOrNull("reason", t.Reason)
		o.TextOrNull("job_id", t.JobID)
		o.TextOrNull("job_state", string(t.JobState))
	})
	o.Object("counts")
	o.Number("run", s.Counts.Run)
	o.Number("skipped", s.Counts.Skipped)
	o.Number("missed", s.Counts.Missed)
	o.Number("failed", s.Counts.Failed)
	o.Close()
	o.objectOrNull("backfill", s.Backfill != nil, func() { o.backfill(s.Backfill) })
	o.Durability(s.Durability)
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

// backfill writes a backfill with its progress.
func (o *Buffer) backfill(b *store.Backfill) {
	o.Time("after", b.After)
	o.Time("before", b.Before)
	o.Text("rate", units.FormatRate(b.Rate))
	o.Number("total", b.Total)
	o.Number("done", b.Done)
	o.TextOrNull("failed", b.Failed)
	o.Time("created_at", b.CreatedAt)
	o.TextOrNull("created_by", b.Actor)
	o.Time("ended_at", b.EndedAt)
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
