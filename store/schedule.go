package store

import (
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/schedule"
	"github.com/ringback/ringback/policy"
)

// KindSchedule is the kind of the documents of schedules. Engines do not know it.
const KindSchedule = "schedule"

// Overlap is what a tick does while the job of the tick before is unfinished.
type Overlap string

// The overlaps.
const (
	OverlapAllow  Overlap = "allow"  // runs beside it
	OverlapSkip   Overlap = "skip"   // does not run
	OverlapCancel Overlap = "cancel" // cancels it and runs
)

// CatchUpRuns are the late ticks that run.
type CatchUpRuns string

// The values of CatchUpRuns.
const (
	CatchUpLast CatchUpRuns = "last"
	CatchUpAll  CatchUpRuns = "all"
	CatchUpNone CatchUpRuns = "none"
)

// CatchUp says which ticks run that are late because no process was there for them.
type CatchUp struct {
	Window time.Duration `api:"window,default" validate:"omitempty,min=1ms,max=8784h"` // older ticks never run
	Runs   CatchUpRuns   `api:"runs,default" validate:"oneof=last all none"`
}

// Bounds and defaults of schedules.
const (
	// MaxSchedules bounds the schedules of a namespace, approximately: schedules that are created at once are not
	// counted.
	MaxSchedules = 1000
	// MaxScheduleName bounds the name of a schedule, so that the ids of its jobs are valid.
	MaxScheduleName = 40
	// MaxScheduleBody bounds the body of a schedule's job, in bytes.
	MaxScheduleBody = 64 << 10
	// DefaultCatchUpWindow is the default of CatchUp.Window.
	DefaultCatchUpWindow = time.Hour
	// MaxCatchUp bounds the late ticks of one catch-up that run.
	MaxCatchUp = 1000
	// MaxBackfill bounds the ticks of a backfill.
	MaxBackfill = 10_000
	// MaxScheduleTicks bounds Schedule.Last.
	MaxScheduleTicks = 20
)

// ScheduleSettings are a schedule as clients put it.
type ScheduleSettings struct {
	schedule.Spec
	// Job is what each tick registers, without an id, a namespace and a due time. Secret headers are sealed for their
	// origin.
	Job       job.Spec      `validate:"-"`
	ExpiresIn time.Duration // of a job, from its registration; zero: never
	Overlap   Overlap       `api:"overlap,default" validate:"oneof=allow skip cancel"`
	CatchUp   CatchUp       `api:"catch_up,default"`
	// MaxRuns ends the schedule after as many ticks that ran; zero: never.
	MaxRuns int64 `api:"max_runs" validate:"omitempty,min=1"`
	// PauseAfterDead pauses the schedule when as many of its jobs in a row have died; zero: never.
	PauseAfterDead int    `api:"pause_after_dead" validate:"omitempty,min=1,max=20"`
	Note           string `api:"note,empty" validate:"max=1000"`       // for people
	ManagedBy      string `api:"managed_by" validate:"omitempty,mark"` // the files that set the schedule; empty: none
}

// Schedule is a schedule with its progress.
type Schedule struct {
	Namespace string
	Name      string `api:"name"`
	ScheduleSettings
	Paused    bool          `api:"paused,always"`
	Pause     policy.Pause  `api:",inline"`
	CreatedAt time.Time     `api:"created_at"` // zero: it is not stored yet
	CreatedBy string        `api:"created_by"` // the name of the client; empty: unknown
	Updated   policy.Update `api:",inline"`
	// Revision and Durability are those of the document.
	Revision   int64           `api:"revision,always"`
	Durability *job.Durability `api:"durability"`
	// Unreadable is set when the document cannot be decoded, or its progress, or its time zone is unknown. See
	// HasSettings.
	Unreadable bool

	// Ended is set when no tick is left.
	Ended bool
	// Description says when it runs (schedule.Schedule.Describe); empty: unknown.
	Description string `api:"description"`
	// Next are the ticks to come.
	Next []schedule.Tick
	// Delay is the delay of the jobs after their ticks (Spec.Jitter).
	Delay time.Duration `api:"jitter_delay"`
	// Last are the newest ticks that have passed, oldest first.
	Last   []ScheduleTick `api:"last,always"`
	Counts ScheduleCounts `api:"counts,always"`
	// Backfill is the last one; nil: there was none.
	Backfill *Backfill `api:"backfill"`
}

// HasSettings reports whether the document was decoded. If not, only Namespace, Name and Revision are known.
func (s *Schedule) HasSettings() bool { return !s.Unreadable || s.Cron != "" || s.Every != 0 }

// ScheduleCounts are the ticks that have passed, by outcome.
type ScheduleCounts struct {
	Run     int64 `json:"run,omitempty" api:"run,always"`
	Skipped int64 `json:"skipped,omitempty" api:"skipped,always"`
	Missed  int64 `json:"missed,omitempty" api:"missed,always"`
	Failed  int64 `json:"failed,omitempty" api:"failed,always"`
}

// TickOutcome is what became of a tick.
type TickOutcome string

// The outcomes of ticks.
const (
	TickRun     TickOutcome = "run"     // its job was registered
	TickSkipped TickOutcome = "skipped" // by Overlap
	TickMissed  TickOutcome = "missed"  // it was too late
	TickFailed  TickOutcome = "failed"  // its job was refused
)

// TickOutcomes returns all outcomes.
func TickOutcomes() []TickOutcome {
	return []TickOutcome{TickRun, TickSkipped, TickMissed, TickFailed}
}

// ScheduleTick is a tick that has passed.
type ScheduleTick struct {
	At      time.Time   `json:"at" api:"at"`
	Outcome TickOutcome `json:"outcome" api:"outcome"`
	// Reason explains an outcome other than run.
	Reason string `json:"reason,omitempty" api:"reason"`
	// JobID and JobState are those of the tick's job; empty: there is none, or it is no longer stored.
	JobID    string    `json:"job,omitempty" api:"job_id"`
	JobState job.State `json:"state,omitempty" api:"job_state"`
}

// Backfill runs the ticks of a past time. Ticks whose job's id is known are not run again.
type Backfill struct {
	After     time.Time   `json:"after" api:"after"`   // inclusive
	Before    time.Time   `json:"before" api:"before"` // exclusive
	Rate      policy.Rate `json:"rate" api:"rate"`
	Total     int64       `json:"total" api:"total,always"` // ticks
	Actor     string      `json:"actor,omitempty" api:"created_by"`
	CreatedAt time.Time   `json:"created_at" api:"created_at"`
	// Done are the ticks that were run.
	Done int64 `json:"done,omitempty" api:"done,always"`
	// Failed is why the rest was not run; empty: it was, or will be.
	Failed string `json:"failed,omitempty" api:"failed"`
	// EndedAt is zero while it goes on.
	EndedAt time.Time `json:"ended_at" api:"ended_at"`
}
