package jobpages

import (
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// row is a job in the list.
type row struct {
	*client.JobInfo

	// Next says what comes next, or how the job ended.
	Next string
}

func newRow(j *client.JobInfo, now time.Time) row {
	return row{JobInfo: j, Next: next(j, now)}
}

// next says what comes next for a job of a list, or how it ended.
func next(j *client.JobInfo, now time.Time) string {
	answer := ""
	if j.LastStatus != 0 || j.LastErrorClass != "" {
		answer = words.Answer(j.LastStatus, j.LastErrorClass)
	}
	switch j.State {
	case client.Scheduled:
		if j.AttemptsMade == 0 {
			return "due " + words.In(j.NextAttemptAt, now)
		}
		return joined("next attempt "+words.In(j.NextAttemptAt, now), answer)
	case client.Ready:
		return joined(dueWords(j.NextAttemptAt, now), answer)
	case client.Running:
		if j.CancelRequested {
			return "runs; is cancelled unless it succeeds"
		}
		return "attempt " + strconv.Itoa(j.AttemptsMade+1) + " runs"
	case client.Dead:
		return joined(words.Reason(j.Reason), answer, words.Ago(j.EndedAt, now))
	case client.Delivered:
		return joined(answer, words.Ago(j.EndedAt, now))
	default:
		return words.Ago(j.EndedAt, now)
	}
}

// dueWords says how long an attempt has been due.
func dueWords(t, now time.Time) string {
	if now.Sub(t) < time.Second {
		return "due now"
	}
	return "due for " + words.Duration(now.Sub(t).Truncate(time.Second))
}

// joined joins the texts that are not empty with semicolons.
func joined(texts ...string) string {
	var parts []string
	for _, text := range texts {
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "; ")
}
