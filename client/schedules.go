package client

import (
	"context"
	"iter"
	"net/http"
	"time"

	"github.com/ringback/ringback/client/internal/wire"
)

// ScheduleRequest are the settings of a schedule: Cron or Every, and Job.
type ScheduleRequest struct {
	Cron           string        `json:"cron,omitzero"`
	Timezone       string        `json:"timezone,omitzero"` // of Cron; empty: UTC
	Every          time.Duration `json:"every,omitzero"`
	Offset         time.Duration `json:"offset,omitzero"`
	Jitter         time.Duration `json:"jitter,omitzero"`
	StartsAt       time.Time     `json:"starts_at,omitzero"`
	EndsAt         time.Time     `json:"ends_at,omitzero"`
	Job            *ScheduleJob  `json:"job,omitzero"`
	Overlap        string        `json:"overlap,omitzero"` // allow, skip or cancel; empty: allow
	CatchUp        *CatchUp      `json:"catch_up,omitzero"`
	MaxRuns        int64         `json:"max_runs,omitzero"`
	PauseAfterDead int           `json:"pause_after_dead,omitzero"`
	Note           string        `json:"note,omitzero"`
	ManagedBy      string        `json:"managed_by,omitzero"` // as that of Policy
	// Paused pauses or resumes the schedule; nil: as it is. It is always set in a Schedule.
	Paused *bool `json:"paused,omitzero"`
}

// MarshalJSON returns the JSON that the API reads.
func (s ScheduleRequest) MarshalJSON() ([]byte, error) { return wire.Encode(s) }

// UnmarshalJSON reads what MarshalJSON returned.
func (s *ScheduleRequest) UnmarshalJSON(data []byte) error { return wire.Decode(data, s) }

// CatchUp says which ticks run later than a minute after they were due.
type CatchUp struct {
	Window time.Duration `json:"window,omitzero"` // zero: 1 h
	Runs   string        `json:"runs,omitzero"`   // last, all or none; empty: last
}

// Schedule is a schedule. PutSchedule accepts the ScheduleRequest of what GetSchedule returned.
type Schedule struct {
	Answer
	ScheduleRequest

	Name        string         `json:"name"`
	Revision    int64          `json:"revision"` // for IfRevision
	State       string         `json:"state"`    // active, paused, ended, unreadable
	PausedAt    time.Time      `json:"paused_at"`
	PausedBy    string         `json:"paused_by"`
	PauseNote   string         `json:"pause_note"`
	CreatedAt   time.Time      `json:"created_at"`
	CreatedBy   string         `json:"created_by"`
	UpdatedAt   time.Time      `json:"updated_at"` // the last change by a client; zero: unknown
	UpdatedBy   string         `json:"updated_by"`
	Description string         `json:"description"` // when it runs, in English
	JitterDelay time.Duration  `json:"jitter_delay"`
	Next        []Tick         `json:"next"` // the next ten ticks
	Last        []PastTick     `json:"last"` // the newest twenty that have passed, oldest first
	Counts      TickCounts     `json:"counts"`
	Backfill    *BackfillState `json:"backfill"` // the last one
	Durability  *Durability    `json:"durability"`
}

// MarshalJSON returns Raw.
func (s Schedule) MarshalJSON() ([]byte, error) { return s.Answer.MarshalJSON() }

// UnmarshalJSON reads a schedule as responses have it.
func (s *Schedule) UnmarshalJSON(data []byte) error { return wire.Decode(data, s) }

// Tick is a time at which a schedule runs.
type Tick struct {
	At    time.Time `json:"at"`
	Local time.Time `json:"local"` // the same in the schedule's time zone
	DueAt time.Time `json:"due_at"`
	Note  string    `json:"note"` // how a change of the local clocks shifts it
}

// PastTick is a tick that has passed.
type PastTick struct {
	At       time.Time `json:"at"`
	Outcome  string    `json:"outcome"` // run, skipped, missed, failed
	Reason   string    `json:"reason"`
	JobID    string    `json:"job_id"`
	JobState State     `json:"job_state"`
}

// TickCounts are numbers of ticks since the creation of a schedule.
type TickCounts struct {
	Run     int64 `json:"run"`
	Skipped int64 `json:"skipped"`
	Missed  int64 `json:"missed"`
	Failed  int64 `json:"failed"`
}

// BackfillState is a backfill and its progress.
type BackfillState struct {
	After     time.Time `json:"after"`
	Before    time.Time `json:"before"`
	Rate      string    `json:"rate"`
	Total     int64     `json:"total"`
	Done      int64     `json:"done"`
	Failed    string    `json:"failed"` // why the rest was not run
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by"`
	EndedAt   time.Time `json:"ended_at"`
}

