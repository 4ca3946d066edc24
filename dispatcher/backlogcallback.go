package dispatcher

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
)

// backlogPayload is the payload of a callback about a topic's backlog.
type backlogPayload struct {
	Type       string    `json:"type"` // topic.backlog, topic.backlog_over
	Timestamp  timestamp `json:"timestamp"`
	Topic      string    `json:"topic"`
	Unfinished int64     `json:"unfinished"` // number of unfinished jobs
	// OldestDueAt is the due time of the oldest waiting job; null: none waits.
	OldestDueAt *timestamp `json:"oldest_due_at"`
	OlderThan   *string    `json:"older_than"` // null: not limited
	MoreThan    *int64     `json:"more_than"`
}

// backlogCallback returns the callback about a topic with on_backlog that exceeds its limits, or no longer does,
// without an id and a lane.
func backlogCallback(t *store.Topic, exceeded bool, s *store.TopicStats, now time.Time) job.New {
	alarm := t.Policy.OnBacklog
	b := backlogPayload{
		Type: "topic.backlog_over", Timestamp: timestamp(now), Topic: t.Name,
		Unfinished: s.Scheduled + s.Ready + s.Running, MoreThan: nonZero(alarm.MoreThan),
	}
	if exceeded {
		b.Type = "topic.backlog"
	}
	if alarm.OlderThan > 0 {
		b.OlderThan = new(units.FormatDuration(alarm.OlderThan))
	}
	if !s.OldestDue.IsZero() {
		b.OldestDueAt = new(timestamp(s.OldestDue))
	}
	n := newCallback(&alarm.Callback, t.Namespace, t.Name, b)
	n.Kind, n.Origin = job.KindBacklog, t.Name
	return n
}
