package sched

import "time"

// addRunning counts an attempt as under way. Its lane counts as slow once it hangs: a receiver that never answers must
// not be noticed only by its timeout, which can be ten minutes.
func (s *Scheduler) addRunning(j *Job, now time.Time) {
	j.startedAt, j.runningElement = now, s.running.PushBack(j)
	j.Lane.running++
	j.running = true
}

// removeRunning takes an attempt out of those under way. A job without a worker is not among them.
func (s *Scheduler) removeRunning(j *Job) {
	switch {
	case j.runningElement != nil:
		s.running.Remove(j.runningElement)
		j.runningElement = nil
	case j.hanging:
		s.hanging--
		j.Lane.hanging--
		j.Lane.updateHealth()
	}
	if j.running {
		j.running = false
		j.Lane.running--
	}
}

// MarkHanging moves the lanes of attempts that are under way for SlowAfter to the slow ones. next is when the oldest of
// the other attempts will be; zero: there is none.
func (s *Scheduler) MarkHanging(now time.Time) (next time.Time) {
	for s.running.Len() > 0 {
		j, _ := s.running.Front().Value.(*Job)
		if at := j.startedAt.Add(SlowAfter); now.Before(at) {
			return at
		}
		s.running.Remove(j.runningElement)
		j.runningElement, j.hanging = nil, true
		s.hanging++
		j.Lane.hanging++
		j.Lane.updateHealth()
	}
	return time.Time{}
}
