package deadpages

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/words"
)

// action is what bulk work does with jobs.
type action struct {
	code              string
	verb, doing, done string
	// then says what follows for the jobs that are done.
	then string
	// states are those of the jobs that it selects, unless others are named.
	states []client.State
	// happens says what it does.
	happens []string
	paced   bool // it takes rates
	// confirm is what is asked before jobs are lost; see confirmOf.
	confirm string
	changes []string // the fields of its form
}

// unfinished are the states of jobs that may still be delivered.
var unfinished = []client.State{client.Scheduled, client.Ready, client.Running}

// editable are the fields of a job that an edit can change in many: bodies differ, and times are of one job.
var editable = []string{"url", "headers", "delay", "retries", "ladder", "timeout", "expires_in", "labels"}

// isDue says what is not known of jobs that are due.
const isDue = "Due is not delivered: each job is sent as its lane and topic allow, and its page shows it"

// actions are the actions of bulk work.
var actions = []action{
	{
		code: client.ActionRevive, verb: "Revive", doing: "Reviving", done: "revived", then: isDue,
		states: []client.State{client.Dead}, paced: true, happens: []string{
			"Each job is sent again with a fresh budget of retries, under the id that it has.",
		},
		changes: []string{"url", "headers", "expires_in", "delay"},
	},
	{
		code: client.ActionPurge, verb: "Delete", doing: "Deleting", done: "deleted",
		states: []client.State{client.Dead}, confirm: "This cannot be undone.",
		happens: []string{"The jobs are removed for good, with their bodies and attempts. Only the counters keep " +
			"them."},
	},
	{
		code: client.ActionCancel, verb: "Cancel", doing: "Cancelling", done: "cancelled", states: unfinished,
		confirm: "They are not delivered any more.",
		happens: []string{"The jobs are not delivered any more. One that is running is cancelled unless its attempt " +
			"succeeds."},
	},
	{
		code: client.ActionRun, verb: "Run", doing: "Running", done: "made due", then: isDue,
		states: []client.State{client.Scheduled}, paced: true, happens: []string{"The jobs are due as the pace " +
			"allows, not at their own times. Jobs that are due earlier are left as they are."},
	},
	{
		code: client.ActionEdit, verb: "Edit", doing: "Editing", done: "edited", states: unfinished,
		happens: []string{"The fields that you fill in are changed in every job; the others stay. Running jobs are " +
			"skipped."},
		changes: editable,
	},
}

// actionOf returns the action of a code. The API may have more than this version knows.
func actionOf(code string) (a action, known bool) {
	for _, a := range actions {
		if a.code == code {
			return a, true
		}
	}
	if code == client.ActionReplay { // it has another page
		return action{
			code: code, verb: "Send again", doing: "Sending again", done: "made", then: isDue, paced: true,
		}, false
	}
	code = cmp.Or(code, "change")
	return action{code: code, verb: code, doing: "Doing " + code + " with", done: "done"}, false
}

// isOfEnded reports whether the action is about jobs that have ended.
func (a action) isOfEnded() bool { return slices.Contains(a.states, client.Dead) }

// confirmOf returns what is asked before the action is done with jobs of some states; empty: nothing.
func (a action) confirmOf(states []client.State) string {
	if a.code != client.ActionRevive {
		return a.confirm
	}
	delivered, cancelled := slices.Contains(states, client.Delivered), slices.Contains(states, client.Cancelled)
	switch {
	case delivered && cancelled:
		return "Delivered jobs reach their receivers again, and cancelled ones are sent after all."
	case delivered:
		return "Delivered jobs reach their receivers again."
	case cancelled:
		return "Cancelled jobs are sent after all."
	}
	return ""
}

// which returns the jobs that are selected, in words.
func (a action) which(s filter.Selection) string {
	if a.code == client.ActionReplay {
		return whichEvents(s)
	}
	if s.IDs > 0 {
		return words.Count(int64(s.IDs), "job") + " by their ids"
	}
	text := s.WithStates(a.states...).Words()
	if s.SelectsAll() {
		return "all " + text
	}
	return text
}

