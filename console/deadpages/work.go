package deadpages

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// listData is the data of the list of bulk work.
type listData struct {
	Lead  string
	Rows  []workRow
	Pager web.Pager
}

// workRow is bulk work in words.
type workRow struct {
	client.Work

	What     string // which jobs, and what is done with them
	Pace     string
	Counts   string
	Progress progress
	Left     string
}

// progress is the data of the template "progress".
type progress struct {
	Max, Value int64 // Max zero: not known
	Text       string
}

// progressOf returns how far work is.
func progressOf(w *client.Work) progress {
	p := progress{Value: treated(w), Text: words.Number(treated(w)) + " of " + jobsOf(w)}
	if w.Total == nil && w.Matched == 0 {
		p.Text = words.Count(treated(w), "job")
	}
	if w.Total != nil {
		p.Max = max(*w.Total, p.Value, 1)
	}
	if !isRunning(w) {
		p.Max = max(p.Max, p.Value, 1)
	}
	return p
}

// whatOf returns what work does, "Revive dead jobs of topic pay", and its selection; nil: this version cannot read it.
func whatOf(w *client.Work) (string, *filter.Selection) {
	a, _ := actionOf(w.Action)
	if w.State == "failed" && len(w.Where) == 0 {
		return "Unknown work", nil
	}
	s, err := filter.ParseWhere(w.Where)
	if err != nil {
		return a.verb + " jobs: unknown selection", nil
	}
	return a.verb + " " + a.which(s), &s
}

// rowOf returns work in words.
func rowOf(v *web.Visit, w *client.Work) workRow {
	a, _ := actionOf(w.Action)
	row := workRow{Work: *w, Pace: pace(w.Rate, w.LaneRate), Progress: progressOf(w), Counts: counts(w, a.done)}
	if isRunning(w) {
		row.Left = left(w, v.Now)
	}
	row.What, _ = whatOf(w)
	return row
}

// listWork shows bulk work.
func listWork(v *web.Visit) (web.Answer, error) {
	found, err := v.API.WorkPage(v.Request.Context(), client.PageOptions{Cursor: v.Query("cursor"), Limit: pageLimit})
	if err != nil {
		return nil, err
	}
	data := &listData{Pager: v.Pager(found.NextCursor)}
	running := 0
	for i := range found.Items {
		w := &found.Items[i]
		data.Rows = append(data.Rows, rowOf(v, w))
		if isRunning(w) {
			running++
		}
	}
	data.Lead = listLead(v, found, running)
	return &web.Page{View: "work-list", Reload: true, Title: "Work", Section: "work", Data: data}, nil
}

// listLead returns the sentence about all work. What runs is first in the list.
func listLead(v *web.Visit, found *client.Page[client.Work], running int) string {
	number := words.Count(int64(running), "work")
	if running == len(found.Items) && found.NextCursor != "" {
		number = "At least " + number
	}
	later := v.Query("cursor") != ""
	switch {
	case later && running > 0:
		return "More work that is running, and older work that has ended."
	case later:
		return "Older work, the newest first."
	case len(found.Items) == 0 && found.NextCursor != "": // your topics have none among those that were looked at
		return "No work was found yet, and there is more to look at."
	case running == 0:
		return "No work is running."
	case running == 1:
		text := number + " is running: " + words.LowerFirst(summary(&found.Items[0]))
		if l := left(&found.Items[0], v.Now); l != "" {
			text += "; " + l
		}
		return words.Sentence(text)
	default:
		return words.Sentence(number, "are running; the first:", words.LowerFirst(summary(&found.Items[0])))
	}
}

// workData is the data of a page of bulk work.
type workData struct {
	client.Work

	What     string
	Lead     string
	Class    string
	Running  bool
	Progress progress
	Pace     string
	Ahead    bool   // jobs are done before they are due
	Changes  string // the JSON of the change
	Jobs     []web.Link
	Confirm  string
}

