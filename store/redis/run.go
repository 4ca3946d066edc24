package redis

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A run is how far a job has come, as run.lua writes it: a line of fields with a space between.
type run struct {
	lease, flags, state, reason                          string
	size, fin, due, since, ver, round, made, tries, lost int64
	status                                               int64 // absent while it is 0
}

const runFields = 13

// parseRun reads a run; a job without one has never been claimed, edited or ended.
func parseRun(line string, rec *record) (run, error) {
	if line == "" {
		return run{lease: "-", state: "-", reason: "-", due: rec.due, since: rec.due, ver: 1}, nil
	}
	var f [runFields]string
	rest, more := line, true
	for i := range f {
		if !more {
			return run{}, fmt.Errorf("redis: malformed run of a job: %q", line)
		}
		f[i], rest, more = strings.Cut(rest, " ")
	}
	status, _, _ := strings.Cut(rest, " ")
	return run{
		lease: f[0], flags: f[1], size: digits(f[2]), state: f[3], fin: digits(f[4]), reason: f[5], due: digits(f[6]),
		since: digits(f[7]), ver: digits(f[8]), round: digits(f[9]), made: digits(f[10]), tries: digits(f[11]),
		lost: digits(f[12]), status: digits(status),
	}, nil
}

// jobState is the job's state at the store's time now.
func (r run) jobState(now int64) job.State {
	switch {
	case r.state == "d":
		return job.Delivered
	case r.state == "x":
		return job.Dead
	case r.state == "c":
		return job.Cancelled
	case r.lease != "-":
		return job.Running
	case r.due <= now:
		return job.Ready
	default:
		return job.Scheduled
	}
}

// assemble makes a job of its parts.
func assemble(m, recText, runText string, stripped bool, q job.Queue, now int64) (job.Job, error) {
	j, _, err := assembleWithRun(m, recText, runText, stripped, q, now)
	return j, err
}

// assembleWithRun is assemble, with the run as it was read.
func assembleWithRun(m, recText, runText string, stripped bool, q job.Queue, now int64) (job.Job, run, error) {
	rec, err := decode(recText, q, stripped)
	if err != nil {
		return job.Job{}, run{}, fmt.Errorf("read job %s: %w", m, err)
	}
	r, err := parseRun(runText, rec)
	if err != nil {
		return job.Job{}, run{}, fmt.Errorf("read job %s: %w", m, err)
	}
	j := rec.job(refOf(m))
	j.Progress = progress(rec, r, now)
	return j, r, nil
}

// progress is how far a job has come at the store's time now.
func progress(rec *record, r run, now int64) job.Progress {
	p := job.Progress{
		State: r.jobState(now), CreatedAt: at(rec.created), DueAt: at(r.due), FirstDueAt: at(r.since), ExpiresAt: at(rec.expires),
		Reason: reasonOf(r.reason), Version: r.ver, Generation: int(r.round), Attempts: int(r.made), FailedAttempts: int(r.tries),
		ConsecutiveLost: int(r.lost), Status: int(r.status), CancelRequested: strings.Contains(r.flags, "m"),
	}
	if p.State.Ended() {
		p.FinishedAt = at(r.fin)
	}
	return p
}

// at is a moment of the store; zero is none.
func at(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// reasonOf reads a reason; "-" is none.
func reasonOf(s string) policy.Reason {
	if s == "-" {
		return ""
	}
	return policy.Reason(s)
}

// reasonText writes a reason as one word.
func reasonText(r policy.Reason) string {
	if text := strings.Join(strings.Fields(string(r)), "_"); text != "" {
		return text
	}
	return "-"
}

// A line is an attempt as it is kept: those that scripts write name the time in ms.
type line struct {
	job.Attempt
	MS int64 `json:"ms"`
}

// attempts reads a job's record of attempts, oldest first.
func attempts(text string) ([]job.Attempt, error) {
	if text == "" {
		return nil, nil
	}
	var all []job.Attempt
	for s := range strings.Lines(text) {
		var l line
		if err := json.Unmarshal([]byte(s), &l); err != nil {
			return nil, fmt.Errorf("read an attempt: %w", err)
		}
		if l.MS != 0 {
			l.StartedAt = at(l.MS)
		}
		all = append(all, l.Attempt)
	}
	return all, nil
}
