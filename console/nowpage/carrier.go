package nowpage

import (
	"time"

	"github.com/ringback/ringback/console/words"
)

// unmoved is how long a job is due and not ready when the page says that the carrier does not move jobs: it moves them at least once a
// second.
const unmoved = 5 * time.Second

// carrier is what the counts say about the carrier. The API does not tell which process carries.
type carrier struct {
	Class string // of a pill: ok or bad
	Word  string
	Text  string
}

// carrier says whether due jobs become ready. Lanes that hold jobs back may keep due ones from it: then nothing can be said.
func (s *state) carrier() carrier {
	c := s.counts
	switch {
	case c == nil || s.held == nil:
		return carrier{}
	case c.Scheduled > 0 && c.Ready == 0 && !c.OldestDueAt.IsZero() && s.v.Now.Sub(c.OldestDueAt) > unmoved && len(s.held.Items) == 0 && s.held.Exact:
		return carrier{"bad", "stands still", "the oldest job has been due for " + words.Duration(s.v.Now.Sub(c.OldestDueAt)) + ", and none is ready: see the servers' logs"}
	default:
		return carrier{"ok", "moves due jobs", ""}
	}
}