// showWork shows bulk work.
func showWork(v *web.Visit) (web.Answer, error) {
	w, err := v.API.GetWork(v.Request.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	what, s := whatOf(w)
	data := &workData{
		Work: *w, What: what, Running: isRunning(w), Progress: progressOf(w),
		Pace: pace(w.Rate, w.LaneRate), Jobs: jobLinks(v, w, s),
	}
	data.Lead, data.Class = leadOf(w, v.Now)
	if text := string(w.Change); text != "null" {
		data.Changes = text
	}
	a, _ := actionOf(w.Action)
	data.Ahead = a.paced && data.Pace != "" && data.Running
	data.Confirm = "Stop? Jobs that are " + a.done + " already stay so."
	return &web.Page{
		View: "work-progress", Reload: true, Title: "Work " + w.ID, Section: "work",
		Crumbs: []web.Link{{To: v.Path("work"), Text: "Work"}}, Data: data,
	}, nil
}

// jobLinks returns where the jobs of work are found; none if s is nil: its selection is unknown.
func jobLinks(v *web.Visit, w *client.Work, s *filter.Selection) []web.Link {
	if s == nil || s.IDs > 0 || w.State == "failed" {
		return nil
	}
	if w.Action == client.ActionReplay {
		return []web.Link{{To: v.PathQuery(v.Path("events"), "topic", s.Topic, "type", s.Type), Text: "The events"}}
	}
	jobs := func(f filter.Filter) string { return v.PathQuery(v.Path("jobs"), f.Pairs()...) }
	var links []web.Link
	if w.Action == client.ActionCancel {
		cancelled := asTheyAre(w, s.Filter)
		cancelled.State = []client.State{client.Cancelled}
		return []web.Link{
			{To: jobs(cancelled), Text: "Cancelled jobs"},
			{To: jobs(s.WithStates(unfinished...)), Text: "Unfinished jobs that match"},
		}
	}
	if now := asTheyAre(w, s.Filter); w.Action != client.ActionPurge && !selectsAllCounted(now) {
		links = append(links, web.Link{To: jobs(now), Text: "The jobs as they are now"})
	}
	a, _ := actionOf(w.Action)
	if slices.Contains(s.WithStates(a.states...).State, client.Dead) {
		dead := s.Filter
		dead.State = nil
		if w.Action == client.ActionRevive {
			dead.EndedBefore = time.Time{} // those that died again, too
		}
		links = append(links,
			web.Link{To: v.PathQuery(v.Path("dead"), dead.Pairs()...), Text: "What is dead now and matches"})
	}
	return links
}

// asTheyAre returns the filter of the jobs of work without what the work, or what follows from it, has changed.
func asTheyAre(w *client.Work, f filter.Filter) filter.Filter {
	f.State, f.Reason, f.Status, f.ErrorClass = nil, "", 0, ""
	f.DueAfter, f.DueBefore, f.EndedAfter, f.EndedBefore = time.Time{}, time.Time{}, time.Time{}, time.Time{}
	var change struct {
		Labels json.RawMessage `json:"labels"`
	}
	if json.Unmarshal(w.Change, &change) != nil || change.Labels != nil {
		f.Label = nil
	}
	return f
}

// selectsAllCounted reports whether a filter selects by nothing but the time of the count, at most.
func selectsAllCounted(f filter.Filter) bool {
	f.CreatedBefore = time.Time{}
	return f.SelectsAll()
}

// stopWork stops bulk work.
func stopWork(v *web.Visit) (web.Answer, error) {
	w, err := v.API.StopWork(v.Request.Context(), v.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return stopAnswer(v.Path("work", w.ID), w), nil
}

// stopAnswer says what came of a request to stop work.
func stopAnswer(to string, w *client.Work) *web.Redirect {
	a, _ := actionOf(w.Action)
	switch {
	case w.State == "done" || w.State == "failed":
		return web.Warn(to, "The work had ended before.")
	case !w.EndedAt.IsZero(): // no step was in progress, or it was stopped before
		return web.Done(to, "The work is stopped. "+words.Sentence(counts(w, a.done)))
	}
	return web.Done(to, "The work stops after the step in progress. "+words.Sentence(counts(w, a.done), "so far"))
}
