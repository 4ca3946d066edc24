package schedules

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxUndecided bounds the older jobs that countDead looks at.
const maxUndecided = 100

// record adds a tick that has passed. One that leaves Last is undecided while its job is unfinished.
func (s *step) record(t store.ScheduleTick) {
	if s.doc.PauseAfterDead > 0 && len(s.Last) == store.MaxScheduleTicks && s.isUndecided(&s.Last[0]) {
		if len(s.Undecided) == maxUndecided { // one of which nothing is known was perhaps delivered and removed
			if i := slices.IndexFunc(s.Undecided, func(unix int64) bool { return s.unknown[unix] }); i >= 0 {
				s.Undecided = slices.Delete(s.Undecided, i, i+1)
			}
		}
		if len(s.Undecided) < maxUndecided {
			s.Undecided = append(s.Undecided, s.Last[0].At.Unix())
		}
	}
	s.progress.record(t)
}

// isUndecided reports whether the job of a tick may still count as dead.
func (s *step) isUndecided(t *store.ScheduleTick) bool {
	return t.JobID != "" && !t.JobState.Ended() && t.At.After(s.DeadUntil)
}

// countDead sets DeadInRow by the jobs that have ended since the last step, in the order of their ticks.
func (s *step) countDead(ctx context.Context) error {
	ticks := make([]*store.ScheduleTick, 0, len(s.Undecided)+len(s.Last))
	for _, unix := range s.Undecided {
		at := time.Unix(unix, 0).UTC()
		ticks = append(ticks, &store.ScheduleTick{At: at, JobID: job.TickID(s.name, at)})
	}
	for i := range s.Last {
		if s.isUndecided(&s.Last[i]) {
			ticks = append(ticks, &s.Last[i])
		}
	}
	refs := make([]job.Ref, len(ticks))
	for i, t := range ticks {
		refs[i] = job.Ref{Namespace: s.namespace, ID: t.JobID}
	}
	statuses, err := s.opts.Jobs.StatusOnAny(ctx, refs)
	if err != nil {
		return err
	}
	lateInserted := s.claimedAt.Sub(s.LastLateAt) > outboxTime
	older := len(s.Undecided)
	s.Undecided, s.unknown = s.Undecided[:0], make(map[int64]bool)
	for i, t := range ticks {
		s.unknown[t.At.Unix()] = !statuses[i].Known()
		ended := statuses[i].Ended
		if !statuses[i].Known() && lateInserted && s.isLate(t.At, punctual+outboxTime) {
			ended = job.Delivered // long ago: dead jobs are retained for longer
		}
		switch ended {
		case job.Dead:
			s.DeadInRow++
		case job.Delivered:
			s.DeadInRow = 0
		}
		if t.JobState = ended; ended == "" && i < older {
			s.Undecided = append(s.Undecided, t.At.Unix())
		}
	}
	return nil
}

// forgetDead forgets the jobs of ticks from before the schedule was last resumed.
func (s *step) forgetDead() {
	for i := 1; i < len(s.spans); i++ {
		p := &s.spans[i]
		if s.spans[i-1].Paused && !p.since.After(s.claimedAt) && p.from.After(s.DeadUntil) {
			s.DeadInRow, s.DeadUntil, s.Undecided = 0, p.from, nil
		}
	}
}

// pauseAfterDead pauses the schedule if its last jobs have died, and reports whether it did.
func (s *step) pauseAfterDead(ctx context.Context) (bool, error) {
	if s.doc.PauseAfterDead == 0 {
		s.DeadInRow, s.Undecided = 0, nil
		return false, nil
	}
	if err := s.countDead(ctx); err != nil {
		return false, err
	}
	if s.DeadInRow < s.doc.PauseAfterDead {
		return false, nil
	}
	s.doc.Paused = true
	s.doc.Pause = policy.Pause{
		At: job.Millis(s.claimedAt), By: actorOf(s.name),
		Note: fmt.Sprintf("the last %d jobs died (pause_after_dead)", s.DeadInRow),
	}
	// The ticks that are due now are of the pause, but for those of ended periods.
	s.doc.endPeriod(s.PassedSince)
	s.doc.Since = max(s.doc.Since+1, earlier(s.claimedAt, s.Passed.Add(s.newest().delay)).UnixMilli())
	if _, err := s.write(ctx, s.stored, s.doc); err != nil {
		return false, err // also after a change meanwhile: the next step reads it
	}
	s.Due = nil
	s.opts.Logger.Warn("schedule paused, because its last jobs died", "schedule", s.name, "namespace",
		s.namespace, "dead", s.DeadInRow)
	return true, nil
}
