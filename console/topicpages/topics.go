package topicpages

import (
	"errors"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/recent"
	"github.com/ringback/ringback/console/web"
	"github.com/ringback/ringback/console/words"
	"github.com/ringback/ringback/internal/access"
)

const (
	// pageSize is the number of rows of a list: as many as counters are shared of.
	pageSize = recent.StatsTopics
	// maxOwn bounds the topics of a restricted token that are looked up: each costs a request, also one that does not
	// exist.
	maxOwn = 20
	// lateAfter is how late the oldest job of a topic is before the page speaks of it.
	lateAfter = time.Minute
)

// topicList is the data of the page Topics.
type topicList struct {
	Lead      lead
	Rows      []topicRow
	CountedAt time.Time
	Pager     web.Pager
	// Patterns are the topics of a restricted token, which may not list topics.
	Patterns []string
}

// lead is the first sentence of a page, with the class that says how things are: ok, warn, bad or nothing.
type lead struct{ Class, Text string }

// worsen sets the class to warn, unless it is bad.
func (l *lead) worsen() {
	if l.Class != "bad" {
		l.Class = "warn"
	}
}

// topicRow is a topic in the list.
type topicRow struct {
	*client.Topic
	client.Counts

	Hour *recent.Attempts
}

// Waiting is the number of jobs that wait, due or not.
func (r topicRow) Waiting() int64 { return r.Scheduled + r.Ready }

// Class says how bad it is that receivers fail: warn, or bad if most attempts of the last hour failed; empty: none
// fails.
func (r topicRow) Class() string { return failingClass(r.LanesFailing, r.Hour) }

func failingClass(lanes int64, hour *recent.Attempts) string {
	switch {
	case lanes == 0:
		return ""
	case hour.FailMost():
		return "bad"
	default:
		return "warn"
	}
}

// late returns how late the oldest job is; zero: none is.
func (r topicRow) late(now time.Time) time.Duration {
	if r.OldestDueAt.IsZero() {
		return 0
	}
	return max(0, now.Sub(r.OldestDueAt))
}

// Due says when the oldest job is due.
func (r topicRow) Due(now time.Time) string { return dueText(r.OldestDueAt, now) }

// dueText says in a cell of a table when a job is due; empty: there is none.
func dueText(at, now time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case now.Sub(at) >= time.Second:
		return words.Duration(now.Sub(at).Truncate(time.Second)) + " late"
	case at.After(now):
		return words.In(at, now)
	default:
		return "now"
	}
}

// showTopics answers with the page Topics: a page of the topics, in order of name.
func (p *pages) showTopics(v *web.Visit) (web.Answer, error) {
	if name := v.Query("open"); name != "" {
		return &web.Redirect{To: v.Path("topics", name)}, nil
	}
	var data topicList
	var err error
	if v.CanAll(access.ReadTopic) {
		err = data.read(v, p.answers)
	} else {
		err = data.readOwn(v)
	}
	if err != nil {
		return nil, err
	}
	return &web.Page{View: "topics", Title: "Topics", Section: section, Data: data}, nil
}

// read reads a page of the settings of all topics, and their counts. Both lists are in order of name, and each topic
// with counts is in the list of settings, so one cursor serves both.
func (d *topicList) read(v *web.Visit, answers *recent.Answers) error {
	ctx, o := v.Request.Context(), client.PageOptions{Cursor: v.Query("cursor"), Limit: pageSize}
	topics, err := v.API.TopicsPage(ctx, o)
	if err != nil {
		return err
	}
	var stats *client.Stats
	d.CountedAt = v.Now
	// as other pages show them: counting takes long where many lanes have unfinished jobs
	if o.Cursor == "" && v.CanAll(access.ReadStats) {
		stats, d.CountedAt, err = answers.Stats(ctx, v.Namespace, v.API)
	} else {
		stats, err = v.API.StatsPage(ctx, o)
	}
	if err != nil {
		return err
	}
	counts := make(map[string]client.Counts, len(stats.Items))
	for _, t := range stats.Items {
		counts[t.Topic] = t.Counts
	}
	names := make([]string, len(topics.Items))
	for i := range topics.Items {
		names[i] = topics.Items[i].Name
	}
	history, err := answers.History(ctx, v.Namespace, v.API, client.HistoryQuery{Topics: names, By: "minutes"})
	if err != nil {
		return err
	}
	for i := range topics.Items {
		t := &topics.Items[i]
		d.Rows = append(d.Rows, topicRow{t, counts[t.Name], recent.LastHour(&history.Items[i].Buckets, v.Now)})
	}
	d.Pager = v.Pager(topics.NextCursor)
	d.Lead = newTopicsLead(d.Rows, d.Pager.First == "" && d.Pager.Next == "", &stats.Totals, d.CountedAt)
	return nil
}

