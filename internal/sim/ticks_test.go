package sim

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/store"
)

// progress is what the ledger knows of a schedule: the body of its internal job.
type progress struct {
	Timing string               `json:"timing"`
	Passed time.Time            `json:"passed"`
	Paused bool                 `json:"paused"`
	Ended  bool                 `json:"ended"`
	Counts store.ScheduleCounts `json:"counts"`
}

// treated returns the number of ticks that have passed.
func (p *progress) treated() int64 {
	return p.Counts.Run + p.Counts.Skipped + p.Counts.Missed + p.Counts.Failed
}

// ticks counts the ticks after a time that have passed.
func (p *progress) ticks(after time.Time) int64 {
	var every time.Duration
	if _, err := fmt.Sscanf(p.Timing, "||%d|", &every); err != nil {
		panic(err)
	}
	ticks, err := schedule.Parse(schedule.Spec{Every: every})
	if err != nil {
		panic(err)
	}
	n, _ := ticks.Count(after, p.Passed, most)
	return n
}

// step checks a step of a schedule: each tick since the last step has run, or is counted as skipped or missed. Those of
// a pause, and those before a change of the times, do not count.
func (l *ledger) step(e *entry, s *store.Settlement) {
	was, now := e.progress, progress{}
	if err := json.Unmarshal(s.Body, &now); err != nil {
		l.breach("%s: %v", s.Ref.ID, err)
		return
	}
	if was.Timing == "" {
		was.Timing, was.Passed = now.Timing, e.createdAt
	}
	ticks, treated := now.ticks(was.Passed), now.treated()-was.treated()
	switch {
	case ticks == treated:
	case treated > ticks, !was.Paused && was.Timing == now.Timing:
		l.breach("%s: %d ticks between %v and %v, and the step counts %d: %+v",
			s.Ref.ID, ticks, was.Passed, now.Passed, treated, now)
	}
	ran := int64(0)
	for i := range s.Outbox {
		at, isTick := job.ScheduledAt(s.Outbox[i].ID, s.Outbox[i].Queue)
		if isTick {
			ran++
		}
		if isTick && at.After(l.w.clock()) && l.stepped.IsZero() {
			l.breach("%s: a tick of it, %s, is registered at %v", s.Ref.ID, s.Outbox[i].ID, l.w.clock())
		}
	}
	if n := now.Counts.Run - was.Counts.Run; n != ran {
		l.breach("%s: %d ticks ran, and the step registers %d jobs", s.Ref.ID, n, ran)
	}
	e.progress = now
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
		if e.spec.Topic == job.ScheduleTopic && !e.progress.Ended {
			return false
		}
	}
	return true
}
