package nowpage

import "time"

// overdue is how long a job is due and waits when nothing can be said about the carrier: it moves due jobs at least
// once a second.
const overdue = 5 * time.Second

// carrier is what the counts show of the carrier.
type carrier struct {
	KeepsUp bool
	Text    string // empty: there are no counts
}

// carrier returns whether the carrier moves due jobs in time. The API does not tell which process carries, and counts
// due jobs as ready whether it has moved them or not. So late jobs may be the carrier's fault, the workers' or a
// lane's.
func (s *state) carrier() carrier {
	c := s.counts
	switch {
	case c == nil:
		return carrier{}
	case c.Scheduled+c.Ready == 0:
		return carrier{Text: "no job waits for it"}
	case s.oldestLate() < overdue:
		return carrier{KeepsUp: true, Text: "no job has been due for more than 5s"}
	default:
		return carrier{Text: "not known while jobs are late: they may wait for it, for a worker or for their lane. " +
			"If it stood still, no job would be delivered at a later time or tried again"}
	}
}