// readOwn reads the topics that a restricted token names. Those of patterns that end with * cannot be listed.
func (d *topicList) readOwn(v *web.Visit) error {
	ctx := v.Request.Context()
	d.Patterns, d.CountedAt = v.Who.Topics, v.Now
	whole, asked := true, 0
	for _, name := range v.Who.Topics {
		if strings.HasSuffix(name, "*") || asked == maxOwn {
			whole = false
			continue
		}
		asked++
		t, err := v.API.GetTopic(ctx, name)
		if errors.Is(err, client.ErrNotFound) {
			continue
		}
		if err != nil {
			return err
		}
		stats, err := v.API.TopicStatsPage(ctx, name, client.PageOptions{Limit: 1})
		if err != nil {
			return err
		}
		history, err := v.API.TopicHistory(ctx, name)
		if err != nil {
			return err
		}
		d.Rows = append(d.Rows, topicRow{t, stats.Counts, recent.LastHour(&history.Buckets, v.Now)})
	}
	d.Lead = lead{Text: words.Sentence("Your token sees only the topics", words.List(v.Who.Topics))}
	if len(d.Rows) > 0 {
		seen := newTopicsLead(d.Rows, whole, new(client.Counts), d.CountedAt)
		d.Lead = lead{seen.Class, d.Lead.Text + " " + seen.Text}
	}
	return nil
}

// newTopicsLead says which receivers fail, and what holds back the jobs of a page's topics. whole reports whether there
// are no others, and totals are the counts of all topics.
func newTopicsLead(rows []topicRow, whole bool, totals *client.Counts, now time.Time) lead {
	if len(rows) == 0 {
		if whole {
			return lead{Text: "There are no topics yet."}
		}
		return lead{Text: "There are no more topics."}
	}
	var paused, broken, late []string
	var open, idle int64
	for _, r := range rows {
		switch {
		case r.Paused:
			paused = append(paused, r.Name)
		case r.late(now) >= lateAfter:
			late = append(late, r.Name)
		}
		switch {
		case r.Waiting()+r.Running == 0:
			idle += r.BreakersOpen // which hold nothing back
		case r.BreakersOpen > 0:
			broken = append(broken, r.Name)
			open += r.BreakersOpen
		}
	}
	l := lead{Class: "ok"}
	clauses := failingTopics(rows, totals.LanesFailing, &l)
	switch n := len(paused); {
	case n > 0 && len(rows) == 1:
		l.worsen()
		clauses = append(clauses, ofTopics(1, whole)+" is paused")
	case n > 0:
		l.worsen()
		clauses = append(clauses, words.Number(int64(n))+" of "+ofTopics(len(rows), whole)+
			words.Verb(int64(n), " is", " are")+" paused")
	}
	if len(late) > 0 {
		l.worsen()
		clauses = append(clauses, "jobs of "+words.List(late)+" are more than a minute late")
	}
	if open > 0 {
		l.Class = "bad"
		clauses = append(clauses,
			"in "+words.List(broken)+" "+words.CountVerb(open, "breaker", "is", "are")+" open or half open")
	}
	if elsewhere := totals.BreakersOpen - open - idle; elsewhere > 0 && !whole {
		l.worsen() // whether jobs wait for those elsewhere is not known
		clauses = append(clauses,
			words.CountVerb(elsewhere, "breaker", "is", "are")+" open or half open in topics on other pages")
	}
	clauses = append(clauses, diedTopics(rows, &l)...)
	if len(clauses) == 0 {
		clauses = []string{ofTopics(len(rows), whole) + ": no job is more than a minute late"}
	}
	l.Text = words.Sentence(words.UpperFirst(strings.Join(clauses, "; ")))
	return l
}

// failingTopics says in which topics receivers fail, of all lanes that do; nil: none fails.
func failingTopics(rows []topicRow, all int64, l *lead) (clauses []string) {
	var names []string
	var lanes int64
	for _, r := range rows {
		if r.LanesFailing > 0 {
			names, lanes = append(names, r.Name), lanes+r.LanesFailing
			l.worsen()
			if r.Class() == "bad" {
				l.Class = "bad"
			}
		}
	}
	if lanes > 0 {
		clauses = append(clauses, failingText(lanes)+" in "+words.List(names))
	}
	if elsewhere := all - lanes; elsewhere > 0 {
		l.worsen()
		clauses = append(clauses, failingText(elsewhere)+" in topics on other pages")
	}
	return clauses
}

// diedTopics says of which topics jobs died in the last hour; nil: of none.
func diedTopics(rows []topicRow, l *lead) []string {
	var names []string
	var jobs int64
	for _, r := range rows {
		if n := r.Hour.Sum().Dead; n > 0 {
			names, jobs = append(names, r.Name), jobs+n
			l.worsen()
		}
	}
	if jobs == 0 {
		return nil
	}
	return []string{words.Count(jobs, "job") + " of " + words.List(names) + " died in the last hour"}
}

// failingText says how many receivers fail.
func failingText(lanes int64) string {
	return words.Verb(lanes, "the receiver of ", "the receivers of ") + words.CountVerb(lanes, "lane", "fails", "fail")
}

// ofTopics names the topics that a page has.
func ofTopics(n int, whole bool) string {
	switch {
	case whole && n == 1:
		return "the only topic"
	case whole:
		return words.Count(int64(n), "topic")
	case n == 1:
		return "the only topic of this page"
	}
	return "the " + words.Count(int64(n), "topic") + " of this page"
}
