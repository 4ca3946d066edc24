package nowpage

import "time"

// overdue is how long a job is due and waits when nothing can be said about the carrier: it moves due jobs at least once a second.
const overdue = 5 * time.Second

// carrierKeepsUp reports whether the counts show that the carrier moves jobs in time. The API does not tell which process carries, and
// counts due jobs as ready whether it has moved them or not. So late jobs may be the carrier's fault, the workers' or a lane's.
func (s *state) carrierKeepsUp() bool {
	c := s.counts
	return c != nil && c.Scheduled+c.Ready > 0 && s.oldestLate() < overdue
}
