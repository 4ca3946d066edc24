package deadpages

import (
	"cmp"
	"slices"
	"strings"
	"sync"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
)

// maxGroups bounds the groups of the page.
const maxGroups = 50

// deadData is the data of the dead letters.
type deadData struct {
	Lead      string
	Class     string // of the lead
	Selection *filter.Form
	// Empty: nothing is dead, or nothing matches.
	Empty, Filtered bool
	Groups          []groupRow
	OtherGroups     int64 // that are not shown
	// Select are the filter's parameters for links, and Which the jobs in words.
	Which  string
	Revive string
	Purge  string
	Jobs   []jobRow
	Pager  web.Pager
}

// groupRow is a group of dead jobs.
type groupRow struct {
	client.JobGroup

	Show   string // the link of its jobs
	Revive string
	Purge  string
}

// jobRow is a job of a list.
type jobRow struct {
	client.JobInfo

	Status      string // its state
	Why, Answer string
	Attempts    int64
}

func newJobRow(j client.JobInfo) jobRow {
	return jobRow{
		JobInfo: j, Status: string(j.State), Why: why(j.Reason), Answer: words.Answer(j.LastStatus, j.LastErrorClass),
		Attempts: int64(j.AttemptsMade),
	}
}

// showDead shows the dead letters.
func showDead(v *web.Visit) (web.Answer, error) {
	s := readSelection(v, v.Request.URL.Query(), "cursor", "search", "live")
	s.Without = []string{"state"}
	if slices.ContainsFunc(s.State, func(state client.State) bool { return state != client.Dead }) {
		s.Refuse("state: must be dead: this page has no other jobs")
	}
	s.State = nil // all of them are dead
	data := &deadData{Selection: s, Filtered: !s.IsZero(), Which: s.WithStates(client.Dead).Words()}
	page := &web.Page{View: "dead-letters", Title: "Dead letters", Section: "dead", Data: data}
	if data.Filtered && !s.Errors.Any() {
		page.Title += ": " + data.Which
	}
	switch {
	case s.Errors.Any():
		data.Lead = "This filter cannot be read."
	case needsTopic(v) && s.Topic == "":
		data.Lead = "Name a topic: your token is restricted to " + words.List(v.Who.Topics) + "."
	default:
		err := data.read(v)
		if err == nil {
			break
		}
		if err := s.Fail(err); err != nil {
			return nil, err
		}
		data.Lead, data.Class = "The API refuses this filter.", ""
	}
	page.Status = s.Errors.Status
	return page, nil
}

// read reads what is dead.
func (d *deadData) read(v *web.Visit) error {
	f := d.Selection.Filter
	var groups *client.JobGroups
	var jobs *client.JobPage
	var groupsErr, jobsErr error
	var both sync.WaitGroup // each takes as long as it may
	count, list := f.Query(), f.Query()
	count.Within = countTime(v)
	list.Cursor, list.Limit, list.Within = v.Query("cursor"), pageLimit, v.SearchTime()
	both.Go(func() {
		by := []string{"topic", "lane", "reason", "status", "error_class"}
		groups, groupsErr = v.API.DeadGroups(v.Request.Context(), count, by...)
	})
	both.Go(func() { jobs, jobsErr = v.API.DeadPage(v.Request.Context(), list) })
	both.Wait()
	if err := cmp.Or(groupsErr, jobsErr); err != nil {
		return err
	}
	var counted int64
	for _, g := range groups.Items {
		counted += g.Count
	}
	d.setGroups(v, groups.Items)
	d.Revive, d.Purge = orderLink(v, client.ActionRevive, f), orderLink(v, client.ActionPurge, f)
	for _, j := range jobs.Items {
		d.Jobs = append(d.Jobs, newJobRow(j))
	}
	d.Pager = v.SearchPager(v.Path("dead"), f.Pairs(), jobs, pageLimit,
		"Looked at "+words.Count(jobs.Scanned, "job")+" for this list.")
	d.Empty = counted == 0 && groups.Exact && len(d.Jobs) == 0
	d.setLead(groups, counted)
	return nil
}

