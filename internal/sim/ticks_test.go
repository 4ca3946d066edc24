package sim

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

// account is what the ledger knows of a schedule, from its creation to its removal: by the documents that were stored,
// and the steps that were settled.
type account struct {
	changes   []scheduleChange // oldest first
	isRemoved bool
	outcomes  map[time.Time]store.TickOutcome
	newest    time.Time // of outcomes
	counts    store.ScheduleCounts
}

// scheduleChange is a stored document of a schedule. It decides about ticks from a time between from and until on: by
// the store's clock, which shows no time twice unless it was set back.
type scheduleChange struct {
	JobID  string
	Every  time.Duration
	EndsAt time.Time
	Paused bool

	from, until time.Time
}

// putSchedule notes a change of a schedule, or its removal.
func (l *ledger) putSchedule(doc store.Document, revision int64) {
	if doc.Value == nil {
		l.schedules[doc.Key.Name].isRemoved = true
		return
	}
	c := scheduleChange{from: job.Millis(l.w.clock())}
	if err := json.Unmarshal(doc.Value, &c); err != nil {
		l.breach("%s: %v", doc.Key.Name, err)
	}
	c.until = latest(time.UnixMilli(revision), l.peak, c.from)
	a := l.accounts[c.JobID]
	if a == nil {
		a = &account{outcomes: make(map[time.Time]store.TickOutcome)}
		l.accounts[c.JobID], l.schedules[doc.Key.Name] = a, a
	}
	a.changes = append(a.changes, c)
	l.w.story.add("%s is put: every %v, paused %t", c.JobID, c.Every, c.Paused)
}

// moveChanges notes that the clock was stepped. If it was set back, a change may hold from its new time on: a step that
// comes later sees a change that was made before.
func (l *ledger) moveChanges() {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := job.Millis(l.w.clock())
	for _, a := range l.accounts {
		for i := range a.changes {
			a.changes[i].from = earliest(a.changes[i].from, now)
		}
	}
}

func latest(times ...time.Time) time.Time   { return slices.MaxFunc(times, time.Time.Compare) }
func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }

// ticks returns the ticks after a time and until another that the schedule has for certain, or those that it may have.
func (a *account) ticks(after, until time.Time, certain bool) (ticks []time.Time) {
	for i, c := range a.changes {
		from, end := c.from, until
		if certain {
			from = c.until
		}
		for _, next := range a.changes[i+1:] {
			if certain { // a later one may be the first, after the clock was set back
				end = earliest(end, next.from)
				continue
			}
			end = earliest(end, next.until)
			break
		}
		of, err := schedule.Parse(schedule.Spec{Every: c.Every, EndsAt: c.EndsAt})
		if err != nil || c.Paused {
			continue
		}
		at := latest(from, after)
		for tick, ok := of.Next(at); ok && !tick.After(end); tick, ok = of.Next(tick) {
			ticks = append(ticks, tick)
		}
	}
	slices.SortFunc(ticks, time.Time.Compare)
	return slices.CompactFunc(ticks, time.Time.Equal)
}

// lost returns the ticks until a time that have no outcome.
func (a *account) lost(until time.Time) []time.Time {
	return slices.DeleteFunc(a.ticks(time.Time{}, until, true), func(tick time.Time) bool {
		return a.outcomes[tick] != ""
	})
}

// step checks a step of a schedule: each tick that has passed is one of the schedule, has passed once, and is counted.
// Those that ran have their jobs in the outbox.
func (l *ledger) step(s *store.Settlement) {
	var now struct {
		Counts store.ScheduleCounts `json:"counts"`
		Last   []store.ScheduleTick `json:"last"`
	}
	if err := json.Unmarshal(s.Body, &now); err != nil {
		l.breach("%s: %v", s.Ref.ID, err)
		return
	}
	a := l.accounts[s.Ref.ID]
	ran := make(map[string]bool)
	for i := range s.Outbox {
		at, isTick := job.ScheduledAt(s.Outbox[i].ID, s.Outbox[i].Queue)
		if ran[s.Outbox[i].ID] = true; isTick && at.After(l.w.clock()) && l.stepped.IsZero() {
			l.breach("%s: a tick of it, %s, is registered at %v", s.Ref.ID, s.Outbox[i].ID, l.w.clock())
		}
	}
	passed := slices.DeleteFunc(now.Last, func(t store.ScheduleTick) bool { return !t.At.After(a.newest) })
	if more := total(now.Counts) - total(a.counts) - len(passed); more > 0 && len(passed) == store.MaxScheduleTicks {
		before := passed[0].At.Add(-1)
		least := a.ticks(a.newest, before, true)
		if most := a.ticks(a.newest, before, false); more < len(least) || more > len(most) {
			l.breach("%s: %d ticks are missed before %v, of %d", s.Ref.ID, more, passed[0].At, len(most))
		}
		for _, tick := range least {
			a.outcomes[tick] = store.TickMissed
		}
		a.counts.Missed += int64(more)
	}
	for _, t := range passed {
		if len(a.ticks(t.At.Add(-1), t.At, false)) == 0 {
			l.breach("%s: %v is %s, and none of its ticks", s.Ref.ID, t.At, t.Outcome)
		}
		if (t.Outcome == store.TickRun) != ran[t.JobID] {
			l.breach("%s: the tick %v is %s, and its job in the outbox: %t", s.Ref.ID, t.At, t.Outcome, ran[t.JobID])
		}
		delete(ran, t.JobID)
		a.outcomes[t.At], a.newest = t.Outcome, t.At
		a.add(t.Outcome)
	}
	if now.Counts != a.counts || len(ran) > 0 {
		l.breach("%s: counts %+v, by the ledger %+v, and registers %v besides", s.Ref.ID, now.Counts, a.counts, ran)
	}
}

func total(c store.ScheduleCounts) int { return int(c.Run + c.Skipped + c.Missed + c.Failed) }

func (a *account) add(outcome store.TickOutcome) {
	switch outcome {
	case store.TickRun:
		a.counts.Run++
	case store.TickSkipped:
		a.counts.Skipped++
	case store.TickMissed:
		a.counts.Missed++
	case store.TickFailed:
		a.counts.Failed++
	}
}

// isQuiet reports whether the ticks of all schedules have passed, the outbox is empty, and no alarm is raised.
func (l *ledger) isQuiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, raised := range l.raised {
		if raised {
			return false
		}
	}
	for ref := range l.outbox {
		if l.entries[ref] == nil {
			return false
		}
	}
	for _, e := range l.entries {
		if e.spec.Topic == job.ScheduleTopic && e.state == "" && !e.isIdle && !e.isPurged {
			return false
		}
	}
	return true
}
