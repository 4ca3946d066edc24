// This part of the package says in words what happened to a job, what it waits for, and what happens next. It reads the
// answer to GET /v1/jobs/{id} and makes no request.

package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/cli/output"
	"github.com/ringback/ringback/console/words"
)

// job is what is read of a job.
type job struct {
	ID, Topic, Lane, State string
	Method                 string
	Reason                 string
	AttemptsMade           int        `json:"attempts_made"`
	NextAttemptAt          *time.Time `json:"next_attempt_at"`
	CreatedAt              time.Time  `json:"created_at"`
	EndedAt                *time.Time `json:"ended_at"`
	ExpiresAt              *time.Time `json:"expires_at"`
	CallbackID             string     `json:"callback_id"`
	CancelRequested        bool       `json:"cancel_requested"`
	RetriesLeft            *int       `json:"retries_left"`
	WaitingFor             *struct {
		Kind, Facts string
		Until       *time.Time
		Remedy      remedy
	} `json:"waiting_for"`
	Effective *struct {
		URL     string
		Ladder  []string
		Retries int
		MaxAge  string `json:"max_age"`
	} `json:"effective"`
	Attempts []struct {
		N          int
		Kind       string
		StartedAt  time.Time `json:"started_at"`
		DurationMS *float64  `json:"duration_ms"`
		URL        string
		Process    string
		Status     int
		Verdict    string
		Reason     string
		Error      string
		ErrorClass string `json:"error_class"`
		Body       string `json:"response_body"`
	} `json:"attempts"`
	Events []struct {
		At     time.Time
		Kind   string
		Fields []string
		Actor  string
	} `json:"events"`
}

// remedy is the request that ends what a job waits for.
type remedy struct{ Action, Topic, Lane, ID string }

// Headline says on one line what the state of the job is.
func (j *job) Headline() string {
	text := fmt.Sprintf("%s of topic %s is %s", j.ID, j.Topic, j.State)
	switch {
	case j.Reason != "" && j.Reason != j.State:
		text += fmt.Sprintf(" (%s)", j.Reason)
	case j.CancelRequested:
		text += ", and cancelled unless this attempt delivers it"
	}
	switch j.AttemptsMade {
	case 0:
		text += ", without an attempt"
	case 1:
		text += " after 1 attempt"
	default:
		text += fmt.Sprintf(" after %d attempts", j.AttemptsMade)
	}
	if n := len(j.Attempts); n > 0 && j.Attempts[n-1].Status != 0 {
		text += fmt.Sprintf(", the last with status %d", j.Attempts[n-1].Status)
	}
	return output.Printable(text)
}

// clock is the form of times: in UTC, as in logs and in the API.
const clock = "2006-01-02 15:04:05Z"

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
	add := func(at time.Time, format string, args ...any) {
		h := happening{at, fmt.Sprintf(format, args...)}
		i := len(all)
		for i > 0 && all[i-1].at.After(at) {
			i--
		}
		all = append(all[:i], append([]happening{h}, all[i:]...)...)
	}
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
		add(e.At, "%s", text)
	}
	if len(j.Events) == 0 {
		add(j.CreatedAt, "registered")
	}
	for i := range j.Attempts {
		add(j.Attempts[i].StartedAt, "%s", j.attempt(i))
	}
	if j.EndedAt != nil && !strings.Contains(all[len(all)-1].text, j.State) {
		add(*j.EndedAt, "%s", j.State)
	}
	return all
}

