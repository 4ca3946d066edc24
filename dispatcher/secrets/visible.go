package secrets

import (
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// OpenVisible returns headers as the API shows them to those who may read bodies: only credentials stay sealed, and
// what this process cannot open.
func (s *Sealer) OpenVisible(header map[string][]string) map[string][]string {
	opened, _ := job.OpenOthers(header, s.OpenHeader) // a delivery that needs one that cannot be opened logs why
	return opened
}

// VisibleSpec returns what a job asks for with its headers and those of its callbacks opened as OpenVisible does.
func (s *Sealer) VisibleSpec(spec job.Spec) job.Spec {
	spec.Header = s.OpenVisible(spec.Header)
	s.openCallbacks(&spec.OnDelivered, &spec.OnDead)
	return spec
}

// VisibleJob is VisibleSpec for a job that a call has returned.
func (s *Sealer) VisibleJob(j job.Job, err error) (job.Job, error) {
	j.Spec = s.VisibleSpec(j.Spec)
	return j, err
}

// VisibleJobs is VisibleJob for all of some jobs.
func (s *Sealer) VisibleJobs(all []job.Job) {
	for i := range all {
		all[i].Spec = s.VisibleSpec(all[i].Spec)
	}
}

// VisibleSchedule is VisibleJob for the job of a schedule.
func (s *Sealer) VisibleSchedule(one store.Schedule, err error) (store.Schedule, error) {
	one.Job = s.VisibleSpec(one.Job)
	return one, err
}

// VisibleSchedules is VisibleSchedule for all of some schedules.
func (s *Sealer) VisibleSchedules(all []store.Schedule, err error) ([]store.Schedule, error) {
	for i := range all {
		all[i].Job = s.VisibleSpec(all[i].Job)
	}
	return all, err
}

// VisibleTopic is VisibleJob for a topic.
func (s *Sealer) VisibleTopic(t store.Topic, err error) (store.Topic, error) {
	p := &t.Policy
	p.Headers = s.OpenVisible(p.Headers)
	s.openCallbacks(&p.OnDelivered, &p.OnDead)
	if p.OnBacklog != nil {
		shown := *p.OnBacklog
		shown.Headers = s.OpenVisible(shown.Headers)
		p.OnBacklog = &shown
	}
	return t, err
}

// VisibleTopics is VisibleTopic for all of some topics.
func (s *Sealer) VisibleTopics(all []store.Topic) []store.Topic {
	for i := range all {
		all[i], _ = s.VisibleTopic(all[i], nil)
	}
	return all
}

// VisibleLane is VisibleJob for a lane.
func (s *Sealer) VisibleLane(l store.Lane, err error) (store.Lane, error) {
	l.Settings.Headers = s.OpenVisible(l.Settings.Headers)
	return l, err
}

// VisibleLanes is VisibleLane for all of some lanes.
func (s *Sealer) VisibleLanes(all []store.Lane, err error) ([]store.Lane, error) {
	for i := range all {
		all[i], _ = s.VisibleLane(all[i], nil)
	}
	return all, err
}

func (s *Sealer) openCallbacks(all ...**policy.Callback) {
	for _, c := range all {
		if *c != nil && len((*c).Headers) > 0 {
			shown := **c
			shown.Headers = s.OpenVisible(shown.Headers)
			*c = &shown
		}
	}
}
