// This part of the package computes when the attempts of a job are made if all fail.

package cli

import (
	"time"

	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
)

// An simulatedAttempt is an attempt in a simulation, or the death of the job. The bounds are those of the jitter.
type simulatedAttempt struct {
	attempt          int           // 0: the job is dead
	wait             time.Duration // the rung before it
	earliest, latest time.Duration // from the first attempt; latest is negative if the attempt may not be made
	note             string
}

// simulateAttempts returns the attempts of a job whose attempts all fail. Package policy decides, with the least and
// the most jitter.
func simulateAttempts(terms policy.Terms, took, expires time.Duration) []simulatedAttempt {
	all := []simulatedAttempt{{attempt: 1}}
	early, late := track{}, track{random: 1}
	for n := 1; ; n++ {
		first := early.next(terms, n, took, expires)
		if first.Kind == policy.Dead {
			late.next(terms, n, took, expires)
			return append(all, simulatedAttempt{
				earliest: min(early.at, late.at), latest: max(early.at, late.at),
				note: "dead: " + string(first.Reason),
			})
		}
		row := simulatedAttempt{attempt: n + 1, wait: terms.Ladder.Rung(n), earliest: early.at}
		if last := late.next(terms, n, took, expires); last.Kind == policy.Dead {
			row.note = "not with the longest waits: dead, " + string(last.Reason)
		}
		if row.latest = late.at; late.ended {
			row.latest = -1
		}
		all = append(all, row)
	}
}

// track is the course of a job with one choice of randomness.
type track struct {
	random float64
	at     time.Duration
	ended  bool
}

// next advances to the next attempt, or the end.
func (t *track) next(terms policy.Terms, failed int, took, expires time.Duration) policy.Verdict {
	if t.ended {
		return policy.Verdict{}
	}
	t.at += took
	progress := policy.Progress{FailedAttempts: failed, Age: t.at, Expires: expires > 0, ExpiresIn: expires - t.at}
	v := policy.Judge(terms, policy.Result{Status: 500}, progress, t.random)
	t.at += v.Wait
	t.ended = v.Kind == policy.Dead
	return v
}

// Row returns the attempt as it is printed, for a start of the first one.
func (r simulatedAttempt) Row(start time.Time) map[string]any {
	row := map[string]any{
		"attempt": r.attempt, "wait": units.FormatDuration(r.wait), "note": r.note,
		"earliest": units.FormatDuration(r.earliest), "earliest_at": start.Add(r.earliest).UTC(),
		"latest": units.FormatDuration(r.latest), "latest_at": start.Add(r.latest).UTC(),
	}
	if r.attempt == 0 {
		row["attempt"] = nil
	}
	if r.wait == 0 {
		row["wait"] = nil
	}
	if r.latest < 0 {
		row["latest"], row["latest_at"] = nil, nil
	}
	return row
}