// setGroups sets the groups and what they lead to.
func (d *deadData) setGroups(v *web.Visit, items []client.JobGroup) {
	d.OtherGroups = int64(max(0, len(items)-maxGroups))
	for _, g := range items[:min(len(items), maxGroups)] {
		f := d.Selection.Filter
		f.Topic, f.Lane, f.Reason, f.Status, f.ErrorClass = g.Topic, g.Lane, g.Reason, g.Status, g.ErrorClass
		if g.Status == 0 && g.ErrorClass == "" {
			f.ErrorClass = client.ErrorUnknown
		}
		d.Groups = append(d.Groups, groupRow{
			JobGroup: g, Show: v.PathQuery(v.Path("dead"), f.Pairs()...),
			Revive: orderLink(v, client.ActionRevive, f), Purge: orderLink(v, client.ActionPurge, f),
		})
	}
}

// setLead sets the sentence about all.
func (d *deadData) setLead(groups *client.JobGroups, counted int64) {
	switch {
	case d.Empty && d.Filtered:
		d.Lead, d.Class = "No dead job matches.", "ok"
		return
	case d.Empty:
		d.Lead, d.Class = "No job is dead.", "ok"
		return
	case counted == 0 && len(d.Jobs) == 0:
		d.Lead, d.Class = "No dead job was found yet that matches: the search was cut short.", "warn"
		return
	}
	d.Class = "bad"
	n := deadNumbers{Total: max(counted, int64(len(d.Jobs))), Exact: groups.Exact, Filtered: d.Filtered}
	if counted == 0 { // the list was quicker
		d.Lead = n.lead("")
		return
	}
	first := groups.Items[0]
	n.First = first.Count
	d.Lead = n.lead("of topic " + first.Topic + " " + place(first.Lane) + ": " + cause(first))
}

// deadNumbers are the numbers of dead jobs that the sentence about them has. Those of /v1/stats are not among them:
// they count jobs that are deleted by now, too.
type deadNumbers struct {
	Total int64 // dead, or matching
	First int64 // in the first group
	Exact bool  // all were counted
	// Filtered: they match a filter.
	Filtered bool
}

// lead returns the sentence. where says where the first group is, and why it is dead; empty: it is not known.
func (n deadNumbers) lead(where string) string {
	text := words.CountVerb(n.Total, "job", "is", "are") + " dead"
	if n.Filtered {
		text = words.CountVerb(n.Total, "dead job", "matches", "match")
	}
	switch {
	case where == "":
		return words.Sentence("At least " + text)
	case n.Exact && n.Total == 1:
		return words.Sentence(text+",", where)
	case n.Exact && n.First == n.Total:
		return words.Sentence(text+", all of them", where)
	case !n.Exact:
		text = "At least " + text
	}
	return words.Sentence(text+";", words.Number(n.First), "of them", where)
}

// place returns where a lane's jobs go: a lane is named after host and port unless clients name it.
func place(lane string) string {
	if strings.Contains(lane, ":") {
		return "at " + lane
	}
	return "in lane " + lane
}

// cause returns why jobs are dead, in few words.
func cause(g client.JobGroup) string {
	answer := words.Answer(g.Status, g.ErrorClass)
	switch {
	case g.Reason == "exhausted" || g.Reason == "":
		return answer
	case g.Status == 0:
		return words.Reason(g.Reason)
	}
	return words.Reason(g.Reason) + ", last " + answer
}

// why returns why a job is dead, to stand alone.
func why(reason string) string { return cmp.Or(words.Reason(reason), "unknown") }

// orderLink returns the link of the page that counts jobs before an action.
func orderLink(v *web.Visit, action string, f filter.Filter) string {
	return v.PathQuery(v.Path("work", "new"), append([]string{"action", action}, f.Pairs()...)...)
}
