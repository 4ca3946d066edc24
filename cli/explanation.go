// This part of the package says in words what happened to a job, what it waits for, and what happens next. It reads the
// answer to GET /v1/jobs/{id} and makes no request.

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/job/units"
)

// job is a job that is explained.
type job struct{ client.JobInfo }

// Headline says on one line what the state of the job is.
func (j *job) Headline() string {
	text := fmt.Sprintf("%s of topic %s is %s", j.ID, j.Topic, j.State)
	switch {
	case j.Reason != "" && j.Reason != string(j.State):
		text += fmt.Sprintf(" (%s)", j.Reason)
	case j.CancelRequested:
		text += ", and cancelled unless this attempt delivers it"
	}
	if j.AttemptsMade == 0 {
		text += ", without an attempt"
	} else {
		text += " after " + words.Count(int64(j.AttemptsMade), "attempt")
	}
	if n := len(j.Attempts); n > 0 && j.Attempts[n-1].Status != 0 {
		text += fmt.Sprintf(", the last with status %d", j.Attempts[n-1].Status)
	}
	return output.Printable(text)
}

// clock is the form of times: in UTC, as in logs and in the API.
const clock = "2006-01-02 15:04:05.000Z"

// Text says all of it.
func (j *job) Text(now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", j.Headline())
	for _, line := range j.history() {
		fmt.Fprintf(&b, "  %s  %s\n", line.at.UTC().Format(clock), output.Printable(line.text))
	}
	b.WriteByte('\n')
	for _, sentence := range j.outlook(now) {
		fmt.Fprintf(&b, "%s\n", output.Printable(sentence))
	}
	return strings.TrimRight(b.String(), "\n")
}

// happening is a line of the history.
type happening struct {
	at   time.Time
	text string
}

// history returns what clients did and the attempts, in the order of time.
func (j *job) history() []happening {
	var all []happening
	for _, e := range j.Events {
		text := e.Kind
		if e.Kind == "created" {
			text = "registered"
		}
		if len(e.Fields) > 0 {
			text += " (" + strings.Join(e.Fields, ", ") + ")"
		}
		if e.Actor != "" {
			text += " by " + e.Actor
		}
		all = append(all, happening{e.At, text})
	}
	if len(j.Events) == 0 {
		all = append(all, happening{j.CreatedAt, "registered"})
	}
	for i := range j.Attempts {
		all = append(all, happening{j.Attempts[i].StartedAt, attemptText(&j.Attempts[i])})
	}
	slices.SortStableFunc(all, func(a, b happening) int { return a.at.Compare(b.at) })
	if !j.EndedAt.IsZero() && !strings.Contains(all[len(all)-1].text, string(j.State)) {
		all = append(all, happening{j.EndedAt, string(j.State)})
	}
	return all
}

// attemptText describes an attempt on one line.
func attemptText(a *client.Attempt) string {
	text := fmt.Sprintf("attempt %d", a.N)
	switch a.Kind {
	case "lost":
		return text + ": lost, its process reported no result; the request may have been made"
	case "released":
		text = "not counted"
	}
	took := ""
	if a.DurationMS != nil {
		took = " after " + output.Milliseconds(*a.DurationMS)
	}
	switch {
	case a.Status != 0:
		text += fmt.Sprintf(": status %d%s", a.Status, took)
	case a.ErrorClass != "":
		text += fmt.Sprintf(": no answer%s, %s", took, a.ErrorClass)
	}
	if a.Error != "" {
		text += ": " + a.Error
	}
	if a.Status != 0 && a.Verdict != "delivered" && a.ResponseBody != "" {
		body := []rune(strings.Join(strings.Fields(a.ResponseBody), " "))
		text += fmt.Sprintf(", %q", string(body[:min(len(body), 80)]))
	}
	if a.Verdict != "" {
		text += " → " + a.Verdict
	}
	if a.Reason != "" {
		text += " (" + a.Reason + ")"
	}
	return text
}

// outlook says what the job waits for and what happens next.
func (j *job) outlook(now time.Time) (all []string) {
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	w := j.WaitingFor
	switch {
	case j.State.Ended():
		if j.State == client.Dead {
			say("It is dead because %s (%s).", words.Reason(j.Reason), j.Reason)
		}
		say("Nothing happens any more. ringback job revive %s sends it again.", j.ID)
		if j.CallbackID != "" {
			say("Its end is reported by the job %s: ringback explain %s", j.CallbackID, j.CallbackID)
		}
		return all
	case j.State == client.Running:
		say("Now: an attempt is being made%s.", j.to())
	case w != nil:
		say("Now: it waits%s.", until(w.Until, now))
		say("     %s", w.Facts)
		if command := remedyCommand(w.Remedy); command != "" {
			say("     %s", command)
		}
		if w.Kind == "end" {
			return all // its facts say what happens next
		}
	}
	if at := j.notBefore(); j.State != client.Running && at.After(now) {
		say("Next: attempt %d%s at %s (in %s), not before.", j.AttemptsMade+1, j.to(), at.UTC().Format(clock),
			output.Span(at.Sub(now)))
	} else if j.State != client.Running {
		say("Next: attempt %d%s, as soon as nothing keeps it.", j.AttemptsMade+1, j.to())
	}
	if j.Effective == nil || j.RetriesLeft == nil {
		return all
	}
	if left := *j.RetriesLeft; left <= 0 {
		say("Then: it is the last one. If it fails, the job is dead (exhausted).")
	} else {
		say("Then: if it fails, the next one follows after %s or a little longer; %s until the job is dead "+
			"(exhausted).", j.nextRung(left), words.Count(int64(left), "more retry"))
	}
	if !j.ExpiresAt.IsZero() {
		say("It expires at %s.", j.ExpiresAt.UTC().Format(clock))
	} else if j.Effective.MaxAge > 0 {
		say("It is also dead when it has been due for %s (max_age).", units.FormatDuration(j.Effective.MaxAge))
	}
	return all
}

// nextRung is the wait after the next attempt, if it fails.
func (j *job) nextRung(left int) string {
	ladder := j.Effective.Ladder
	if len(ladder) == 0 {
		return "a while"
	}
	return units.FormatDuration(ladder[min(max(j.Effective.Retries-left, 0), len(ladder)-1)])
}

// notBefore is the earliest time of the next attempt.
func (j *job) notBefore() time.Time {
	if w := j.WaitingFor; w != nil && w.Until.After(j.NextAttemptAt) {
		return w.Until
	}
	return j.NextAttemptAt
}

// to names the receiver.
func (j *job) to() string {
	if j.Effective == nil || j.Effective.URL == "" {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", j.Method, j.Effective.URL)
}

// remedyCommand is the command for a remedy; empty: there is none.
func remedyCommand(r *client.Remedy) string {
	if r == nil || !slices.Contains([]string{"run", "edit", "resume", "set", "put"}, r.Action) {
		return ""
	}
	about := []string{"topic", r.Action, r.Topic}
	switch {
	case r.ID != "":
		about = []string{"job", r.Action, r.ID}
	case r.Lane != "":
		about = []string{"lane", r.Action, r.Topic, r.Lane}
	}
	return "ringback " + strings.Join(about, " ")
}

func until(t, now time.Time) string {
	if !t.After(now) {
		return ""
	}
	return fmt.Sprintf(", until %s (in %s)", t.UTC().Format(clock), output.Span(t.Sub(now)))
}
