package schedules

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/ringback/ringback/dispatcher/internaljobs"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

const (
	// idleWait is the time to the next step of a schedule without ticks, and the longest to that of any other.
	idleWait = 24 * time.Hour
	// unreadableWait is the time to the next step of a schedule that this program cannot read.
	unreadableWait = punctual / 2
	// batch bounds the ticks that one step runs: with those of a backfill, their jobs have up to 1.3 MiB of bodies.
	batch = 10
	// pace is the time between ticks that run late.
	pace = time.Second / batch
	// insertPace is the time between two looks at a job that is not inserted from the outbox yet.
	insertPace = time.Second
	// outboxTime is the time within which the job of a tick is expected to be inserted from the outbox.
	outboxTime = time.Minute
)

// step is one step of a schedule.
type step struct {
	*Service
	*progress
	doc       *document
	stored    store.Document
	spans     []span
	namespace string
	name      string
	started   time.Time // by this process's clock
	claimedAt time.Time // by the store's, not later than started
	outbox    []store.NewJob
	unknown   map[int64]bool // ticks of whose jobs nothing is known
}

// Step makes the ticks that are due.
func (s *Service) Step(ctx context.Context, j *store.ClaimedJob) (internaljobs.Step, error) {
	st := step{Service: s, namespace: j.Namespace, name: j.Lane, started: time.Now(), claimedAt: j.Now()}
	doc, stored, err := s.read(ctx, st.namespace, st.name)
	if errors.Is(err, store.ErrNotFound) || err == nil && doc.JobID != j.ID {
		return internaljobs.Step{Done: true}, nil // it was deleted, and perhaps created again
	}
	p, unreadable := decodeProgress(j.Body)
	if unreadable != nil {
		return internaljobs.Step{}, unreadable
	}
	st.progress = &p
	if err == nil {
		st.doc, st.stored = doc, stored
		err = st.findSpans()
	}
	_, unknown := errors.AsType[*job.InvalidError](err) // such as its time zone
	switch {
	case err != nil && !unknown && !errors.Is(err, store.ErrUnreadable):
		return internaljobs.Step{}, err
	case err != nil:
		s.opts.Logger.Error("schedule not readable, its ticks "+
			"wait", "schedule", st.name, "namespace", st.namespace, "err", err)
		return internaljobs.Step{Wait: unreadableWait}, nil
	}
	if p.Timing == "" {
		p.Passed = j.CreatedAt
	}
	p.Timing, p.Seen = doc.timing(), doc.Since
	before := p.Counts
	wait, err := st.run(ctx)
	if err != nil {
		return internaljobs.Step{}, err
	}
	s.observe(&before, &p.Counts)
	body, err := json.Marshal(&p)
	return internaljobs.Step{Wait: max(0, min(wait, idleWait)), Body: body, Outbox: st.outbox}, err
}

// observe reports the ticks that a step has treated.
func (s *Service) observe(before, after *store.ScheduleCounts) {
	if s.opts.Observe == nil {
		return
	}
	for outcome, n := range map[store.TickOutcome]int64{
		store.TickRun: after.Run - before.Run, store.TickSkipped: after.Skipped - before.Skipped,
		store.TickMissed: after.Missed - before.Missed, store.TickFailed: after.Failed - before.Failed,
	} {
		if n > 0 {
			s.opts.Observe(outcome, n)
		}
	}
}

// run makes the ticks that are due and the next ones of a backfill, and returns the time to the next step.
func (s *step) run(ctx context.Context) (time.Duration, error) {
	s.forgetDead()
	if s.doc.Paused {
		s.Due = nil // what is late is missed
	} else if paused, err := s.pauseAfterDead(ctx); paused || err != nil {
		return 0, err // the next step makes the ticks from before the pause
	}
	wait, err := s.runDue(ctx)
	switch {
	case err != nil:
		return 0, err
	case s.newest().since.After(s.claimedAt): // a change since the claim, or a clock that was set back
		return 0, nil
	case s.doc.Paused:
		return wait, nil
	}
	later, err := s.runBackfill(ctx)
	return min(wait, later), err
}

// runDue makes ticks that are due, and returns the time to the next one.
func (s *step) runDue(ctx context.Context) (time.Duration, error) {
	if s.Due == nil {
		next, in := s.next(s.Passed)
		if in == nil || !s.isDue(next) {
			return s.untilNext(), nil
		}
		s.Due = s.findDue(next)
	}
	if !s.skipMissed() {
		return 0, nil
	}
	ticks, wait, err := s.runTicks(ctx)
	if wait > 0 || err != nil {
		return wait, err
	}
	if next, in := s.next(s.Passed); in != nil && !next.After(s.Due.Until) {
		return time.Duration(ticks) * pace, nil
	}
	s.Due = nil
	return s.untilNext(), nil
}

// untilNext returns the time until the job of the next tick is due. It is not shorter, because the store's clock was
// read before.
func (s *step) untilNext() time.Duration {
	next, in := s.next(s.Passed)
	if in == nil || !s.isDue(next) {
		s.advance()
	}
	if in == nil {
		return idleWait
	}
	return max(0, next.Add(in.delay).Sub(s.claimedAt)-time.Since(s.started))
}