// whichEvents returns the events and the lanes that a replay selects, in words.
func whichEvents(s filter.Selection) string {
	to := ""
	if s.Lane != "" {
		to = " to lane " + s.Lane
	}
	if len(s.State) > 0 {
		states := make([]string, len(s.State))
		for i, state := range s.State {
			states[i] = string(state)
		}
		to += ", where their job is " + strings.Join(states, " or ")
	}
	if s.IDs > 0 {
		return words.Count(int64(s.IDs), "event") + " by their ids" + to
	}
	isAll := s.SelectsAll() && s.Type == ""
	s.Lane, s.State = "", nil
	text := strings.Replace(s.Words(), "jobs", strings.TrimSpace(s.Type+" events"), 1)
	if isAll {
		text = "all " + text
	}
	return text + to
}

// pace returns rates in words, after the number of jobs.
func pace(rate, laneRate string) string {
	var parts []string
	if rate != "" {
		parts = append(parts, rate)
	}
	if laneRate != "" {
		parts = append(parts, laneRate+" in each lane")
	}
	return strings.Join(parts, ", ")
}

// isRunning reports whether work goes on.
func isRunning(w *client.Work) bool { return w.State == "running" }

// treated returns for how many jobs the outcome is known.
func treated(w *client.Work) int64 { return w.Done + w.Failed + w.Skipped }

// jobsOf returns how many jobs work has, as far as it is known.
func jobsOf(w *client.Work) string {
	switch {
	case w.Total != nil:
		return words.Count(max(*w.Total, treated(w)), "job")
	case w.Matched > 0:
		return "at least " + words.Count(w.Matched, "job")
	}
	return "jobs"
}

// counts returns what came of the jobs: "130 done, 2 failed".
func counts(w *client.Work, done string) string {
	parts := []string{words.Number(w.Done) + " " + done}
	if w.Failed > 0 {
		parts = append(parts, words.Number(w.Failed)+" failed")
	}
	if w.Skipped > 0 {
		parts = append(parts, words.Number(w.Skipped)+" skipped")
	}
	return strings.Join(parts, ", ")
}

// summary returns the clause about running work: "reviving 280 jobs at 10/s: 130 done, 2 failed".
func summary(w *client.Work) string {
	a, _ := actionOf(w.Action)
	text := a.doing + " " + jobsOf(w)
	if p := pace(w.Rate, w.LaneRate); p != "" {
		text += " at " + p
	}
	return text + ": " + counts(w, "done")
}

// left returns how long work goes on, in words; empty: it is not known.
func left(w *client.Work, now time.Time) string {
	d := w.ETAAt.Sub(now)
	if w.ETAAt.IsZero() || d <= 0 {
		return ""
	}
	return "about " + words.Duration((d + time.Second - 1).Truncate(time.Second)) + " left"
}

// outcome returns what came of the jobs, as a sentence: "8 of 10 jobs were revived, 2 failed."
func outcome(w *client.Work, a action) string {
	verb := "were "
	if w.Done == 1 || w.Total != nil && *w.Total == 1 {
		verb = "was "
	}
	text := words.Number(w.Done) + " of " + jobsOf(w) + " " + verb + a.done
	if w.Total == nil && w.Matched == 0 {
		text = words.Count(w.Done, "job") + " " + verb + a.done
	}
	if w.Failed > 0 {
		text += ", " + words.Number(w.Failed) + " failed"
	}
	if w.Skipped > 0 {
		text += ", " + words.Number(w.Skipped) + " skipped"
	}
	return words.Sentence(text)
}

// leadOf returns the sentences about work.
func leadOf(w *client.Work, now time.Time) (text, class string) {
	a, _ := actionOf(w.Action)
	begun := ""
	if w.CreatedBy != "" {
		begun = "Begun by " + w.CreatedBy + "."
	}
	took := ""
	if d := w.EndedAt.Sub(w.CreatedAt); !w.EndedAt.IsZero() && d >= time.Second {
		took = words.Duration(d.Truncate(time.Second))
	}
	switch w.State {
	case "running":
		text = summary(w)
		if l := left(w, now); l != "" {
			text += "; " + l
		}
	case "done":
		text, class = "No job matched", "ok"
		if treated(w) > 0 {
			text = outcome(w, a)
			if took != "" {
				text += " It took " + took + "."
			}
			if w.Done > 0 {
				text = strings.TrimSpace(text + " " + a.then)
			}
		}
		if w.Failed > 0 {
			class = "warn"
		}
	case "stopped":
		text, class = "Stopped", "warn"
		if took != "" {
			text += " after " + took
		}
		text += ". " + outcome(w, a)
	case "failed":
		text, class = "This work failed: it cannot be read from the store", "bad"
	default:
		text = w.State + ": " + counts(w, a.done)
	}
	return strings.TrimSpace(words.Sentence(text) + " " + begun), class
}
