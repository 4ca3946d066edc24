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
	// Window is how old a late tick may be: older ones never run. Default: 1h.
	Window time.Duration `api:"window,default" validate:"omitempty,min=1ms,max=8784h"`
	// Runs is which late ticks run. `last`: the newest one, unless a later tick runs. `all`: the newest 1,000, about
	// ten a second. `none`: no late tick. Default: last.
	Runs CatchUpRuns `api:"runs,default" validate:"oneof=last all none"`
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
	// Overlap is what a tick does while the job of the tick before is unfinished. `allow`: run beside it. `skip`: do
	// not run. `cancel`: cancel it and run. Default: allow.
	Overlap Overlap `api:"overlap,default" validate:"oneof=allow skip cancel"`
	// CatchUp is which ticks run later than a minute after they were due, for example because no process was there. The
	// others are missed. Default: {"window": "1h", "runs": "last"}.
	CatchUp CatchUp `api:"catch_up,default"`
	// MaxRuns is the number of ticks after which the schedule ends. Only ticks that ran count. Default: no limit.
	MaxRuns int64 `api:"max_runs" validate:"omitempty,min=1"`
	// PauseAfterDead pauses the schedule before its next tick once this many of its jobs have died. The count starts
	// anew when one is delivered, or when the schedule is resumed. Default: never.
	PauseAfterDead int `api:"pause_after_dead" validate:"omitempty,min=1,max=20"`
	// Note is for people. Default: none.
	Note string `api:"note,empty" validate:"max=1000"`
	// ManagedBy is the name of the set of files that manages these settings; `ringback apply` sets it. The next apply
	// undoes changes made in other ways. A PUT without it keeps it. Null: no files.
	ManagedBy string `api:"managed_by" validate:"omitempty,mark"`
}

// Schedule is a schedule with its progress.
type Schedule struct {
	Namespace string
	Name      string `api:"name,always"`
	ScheduleSettings
	// Paused is whether it is paused: its ticks do not run.
	Paused bool         `api:"paused,always"`
	Pause  policy.Pause `api:",inline"`
	// CreatedAt is when it was first put. Null: it is not stored yet.
	CreatedAt time.Time `api:"created_at"`
	// CreatedBy is the token that first put it. Null: unknown, or no token was needed.
	CreatedBy string        `api:"created_by"`
	Updated   policy.Update `api:",inline"`
	// Revision grows with every change.
	Revision int64 `api:"revision,always"`
	// Durability is null except in answers to changes.
	Durability *job.Durability `api:"durability"`
	// Unreadable is set when the document cannot be decoded, or its progress, or its time zone is unknown. See
	// HasSettings.
	Unreadable bool

	// Ended is set when no tick is left.
	Ended bool
	// Description is when the schedule runs, in English. Null: it is unreadable, or the answer to a dry run.
	//
	// See schedule.Schedule.Describe.
	Description string `api:"description"`
	// Next are the ticks to come.
	Next []schedule.Tick
	// Delay is the delay of all jobs after their ticks, a part of `jitter`.
	Delay time.Duration `api:"jitter_delay"`
	// Last are the newest ticks that have passed, oldest first.
	Last []ScheduleTick `api:"last,always"`
	// Counts are the ticks that have passed since the creation.
	Counts ScheduleCounts `api:"counts,always"`
	// Backfill is the last backfill. Null: there was none.
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
	At time.Time `json:"at" api:"at,always"`
	// Outcome is what became of the tick. `run`: its job was registered. `skipped`: by `overlap`. `missed`: it was too
	// late. `failed`: its job was refused.
	Outcome TickOutcome `json:"outcome" api:"outcome,always"`
	// Reason explains an outcome other than `run`.
	Reason string `json:"reason,omitempty" api:"reason"`
	// JobID is the id of the tick's job. Null: there is none.
	JobID string `json:"job,omitempty" api:"job_id"`
	// JobState is the state of the tick's job. Null: there is no job, or it is not stored yet or no longer.
	JobState job.State `json:"state,omitempty" api:"job_state"`
}

// Backfill runs the ticks of a past time. Ticks whose job's id is known are not run again.
type Backfill struct {
	// After is the earliest tick.
	After time.Time `json:"after" api:"after,always"`
	// Before is the end: ticks from then on do not run.
	Before time.Time   `json:"before" api:"before,always"`
	Rate   policy.Rate `json:"rate" api:"rate,always"`
	// Total is the number of ticks.
	Total     int64     `json:"total" api:"total,always"`
	Actor     string    `json:"actor,omitempty" api:"created_by"`
	CreatedAt time.Time `json:"created_at" api:"created_at,always"`
	// Done is the number of ticks that were run, also of those whose job was known.
	Done int64 `json:"done,omitempty" api:"done,always"`
	// Failed is why the rest was not run.
	Failed string `json:"failed,omitempty" api:"failed"`
	// EndedAt is null while it goes on.
	EndedAt time.Time `json:"ended_at" api:"ended_at"`
}
