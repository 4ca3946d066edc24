package jobpages

import (
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// leadOf says in one sentence what is going on with a job: which attempt is next, why not now, and when; or how and
// when it ended.
func leadOf(j *client.JobInfo, now time.Time) (sentence, class string) {
	switch j.State {
	case client.Delivered:
		return words.Sentence("Delivered " + words.Ago(j.EndedAt, now) + by(lastAttempt(j))), "ok"
	case client.Dead:
		return words.Sentence("Died " + words.Ago(j.EndedAt, now) + ", because " + words.Reason(j.Reason) +
			lastAnswer(j)), "bad"
	case client.Cancelled:
		return words.Sentence("Cancelled " + words.Ago(j.EndedAt, now) + byWhom(j) + ", " + after(j)), ""
	case client.Running:
		sentence = attemptOf(j) + " runs now"
		if j.CancelRequested {
			sentence += ". The job is cancelled unless it succeeds"
		}
		return words.Sentence(sentence), ""
	}
	return waiting(j, now)
}

// waiting says what an unfinished job that does not run waits for.
func waiting(j *client.JobInfo, now time.Time) (sentence, class string) {
	w := j.WaitingFor
	n := attemptOf(j)
	if w == nil {
		return words.Sentence(n + " is due " + words.In(j.NextAttemptAt, now) + lastAnswer(j)), ""
	}
	until := ""
	if !w.Until.IsZero() && w.Until.After(now) {
		until = " " + strings.TrimPrefix(words.In(w.Until, now), "in ")
	}
	switch w.Kind {
	case "due":
		return words.Sentence(n + " is due " + words.In(w.Until, now)), ""
	case "retry":
		return words.Sentence(n + " follows " + words.In(w.Until, now) + lastAnswer(j)), "warn"
	case "end":
		sentence = "Dead " + words.In(w.Until, now) + ", without another attempt" + lastAnswer(j)
		return words.Sentence(sentence) + " " + w.Facts, "bad"
	}
	sentence = n + " waits" + until
	if !j.ExpiresAt.IsZero() && j.ExpiresAt.Before(w.Until) {
		sentence += "; the job expires " + words.In(j.ExpiresAt, now) + ", before that"
	}
	return words.Sentence(sentence) + " " + w.Facts, "warn"
}

// attemptOf names the next attempt, and how many there will be at most.
func attemptOf(j *client.JobInfo) string {
	n := j.AttemptsMade + 1
	text := "Attempt " + words.Number(int64(n))
	if j.RetriesLeft != nil {
		text += " of " + words.Number(int64(n+*j.RetriesLeft))
	}
	return text
}

// lastAttempt returns the newest attempt; nil: there is none.
func lastAttempt(j *client.JobInfo) *client.Attempt {
	if len(j.Attempts) == 0 {
		return nil
	}
	return &j.Attempts[len(j.Attempts)-1]
}

// by says which attempt ended a job.
func by(a *client.Attempt) string {
	if a == nil {
		return ""
	}
	return " by attempt " + strconv.Itoa(a.N) + ", which " + outcome(a)
}

// lastAnswer says what came of the last attempt, as the end of a sentence.
func lastAnswer(j *client.JobInfo) string {
	a := lastAttempt(j)
	if a == nil {
		return ""
	}
	return "; attempt " + strconv.Itoa(a.N) + " " + outcome(a)
}

// after says how many attempts there were.
func after(j *client.JobInfo) string {
	if j.AttemptsMade == 0 {
		return "before an attempt"
	}
	return "after " + words.Count(int64(j.AttemptsMade), "attempt")
}

// byWhom says who cancelled a job.
func byWhom(j *client.JobInfo) string {
	for i := range j.Events {
		if e := j.Events[len(j.Events)-1-i]; e.Kind == "cancelled" {
			return actor(e.Actor)
		}
	}
	return ""
}

// actor says who did something; empty: unknown.
func actor(name string) string {
	if name == "" {
		return ""
	}
	return " by " + name
}

// outcome says what came of an attempt: "was answered 503 after 31ms", "got no answer: the connection was refused".
func outcome(a *client.Attempt) string {
	took := ""
	if a.DurationMS != nil {
		took = " after " + words.Duration(milliseconds(*a.DurationMS))
	}
	switch {
	case a.Kind == "lost":
		return "was lost: its process reported no result, so the request may have been made"
	case a.ErrorClass == "consumer":
		return "failed" + took + ": " + words.ErrorClass(a.ErrorClass)
	case a.ErrorClass != "" && a.Status != 0:
		return "was answered " + strconv.Itoa(a.Status) + took + ", but " + words.ErrorClass(a.ErrorClass)
	case a.ErrorClass != "":
		return "got no answer: " + words.ErrorClass(a.ErrorClass)
	case a.Status != 0:
		return "was answered " + strconv.Itoa(a.Status) + took
	default:
		return "was " + words.Verdict(a.Verdict) + took
	}
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }
