package obstacles

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// lane is a lane that may hold jobs back.
type lane struct {
	store.TroubledLane
	subject
}

// hasState reports whether the state of the lane's queue may be a reason: due jobs wait, and have a rate or an order.
func (l *lane) hasState() bool {
	return l.Ready > 0 && (l.limits().Rate.Limited() || l.limits().Ordered)
}

// isUndecided reports whether the state of the lane's queue may be its only reason, or a failing one.
func (l *lane) isUndecided() bool { return len(l.Reasons) == 0 || l.limits().Ordered }

// judge returns a lane with the reasons that follow from its counts and settings.
func (s *search) judge(t *topic, settings store.Lane, counts store.LaneStats) *lane {
	s.lookedAt++
	q := s.queue(t, counts.Lane)
	l := &lane{
		TroubledLane: store.TroubledLane{
			Queue: q, Scheduled: counts.Scheduled, Ready: counts.Ready, Running: counts.Running,
		},
		subject: subject{queue: q, topic: t.policy, settings: settings, names: listed},
	}
	now := time.Now()
	if !counts.CooldownUntil.After(now) {
		counts.CooldownUntil = time.Time{}
	}
	l.Receiver = store.NewReceiver(counts.Health, now)
	l.add(l.cooldown(&counts), l.probe(&counts), l.failing(counts.Health))
	if l.Scheduled+l.Ready > 0 {
		l.add(l.topicPause(), l.lanePause())
	}
	if l.Ready > 0 {
		l.add(l.full(l.Running), l.topicRate(t.rateUntil))
	}
	return l
}

// add adds those of the obstacles that there are.
func (l *lane) add(all ...*job.Obstacle) {
	for _, o := range all {
		if o != nil {
			l.Reasons = append(l.Reasons, *o)
		}
	}
}

// addOfState adds the obstacles that follow from the state of the queue: its rate, and a failed job that comes first.
func (s *search) addOfState(ctx context.Context, l *lane, state *store.QueueState) error {
	l.add(l.rate(state.NextStart))
	if !l.limits().Ordered || state.Next.ID == "" || state.Running > 0 {
		return nil
	}
	next, err := s.opts.Store.GetIn(ctx, l.Queue, state.Next)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil // it has ended since
	case err != nil:
		return err
	case next.State == job.Scheduled && next.FailedAttempts > 0:
		l.add(l.order(&next))
	}
	return nil
}
