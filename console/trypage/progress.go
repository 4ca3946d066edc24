package trypage

import (
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// progress is the life of the job so far, in words.
type progress struct {
	ID, State  string
	To         string // its lane, which is the URL's host and port unless the job names another one
	Registered time.Time
	Attempts   []attempt
	Next       string      // empty: it has ended
	Remedy     *web.Remedy // ends what it waits for; nil: nothing does
}

// attempt is an attempt in words.
type attempt struct {
	N       int
	At      time.Time
	Verdict string
	Text    string
}

// newProgress returns the progress of a job.
func newProgress(v *web.Visit, j *client.JobInfo) *progress {
	p := &progress{ID: j.ID, State: string(j.State), To: j.Lane, Registered: j.CreatedAt}
	for _, a := range j.Attempts {
		p.Attempts = append(p.Attempts, attempt{
			N: a.N, At: a.StartedAt, Verdict: verdictOf(&a.AttemptSummary),
			Text: attemptText(&a.AttemptSummary),
		})
	}
	if !j.State.Ended() {
		p.Next = nextOf(j, v.Now)
		if w := j.WaitingFor; w != nil {
			p.Remedy = v.Remedy(w.Remedy)
		}
	}
	return p
}

// verdictOf returns the verdict of an attempt as a code for a pill.
func verdictOf(a *client.AttemptSummary) string {
	switch {
	case a.Verdict != "":
		return a.Verdict
	case a.Kind != "":
		return a.Kind
	}
	return "running"
}

// attemptText says what an attempt was answered.
func attemptText(a *client.AttemptSummary) string {
	after := ""
	if a.DurationMS != nil {
		after = " after " + words.Duration(time.Duration(*a.DurationMS*float64(time.Millisecond)))
	}
	switch {
	case a.Status != 0:
		return "answered " + statusText(a.Status) + after
	case a.ErrorClass != "":
		return words.ErrorClass(a.ErrorClass) + after
	case a.Error != "":
		return a.Error + after
	}
	return words.Verdict(verdictOf(a)) + after
}

// statusText returns a status with its meaning.
func statusText(status int) string {
	text := strconv.Itoa(status)
	if meaning := http.StatusText(status); meaning != "" {
		text += " " + meaning
	}
	return text
}

// nextOf says what comes next, and why not now.
func nextOf(j *client.JobInfo, now time.Time) string {
	switch {
	case j.State == client.Running:
		return "attempt " + strconv.Itoa(j.AttemptsMade+1) + " runs now"
	case j.WaitingFor != nil && j.WaitingFor.Kind != "due" && j.WaitingFor.Kind != "retry":
		return words.Clause(j.WaitingFor.Facts)
	}
	text := "attempt " + strconv.Itoa(j.AttemptsMade+1)
	if j.NextAttemptAt.After(now) {
		return text + " comes " + words.In(j.NextAttemptAt, now)
	}
	return text + " comes now"
}

// leadOf says in a sentence how the job fares.
func leadOf(j *client.JobInfo, now time.Time) (sentence, class string) {
	name := "Job " + j.ID
	made := words.Count(int64(j.AttemptsMade), "attempt")
	switch j.State {
	case client.Delivered:
		return name + " was delivered to " + j.Lane + " on attempt " + strconv.Itoa(j.AttemptsMade) + ", " +
			words.Duration(j.EndedAt.Sub(j.CreatedAt)) +
			" after it was registered.", "ok"
	case client.Dead:
		return words.Sentence(name, "is dead after", made+", because", words.Reason(j.Reason)), "bad"
	case client.Cancelled:
		return name + " was cancelled after " + made + ".", ""
	}
	next := nextOf(j, now)
	if n := len(j.Attempts); n > 0 && j.Attempts[n-1].Verdict == "again" {
		last := &j.Attempts[n-1].AttemptSummary
		return name + " did not get through yet: attempt " + strconv.Itoa(last.N) + " " + failure(last) + ", " + next +
			".", "warn"
	}
	return name + " is on its way to " + j.Lane + ": " + next + ".", ""
}

// failure says what went wrong with an attempt, after its number.
func failure(a *client.AttemptSummary) string {
	if a.Status != 0 {
		return "was answered " + statusText(a.Status)
	}
	return "failed (" + words.ErrorClass(a.ErrorClass) + ")"
}