// runTicks runs the first ticks that are due, and returns their number. wait is set if the rest has to wait for a
// reason.
func (s *step) runTicks(ctx context.Context) (n int, wait time.Duration, err error) {
	ticks := s.firstDue()
	overlap, cancel := s.doc.Overlap, false
	if overlap != store.OverlapAllow && len(ticks) > 0 {
		ticks = ticks[:1] // the next one depends on its job
		unfinished, inserted, err := s.isLastUnfinished(ctx)
		switch {
		case err != nil:
			return 0, 0, err
		case unfinished && overlap == store.OverlapSkip:
			s.record(store.ScheduleTick{At: ticks[0], Outcome: store.TickSkipped, Reason: "the job of the tick " +
				"before is unfinished"})
			return 1, 0, nil
		case unfinished && !inserted:
			return 0, insertPace, nil
		}
		cancel = unfinished
	}
	prepared, err := s.prepare(ctx, ticks)
	if cancel && len(prepared) > 0 { // and not for a job that is refused
		if err := s.cancelLast(ctx); err != nil {
			return 0, 0, err
		}
	}
	for i := range prepared {
		s.record(store.ScheduleTick{At: ticks[i], Outcome: store.TickRun, JobID: prepared[i].ID})
		s.LastJob, s.LastRunAt = prepared[i].ID, s.claimedAt
		if s.isLate(ticks[i], punctual) {
			s.LastLateAt = s.claimedAt
		}
	}
	s.outbox = append(s.outbox, prepared...)
	if err == nil {
		return len(ticks), 0, nil
	}
	if wait, over := internaljobs.QuotaWait(err); over {
		return 0, wait, nil
	}
	if !internaljobs.IsRefused(err) {
		return 0, 0, err
	}
	s.opts.Logger.Warn("ticks of a schedule failed: their jobs were refused", "schedule", s.name,
		"namespace", s.namespace, "err", err)
	for _, at := range ticks[len(prepared):] {
		s.record(store.ScheduleTick{At: at, Outcome: store.TickFailed, Reason: internaljobs.Reason(err)})
	}
	return len(ticks), 0, nil
}

// firstDue returns the first ticks that are due, of one period: as many as a step may run.
func (s *step) firstDue() []time.Time {
	_, in := s.next(s.Passed)
	if in == nil {
		return nil
	}
	most := batch
	if in.MaxRuns > 0 {
		most = int(min(int64(most), in.MaxRuns-s.Counts.Run))
	}
	return first(in.ticks, most, later(s.Passed, in.from), earlier(s.Due.Until, in.until))
}

// first returns the first ticks after a time, until another.
func first(of *schedule.Schedule, most int, after, until time.Time) (ticks []time.Time) {
	for len(ticks) < most {
		tick, ok := of.Next(after)
		if !ok || tick.After(until) {
			break
		}
		ticks, after = append(ticks, tick), tick
	}
	return ticks
}

// prepare returns the jobs of ticks. With an error it returns those before the first that was refused.
func (s *step) prepare(ctx context.Context, ticks []time.Time) ([]store.NewJob, error) {
	if len(ticks) == 0 {
		return nil, nil
	}
	jobs := make([]job.New, len(ticks))
	for i, tick := range ticks {
		jobs[i] = s.doc.newJob(s.namespace)
		jobs[i].ID = job.TickID(s.name, tick)
		jobs[i].CreatedBy = actorOf(s.name)
	}
	return s.opts.Registrar.PrepareJobs(ctx, jobs)
}

// newJob returns a job of the schedule, without its id.
func (d *document) newJob(namespace string) job.New {
	n := job.New{Spec: d.Job, ExpiresIn: d.ExpiresIn}
	n.Namespace = namespace
	return n
}

// actorOf returns the actor in the events of jobs that a schedule registers or cancels.
func actorOf(name string) string { return "schedule:" + name }

// isLastUnfinished reports whether the job of the last tick that ran is unfinished, and whether it is inserted.
func (s *step) isLastUnfinished(ctx context.Context) (unfinished, inserted bool, err error) {
	if s.LastJob == "" {
		return false, false, nil
	}
	statuses, err := s.opts.Jobs.StatusOnAny(ctx, []job.Ref{{Namespace: s.namespace, ID: s.LastJob}})
	if err != nil {
		return false, false, err
	}
	status := &statuses[0]
	expected := !status.Known() && s.claimedAt.Sub(s.LastRunAt) <= outboxTime
	return expected || status.Unfinished(), status.Known(), nil
}

// cancelLast cancels the job of the last tick that ran. A running job is marked.
func (s *step) cancelLast(ctx context.Context) error {
	_, err := s.opts.Jobs.Cancel(ctx, job.Ref{Namespace: s.namespace, ID: s.LastJob},
		store.Cancellation{Actor: actorOf(s.name)})
	if _, ended := errors.AsType[*store.StateError](err); ended || errors.Is(err, store.ErrNotFound) {
		return nil
	}
	return err
}
