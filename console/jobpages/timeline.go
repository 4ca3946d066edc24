package jobpages

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// entry is something that happened to a job, or will.
type entry struct {
	At    time.Time
	Class string // of the list: a verdict, or next
	Text  string
	Why   string // what comes next does not come now
	// Attempt is the attempt that the entry is about; nil: it is about none.
	Attempt *attemptView
}

// attemptView is an attempt as the page shows it.
type attemptView struct {
	*client.Attempt

	Phases  string
	Headers []string // of the answer
	Answer  bodyView
	// Note says where the answer is, if it is not here.
	Note string
}

// maxAnswers bounds what a page shows of the answers to all attempts, in bytes of HTML.
const maxAnswers = 20 << 10

// attemptViews returns the attempts. Answers that are the same as that of the next attempt, and those that have no
// room, are left out, the newest last.
func attemptViews(attempts []client.Attempt) []*attemptView {
	views := make([]*attemptView, len(attempts))
	room := maxAnswers
	for i := range slices.Backward(attempts) {
		a := &attempts[i]
		v := &attemptView{Attempt: a, Phases: phases(a.Phases)}
		views[i] = v
		if i+1 < len(attempts) && a.Status != 0 && sameAnswer(a, &attempts[i+1]) {
			v.Note = "The same as that of attempt " + strconv.Itoa(attempts[i+1].N) + "."
			continue
		}
		v.Headers, v.Answer = headerLines(a.ResponseHeaders), answerBody(a)
		size := 0
		for _, text := range append([]string{v.Answer.Text}, v.Headers...) {
			for i := range len(text) {
				size += escapedSize(text[i])
			}
		}
		if room -= size; room < 0 && size > 0 {
			v.Headers, v.Answer = nil, bodyView{}
			v.Note = "Only the API shows this one: the page has room for the newest."
		}
	}
	return views
}

// sameAnswer reports whether two answers have the same headers, but for the date, and the same body.
func sameAnswer(a, b *client.Attempt) bool {
	if a.ResponseBody != b.ResponseBody || !bytes.Equal(a.ResponseBodyBase64, b.ResponseBodyBase64) ||
		a.Status != b.Status {
		return false
	}
	undated := func(h client.Headers) client.Headers {
		h = maps.Clone(h)
		delete(h, "Date")
		return h
	}
	return maps.EqualFunc(undated(a.ResponseHeaders), undated(b.ResponseHeaders), slices.Equal[[]string])
}

// timeline returns what happened to a job in the order of time, and what comes next.
func timeline(j *client.JobInfo) []entry {
	var all []entry
	for _, e := range j.Events {
		all = append(all, eventEntry(j, e))
	}
	for _, a := range attemptViews(j.Attempts) {
		all = append(all, attemptEntry(a))
	}
	if !slices.ContainsFunc(j.Events, func(e client.Event) bool { return e.Kind == "created" }) {
		all = append(all, entry{At: j.CreatedAt, Text: "registered"})
	}
	slices.SortStableFunc(all, func(a, b entry) int { return a.At.Compare(b.At) })
	if hidden := hiddenAttempts(j); hidden > 0 {
		all = slices.Insert(all, 1, entry{Text: words.Count(int64(hidden), "earlier attempt") + " no longer kept"})
	}
	return append(all, ending(j)...)
}

// hiddenAttempts returns the number of attempts that the API does not show.
func hiddenAttempts(j *client.JobInfo) int {
	if len(j.Attempts) == 0 {
		return j.AttemptsMade
	}
	return j.Attempts[0].N - 1
}

func eventEntry(j *client.JobInfo, e client.Event) entry {
	text := words.Change(e.Kind)
	if e.Kind == "cancelled" && !endedBy(j, e) {
		text = "cancellation requested"
	}
	if len(e.Fields) > 0 {
		text += ": " + strings.Join(e.Fields, ", ")
	}
	return entry{At: e.At, Text: text + actor(e.Actor)}
}

// endedBy reports whether a job ended by an event: a cancellation. That of a running job is a request, which its
// attempt may outrun.
func endedBy(j *client.JobInfo, e client.Event) bool {
	return e.Kind == "cancelled" && j.State == client.Cancelled && e.At.Equal(j.EndedAt)
}

func attemptEntry(v *attemptView) entry {
	a := v.Attempt
	class := a.Verdict
	if a.Kind == "lost" || class == "" {
		class = a.Kind
	}
	return entry{At: a.StartedAt, Class: class, Text: "attempt " + strconv.Itoa(a.N) + " " + outcome(a), Attempt: v}
}

// phases says how long the phases of a request took.
func phases(p *client.Phases) string {
	if p == nil {
		return ""
	}
	var parts []string
	for _, phase := range []struct {
		name string
		ms   *float64
	}{{"DNS", p.DNS}, {"connect", p.Connect}, {"TLS", p.TLS}, {"first byte", p.FirstByte}} {
		if phase.ms != nil {
			parts = append(parts, phase.name+" "+words.Duration(milliseconds(*phase.ms)))
		}
	}
	return strings.Join(parts, ", ")
}

// headerLines returns a line for each value of headers.
func headerLines(headers client.Headers) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		for _, value := range headers[name] {
			lines = append(lines, name+": "+value)
		}
	}
	return lines
}

// ending returns the end of a job, or what comes next.
func ending(j *client.JobInfo) []entry {
	switch j.State {
	case client.Dead:
		return []entry{{At: j.EndedAt, Class: "dead", Text: "dead, because " + words.Reason(j.Reason)}}
	case client.Delivered:
		if last := lastAttempt(j); last != nil && last.Verdict == "delivered" {
			return nil
		}
		return []entry{{At: j.EndedAt, Class: "delivered", Text: "delivered"}}
	case client.Cancelled:
		if slices.ContainsFunc(j.Events, func(e client.Event) bool { return endedBy(j, e) }) {
			return nil
		}
		return []entry{{At: j.EndedAt, Text: "cancelled"}}
	}
	why := ""
	at, text := j.NextAttemptAt, words.LowerFirst(attemptOf(j))
	if w := j.WaitingFor; w != nil && w.Until.After(at) {
		at = w.Until
	}
	if j.State == client.Running {
		text += " runs now"
	} else if w := j.WaitingFor; w != nil && w.Kind != "due" && w.Kind != "retry" {
		why = words.Clause(w.Facts)
	}
	expiry := entry{At: j.ExpiresAt, Class: "next", Text: "expires: no attempt starts later"}
	if !expiry.At.IsZero() && expiry.At.Before(at) && j.State != client.Running {
		expiry.Text, expiry.Why = "expires before "+text+" can start", why
		return []entry{expiry}
	}
	next := []entry{{At: at, Class: "next", Text: text, Why: why}}
	if !expiry.At.IsZero() {
		next = append(next, expiry)
	}
	return next
}