// attempt describes an attempt on one line.
func (j *job) attempt(i int) string {
	a := &j.Attempts[i]
	text := fmt.Sprintf("attempt %d", a.N)
	switch a.Kind {
	case "lost":
		return text + ": lost, its process reported no result; the request may have been made"
	case "released":
		text = "not counted"
	}
	took := ""
	if a.DurationMS != nil {
		took = " after " + output.Span(time.Duration(*a.DurationMS*float64(time.Millisecond)))
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
	if a.Status != 0 && a.Verdict != "delivered" && a.Body != "" {
		body := []rune(strings.Join(strings.Fields(a.Body), " "))
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
func (j *job) outlook(now time.Time) []string {
	var all []string
	say := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	switch j.State {
	case "delivered", "dead", "cancelled":
		if j.State == "dead" {
			say("It is dead because %s (%s).", words.Reason(j.Reason), j.Reason)
		}
		say("Nothing happens any more. ringback job revive %s sends it again.", j.ID)
		if j.CallbackID != "" {
			say("Its end is reported by the job %s: ringback explain %s", j.CallbackID, j.CallbackID)
		}
		return all
	case "running":
		say("Now: an attempt is being made%s.", j.to())
	default:
		if w := j.WaitingFor; w != nil {
			say("Now: it waits%s.", until(w.Until, now))
			say("     %s", w.Facts)
			if command := w.Remedy.command(); command != "" {
				say("     %s", command)
			}
		}
		if w := j.WaitingFor; w != nil && w.Kind == "end" {
			return all // its facts say what happens next
		}
		if at := j.notBefore(); at.After(now) {
			say("Next: attempt %d%s at %s (in %s), not before.", j.AttemptsMade+1, j.to(), at.UTC().Format(clock),
				output.Span(at.Sub(now)))
		} else {
			say("Next: attempt %d%s, as soon as nothing keeps it.", j.AttemptsMade+1, j.to())
		}
	}
	all = append(all, j.afterwards()...)
	return all
}

// notBefore is the earliest time of the next attempt.
func (j *job) notBefore() time.Time {
	var at time.Time
	if j.NextAttemptAt != nil {
		at = *j.NextAttemptAt
	}
	if w := j.WaitingFor; w != nil && w.Until != nil && w.Until.After(at) {
		at = *w.Until
	}
	return at
}

// to names the receiver.
func (j *job) to() string {
	if j.Effective == nil || j.Effective.URL == "" {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", j.Method, j.Effective.URL)
}

// afterwards says what follows if the next attempt fails.
func (j *job) afterwards() []string {
	if j.Effective == nil || j.RetriesLeft == nil {
		return nil
	}
	var all []string
	switch left, ladder := *j.RetriesLeft, j.Effective.Ladder; {
	case left <= 0:
		all = append(all, "Then: it is the last one. If it fails, the job is dead (exhausted).")
	default:
		rung := min(max(j.Effective.Retries-left, 0), len(ladder)-1)
		wait := "a while"
		if rung >= 0 {
			wait = ladder[rung]
		}
		retries := fmt.Sprintf("%d more retries", left)
		if left == 1 {
			retries = "1 more retry"
		}
		all = append(all, fmt.Sprintf("Then: if it fails, the next one follows after %s or a little longer; %s until "+
			"the job is dead (exhausted).", wait, retries))
	}
	if j.ExpiresAt != nil {
		all = append(all, fmt.Sprintf("It expires at %s.", j.ExpiresAt.UTC().Format(clock)))
	} else if j.Effective.MaxAge != "" {
		all = append(all, fmt.Sprintf("It is also dead when it has been due for %s (max_age).", j.Effective.MaxAge))
	}
	return all
}

// command is the command for a remedy; empty: there is none.
func (r *remedy) command() string {
	about := []string{"topic", r.Action, r.Topic}
	switch {
	case !slices.Contains([]string{"run", "edit", "resume", "set", "put"}, r.Action):
		return ""
	case r.ID != "":
		about = []string{"job", r.Action, r.ID}
	case r.Lane != "":
		about = []string{"lane", r.Action, r.Topic, r.Lane}
	}
	return "ringback " + strings.Join(about, " ")
}

func until(t *time.Time, now time.Time) string {
	if t == nil || !t.After(now) {
		return ""
	}
	return fmt.Sprintf(", until %s (in %s)", t.UTC().Format(clock), output.Span(t.Sub(now)))
}
