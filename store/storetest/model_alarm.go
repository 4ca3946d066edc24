package storetest

import (
	"context"
	"slices"

	"github.com/ringback/ringback/store"
)

// Alarm sets a topic's alarm.
func (s *modelShard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	m := s.model
	now, err := m.open(ctx)
	if err != nil {
		return false, err
	}
	defer m.mu.Unlock()
	return once(s, now, call{"alarm", token}, func() (bool, error) {
		name := topicName{alarm.Namespace, alarm.Topic}
		if s.alarms[name] == alarm.Raised {
			return false, nil
		}
		s.alarms[name] = alarm.Raised
		s.writeOutbox(alarm.Outbox)
		return true, nil
	})
}

// writeOutbox appends jobs to the outbox and wakes the carrier.
func (s *modelShard) writeOutbox(jobs []store.NewJob) {
	if len(jobs) == 0 {
		return
	}
	for _, e := range jobs {
		e.Spec, e.Fingerprint = clone(e.Spec), slices.Clone(e.Fingerprint)
		s.outbox = append(s.outbox, e)
	}
	s.agendaMoved = true
	s.wakeWaiters()
}