// Schedules returns the schedules in order of name.
func (c *Client) Schedules(ctx context.Context) iter.Seq2[*Schedule, error] {
	return list[Schedule](ctx, c, nil, "/v1/schedules")
}

// SchedulesPage returns a page of Schedules.
func (c *Client) SchedulesPage(ctx context.Context, o PageOptions) (*Page[Schedule], error) {
	return readPage[Page[Schedule]](ctx, c, o, "/v1/schedules")
}

func (c *Client) schedule(ctx context.Context, r call, body any, name, action string) (*Schedule, error) {
	return answer[Schedule](ctx, c, r, body, "/v1/schedules/", name, action)
}

// GetSchedule returns a schedule with its next and last ticks.
func (c *Client) GetSchedule(ctx context.Context, name string) (*Schedule, error) {
	return c.schedule(ctx, get(), nil, name, "")
}

// PutSchedule creates or replaces a schedule.
func (c *Client) PutSchedule(
	ctx context.Context, name string, s ScheduleRequest, conditions ...Condition,
) (*Schedule, error) {
	return c.schedule(ctx, change(http.MethodPut, conditions), s, name, "")
}

// DeleteSchedule removes a schedule. The jobs that it has registered stay.
func (c *Client) DeleteSchedule(ctx context.Context, name string, conditions ...Condition) error {
	return c.send(ctx, remove(conditions), nil, "/v1/schedules/", name)
}

// RunSchedule registers a job of a schedule now, beside its ticks.
func (c *Client) RunSchedule(ctx context.Context, name string) (*JobInfo, error) {
	return answer[JobInfo](ctx, c, onceOf(nil), nil, "/v1/schedules/", name, "/run")
}

// PauseSchedule pauses a schedule. The note says why, for those who find the pause.
func (c *Client) PauseSchedule(ctx context.Context, name, note string, conditions ...Condition) (*Schedule, error) {
	return c.schedule(ctx, change(http.MethodPost, conditions), pauseRequest{note}, name, "/pause")
}

// ResumeSchedule resumes a schedule.
func (c *Client) ResumeSchedule(ctx context.Context, name string, conditions ...Condition) (*Schedule, error) {
	return c.schedule(ctx, change(http.MethodPost, conditions), nil, name, "/resume")
}

// Backfill selects ticks of the past.
type Backfill struct {
	After  time.Time `json:"after"`         // the earliest tick
	Before time.Time `json:"before"`        // ticks from then on do not run
	Rate   string    `json:"rate,omitzero"` // empty: 10/s
}

// dryBackfill is a backfill whose ticks are only counted.
type dryBackfill struct {
	Backfill
	DryRun bool `json:"dry_run"`
}

// BackfillSchedule runs the ticks of a past time in the background. The schedule shows the progress.
func (c *Client) BackfillSchedule(
	ctx context.Context, name string, b Backfill, conditions ...Condition,
) (*Schedule, error) {
	return c.schedule(ctx, change(http.MethodPost, conditions), b, name, "/backfill")
}

// BackfillCount is the number of ticks of a backfill.
type BackfillCount struct {
	Answer

	DryRun bool  `json:"dry_run"`
	Total  int64 `json:"total"`
}

// CountBackfill counts the ticks that BackfillSchedule would run.
func (c *Client) CountBackfill(ctx context.Context, name string, b Backfill) (*BackfillCount, error) {
	return answer[BackfillCount](ctx, c, call{method: http.MethodPost}, dryBackfill{b, true},
		"/v1/schedules/", name, "/backfill")
}

// Preview selects the ticks of a schedule that is not stored.
type Preview struct {
	Cron     string        `json:"cron"`
	Timezone string        `json:"timezone"`
	Every    time.Duration `json:"every"`
	Offset   time.Duration `json:"offset"`
	StartsAt time.Time     `json:"starts_at"`
	EndsAt   time.Time     `json:"ends_at"`
	From     time.Time     `json:"from"`  // zero: now
	Limit    int           `json:"limit"` // 1 to 100; zero: 10
}

// SchedulePreview are the next ticks of a schedule that is not stored.
type SchedulePreview struct {
	Answer

	Items       []Tick `json:"items"`
	Description string `json:"description"` // when it runs, in English
}

// PreviewSchedule returns the next ticks of a schedule before it is stored.
func (c *Client) PreviewSchedule(ctx context.Context, p Preview) (*SchedulePreview, error) {
	return answer[SchedulePreview](ctx, c, call{method: http.MethodGet, query: wire.Values(p)},
		nil, "/v1/schedules/preview")
}
