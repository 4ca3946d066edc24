package layout

import (
	"fmt"
	"strings"

	"github.com/ringback/ringback/job"
)

// A Run is a job's progress, stored as a line of fields separated by spaces (run.lua). Finished is when the job ended;
// of a claimed job, when it was claimed.
type Run struct {
	Lease, Flags, State, Reason, Answer                                        string
	Size, Finished, Due, FirstDue, Version, Generation, Attempts, Failed, Lost int64
}

const runFields = 13

// ParseRun parses a run. A job without one was never claimed, edited or ended: its run follows from its record.
func ParseRun(line string, rec *Record) (Run, error) {
	if line == "" {
		return NewRun(rec.Due), nil
	}
	var f [runFields]string
	rest, more := line, true
	for i := range f {
		if !more {
			return Run{}, fmt.Errorf("redis: malformed run of a job: %q", line)
		}
		f[i], rest, more = strings.Cut(rest, " ")
	}
	answer, _, _ := strings.Cut(rest, " ")
	return Run{
		Lease: f[0], Flags: f[1], Size: Int(f[2]), State: f[3], Finished: Int(f[4]), Reason: f[5],
		Due: Int(f[6]), FirstDue: Int(f[7]), Version: Int(f[8]), Generation: Int(f[9]), Attempts: Int(f[10]),
		Failed: Int(f[11]), Lost: Int(f[12]), Answer: answer,
	}, nil
}

// NewRun returns the run of a job that was never claimed, edited or ended.
func NewRun(due int64) Run {
	return Run{Lease: "-", State: "-", Reason: "-", Due: due, FirstDue: due, Version: 1}
}

// RunOf returns the run of a job without a lease, without its flags and its size.
func RunOf(j *job.Job) Run {
	r := Run{
		Lease: "-", State: "-", Reason: FormatReason(j.Reason), Due: j.DueAt.UnixMilli(),
		FirstDue: j.FirstDueAt.UnixMilli(), Version: j.Version, Generation: int64(j.Generation),
		Attempts: int64(j.Attempts), Failed: int64(j.FailedAttempts),
		Lost: int64(j.ConsecutiveLost), Answer: j.Answer(),
	}
	if j.State.Ended() {
		r.State, r.Finished = FormatState(j.State), j.FinishedAt.UnixMilli()
	}
	return r
}

// FormatProgress formats the fields from the state on.
func (r *Run) FormatProgress() string {
	text := fmt.Sprintf("%s %d %s %d %d %d %d %d %d %d", r.State, r.Finished, r.Reason, r.Due, r.FirstDue, r.Version,
		r.Generation, r.Attempts, r.Failed, r.Lost)
	if r.Answer != "" {
		text += " " + r.Answer
	}
	return text
}

// IsRated reports whether the claim took a start of the lane's rate.
func (r Run) IsRated() bool { return strings.Contains(r.Flags, "r") }

// IsProbe reports whether the claim is an open breaker's probe.
func (r Run) IsProbe() bool { return strings.Contains(r.Flags, "o") }

// JobState returns the job's state at now, in ms of the store's clock.
func (r Run) JobState(now int64) job.State {
	switch {
	case r.State == "d":
		return job.Delivered
	case r.State == "x":
		return job.Dead
	case r.State == "c":
		return job.Cancelled
	case r.Lease != "-":
		return job.Running
	case r.Due <= now:
		return job.Ready
	default:
		return job.Scheduled
	}
}

// FormatState formats the state of an ended job as scripts write it; empty for any, "?" for one that has not ended.
func FormatState(state job.State) string {
	switch state {
	case "":
		return ""
	case job.Delivered:
		return "d"
	case job.Dead:
		return "x"
	case job.Cancelled:
		return "c"
	default:
		return "?"
	}
}

// A StoredJob is a job as it is stored: its key in hashes, its record and its run.
type StoredJob struct {
	Key    string
	Record *Record
	Run    Run
}

// ParseJob parses a job's record and run. bodyless says that a script has left out the body.
func ParseJob(key, record, run string, bodyless bool, q job.Queue) (StoredJob, error) {
	rec, err := DecodeRecord(record, q, bodyless)
	if err != nil {
		return StoredJob{}, fmt.Errorf("read job %s: %w", key, err)
	}
	r, err := ParseRun(run, rec)
	if err != nil {
		return StoredJob{}, fmt.Errorf("read job %s: %w", key, err)
	}
	return StoredJob{Key: key, Record: rec, Run: r}, nil
}

// Job returns the job at now, in ms of the store's clock, without its history.
func (s *StoredJob) Job(now int64) job.Job {
	rec, r := s.Record, s.Run
	j := job.Job{Spec: rec.Spec, Progress: job.Progress{
		State: r.JobState(now), CreatedAt: Time(rec.Created), DueAt: Time(r.Due), FirstDueAt: Time(r.FirstDue),
		ExpiresAt: Time(rec.Expires),
		Reason:    parseReason(r.Reason), Version: r.Version, Generation: int(r.Generation), Attempts: int(r.Attempts),
		FailedAttempts: int(r.Failed), ConsecutiveLost: int(r.Lost),
		CancelRequested: strings.Contains(r.Flags, "m"),
	}}
	j.SetAnswer(r.Answer)
	j.ID = ParseJobKey(s.Key).ID
	if j.State.Ended() {
		j.FinishedAt = Time(r.Finished)
	}
	return j
}

// AddEntries adds a job's record to the job: a line for each attempt and event, oldest first.
func AddEntries(j *job.Job, text string) error {
	for line := range strings.Lines(text) {
		if err := j.AddEntry([]byte(line)); err != nil {
			return fmt.Errorf("read the record of job %s: %w", j.ID, err)
		}
	}
	return nil
}
