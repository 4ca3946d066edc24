package schedulepages

import (
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// backfill is the progress of a backfill.
type backfill struct {
	*client.BackfillState

	Class, Text string
	IsRunning   bool
}

// newBackfill returns the progress of a schedule's last backfill; nil: it had none.
func newBackfill(s *client.Schedule) *backfill {
	if s.Backfill == nil {
		return nil
	}
	b := &backfill{BackfillState: s.Backfill}
	done := words.Number(b.Done) + " of " + words.Count(b.Total, "tick")
	span := " from " + words.DateTime(b.After, nil) + " to " + words.DateTime(b.Before, nil)
	switch {
	case b.Failed != "":
		b.Class, b.Text = "bad", words.Sentence("The backfill"+span+" failed after", done+":", b.Failed)
	case !b.EndedAt.IsZero():
		b.Class, b.Text = "ok", words.Sentence("The backfill"+span+" has run", done)
	case s.State == "paused":
		b.IsRunning, b.Class, b.Text = true, "warn", words.Sentence("The backfill"+span+" has run", done, "and goes on when the schedule is resumed")
	default:
		b.IsRunning, b.Text = true, words.Sentence("The backfill"+span+" has run", done+",", "at", b.Rate)
	}
	return b
}
