package jobpages

import (
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

// listData is the data of the list.
type listData struct {
	// Lead says in one sentence what the list is.
	Lead, LeadClass string
	// MayList: the token may do more than read single jobs.
	MayList bool
	// ID is the id that was looked for, Missing that there is none such; ByPrefix leads to ids that begin with it.
	ID       string
	Missing  bool
	ByPrefix string
	Form     *filter.Form
	Chips    []chip
	Reset    string
	Rows     []row
	Pager    web.Pager
	// Widen are links that remove a filter, or look for more.
	Widen []web.Link
	Hints []string
	// Bulk are links that act on all jobs that match.
	Bulk []web.Link
}

// chip is an active filter; To leads to the list without it.
type chip struct{ Text, To string }

// showList serves the list of jobs, and the box for an id.
func (p *pages) showList(v *web.Visit) (web.Answer, error) {
	d := &listData{MayList: v.Can(access.ListJobs), ID: v.Query("id")}
	page := &web.Page{View: "job-list", Title: "Jobs", Section: "jobs", Data: d}
	if d.ID != "" {
		switch _, err := getJob(v, d.ID); {
		case err == nil:
			return &web.Redirect{To: v.Path("jobs", d.ID)}, nil
		case errors.Is(err, client.ErrNotFound), errors.Is(err, client.ErrInvalid): // an invalid id is that of no job
			d.missing(v)
			page.Status = http.StatusNotFound
			return page, nil
		default:
			return nil, err
		}
	}
	if !d.MayList {
		d.Lead = "Your token reads single jobs: write the id of one."
		return page, nil
	}
	f := readSelection(v)
	d.Form = f.Form
	if len(v.Who.Topics) > 0 && f.Topic == "" { // the API refuses lists of all topics
		d.chooseTopic(v, f)
		page.Status = f.Errors.Status
		return page, nil
	}
	list, err := readList(v, f)
	if err != nil {
		return nil, err
	}
	counts, err := p.readCounts(v, f)
	if err != nil {
		return nil, err
	}
	d.fill(v, f, list, counts)
	page.Status = f.Errors.Status
	if len(f.active) > 0 && !f.Errors.Any() {
		text := words.Cut(f.Words(), maxShown)
		page.Title = words.UpperFirst(text)
	}
	return page, nil
}

// getJob returns a job. An id of dots is that of none, and would be another path of the API.
func getJob(v *web.Visit, id string) (*client.JobInfo, error) {
	if strings.Trim(id, ".") == "" {
		return nil, &client.Problem{Status: http.StatusNotFound, Code: "not_found", Detail: "There is no such job."}
	}
	return v.API.Get(v.Request.Context(), id)
}

// chooseTopic lets the reader choose one of the topics that the token is restricted to.
func (d *listData) chooseTopic(v *web.Visit, f *selection) {
	d.Lead = "Choose a topic: your token is restricted to " + words.List(v.Who.Topics) + "."
	if f.Errors.Any() { // links to a topic would lack what is wrong
		return
	}
	d.Hints = []string{"Write the name of a topic that your token may read, and filter."}
	for _, topic := range v.Who.Topics {
		if !strings.HasSuffix(topic, "*") {
			d.Widen = append(d.Widen, web.Link{
				To:   v.PathQuery(v.Path("jobs"), append(f.pairs(-1), "topic", topic)...),
				Text: "Jobs of topic " + topic,
			})
		}
	}
}

// missing says that there is no job of an id.
func (d *listData) missing(v *web.Visit) {
	d.Missing, d.LeadClass = true, "warn"
	d.Lead = "There is no job " + words.Cut(d.ID, maxShown) + "."
	d.Hints = []string{"Ids are compared exactly, and within this namespace. A job that has ended is removed after " +
		"the time that its topic keeps it."}
	if d.MayList {
		d.ByPrefix = v.PathQuery(v.Path("jobs"), "id_prefix", d.ID, "kind", "all")
	}
}

// readList returns the page of the list; empty if the filter is wrong.
func readList(v *web.Visit, f *selection) (*client.JobPage, error) {
	if f.Errors.Any() {
		return new(client.JobPage), nil
	}
	list, err := v.API.JobPage(v.Request.Context(), f.request(v.SearchTime()))
	if p, ok := errors.AsType[*client.Problem](err); ok && p.Status == http.StatusUnprocessableEntity {
		err = f.Fail(err, "order")
		return new(client.JobPage), err
	}
	return list, err
}

// callbackTopic is the topic of callbacks, the only one with jobs of Ringback's own that the counters of all topics
// include.
const callbackTopic = "_callbacks"

// readCounts returns the counters of what is listed; nil if there are none: those of ended jobs include the ones that
// were removed. Those of all topics are shared with other pages: counting them takes long where many lanes have
// unfinished jobs.
func (p *pages) readCounts(v *web.Visit, f *selection) (*client.Counts, error) {
	if f.Errors.Any() || !f.only("topic", "state") || slices.ContainsFunc(f.State, client.State.Ended) ||
		!v.Can(access.ReadStats) || f.Topic == "" && !v.CanAll(access.ReadStats) {
		return nil, nil
	}
	if f.Topic != "" {
		counts, err := topicCounts(v, f.Topic)
		if errors.Is(err, client.ErrNotFound) {
			return nil, nil
		}
		return counts, err
	}
	stats, _, err := p.answers.Stats(v.Request.Context(), v.Namespace, v.API)
	if err != nil {
		return nil, err
	}
	own := new(client.Counts) // of callbacks, which the list lacks
	switch at := slices.IndexFunc(stats.Items, func(t client.TopicCounts) bool { return t.Topic == callbackTopic }); {
	case at >= 0:
		own = &stats.Items[at].Counts
	case stats.NextCursor != "":
		if own, err = topicCounts(v, callbackTopic); err != nil {
			return nil, err
		}
	}
	return without(stats.Totals, own), nil
}

// topicCounts returns the counters of a topic.
func topicCounts(v *web.Visit, topic string) (*client.Counts, error) {
	stats, err := v.API.TopicStatsPage(v.Request.Context(), topic, client.PageOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	return &stats.Counts, nil
}

// without returns counts without those of some of the jobs, which were read later and may be larger by now.
func without(all client.Counts, some *client.Counts) *client.Counts {
	less := func(n *int64, by int64) { *n = max(0, *n-by) }
	less(&all.Registered, some.Registered)
	less(&all.Scheduled, some.Scheduled)
	less(&all.Ready, some.Ready)
	less(&all.Running, some.Running)
	less(&all.Delivered, some.Delivered)
	less(&all.Dead, some.Dead)
	return &all
}

// fill fills the data of the list.
func (d *listData) fill(v *web.Visit, f *selection, list *client.JobPage, counts *client.Counts) {
	here := v.Path("jobs")
	for i, p := range f.active {
		if f.Errors.Any() { // links would select without what is wrong
			break
		}
		d.Chips = append(d.Chips, chip{Text: p.words(), To: v.PathQuery(here, f.pairs(i)...)})
	}
	d.Reset = here
	for i := range list.Items {
		d.Rows = append(d.Rows, newRow(&list.Items[i], v.Now))
	}
	if f.Errors.Any() {
		d.Lead, d.LeadClass = "Nothing was searched: a filter is wrong.", "bad"
		return
	}
	d.Lead = lead(f, list, counts)
	d.Pager = v.SearchPager(here, f.pairs(-1), list, pageSize, budget(f, list))
	if len(list.Items) == 0 {
		d.explainEmpty(v, f, list)
	} else if v.Can(access.StartWork) {
		d.bulk(v, f)
	}
}

// bulk sets the links that act on all jobs that match.
func (d *listData) bulk(v *web.Visit, f *selection) {
	if len(f.active) == 0 {
		return
	}
	d.Bulk = append(d.Bulk,
		web.Link{To: v.PathQuery(v.Path("work", "new"), f.Pairs()...), Text: "Act on all that match"})
	if slices.Equal(f.State, []client.State{client.Dead}) {
		dead := f.Filter
		dead.State = nil
		d.Bulk = append(d.Bulk,
			web.Link{To: v.PathQuery(v.Path("dead"), dead.Pairs()...), Text: "Group these dead letters"})
	}
}

// explainEmpty says why the list is empty, and how to find more.
func (d *listData) explainEmpty(v *web.Visit, f *selection, list *client.JobPage) {
	here := v.Path("jobs")
	if len(f.active) == 0 {
		d.Hints = append(d.Hints, "Jobs appear here as soon as they are registered, and stay after they have ended "+
			"for as long as their topic keeps them.")
		if v.Can(access.RegisterJob) {
			d.Widen = append(d.Widen, web.Link{To: v.Path("try"), Text: "Send a test job"})
		}
	}
	if list.NextCursor == "" && f.cursor == "" && len(f.active) > 0 {
		d.Hints = append(d.Hints, "A job must match all filters. Jobs that have ended are removed after the time "+
			"that their topic keeps them.")
	}
	for i, p := range f.active {
		if len(f.active) > 1 {
			d.Widen = append(d.Widen, web.Link{To: v.PathQuery(here, f.pairs(i)...), Text: "Without " + p.words()})
		}
	}
	if f.Kind == "" && len(f.active) > 0 {
		d.Widen = append(d.Widen, web.Link{
			To:   v.PathQuery(here, append(f.pairs(-1), "kind", "all")...),
			Text: "Look also at callbacks and other jobs that Ringback made",
		})
	}
	if len(f.active) > 0 {
		d.Widen = append(d.Widen, web.Link{To: here, Text: "All jobs"})
	}
}
