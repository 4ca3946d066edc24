package deadpages

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/web"
)

func TestLeadOf_SaysHowFarWorkIs(t *testing.T) {
	began := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	now := began.Add(13 * time.Second)
	for want, w := range map[string]client.Work{
		"Reviving jobs: 0 done.": {Action: "revive", State: "running"},
		"Reviving at least 112 jobs at 20/s: 48 done. Begun by mia.": {
			Action: "revive", State: "running", Matched: 112, Done: 48, Rate: "20/s", CreatedBy: "mia",
		},
		"Reviving 280 jobs at 10/s, 5/s in each lane: 130 done, 2 failed, 1 skipped; about 15s left. Begun by mia.": {
			Action: "revive", State: "running", Total: new(int64(280)), Done: 130, Failed: 2, Skipped: 1,
			Rate: "10/s", LaneRate: "5/s", ETAAt: now.Add(14_100 * time.Millisecond), CreatedBy: "mia",
		},
		"Deleting 1 job: 0 " +
			"done.": {Action: "purge", State: "running", Total: new(int64(1)), ETAAt: now},
		"Cancelling 4 jobs: 4 " +
			"done.": {Action: "cancel", State: "running", Total: new(int64(2)), Matched: 3, Done: 4},
		"No job matched.": {
			Action: "run", State: "done", Total: new(int64(0)), EndedAt: began,
		},
		"1 of 1 job was made due. It took 5s. Due is not delivered: each job is sent as its lane and topic allow, " +
			"and its page shows it.": {
			Action: "run", State: "done", Total: new(int64(1)), Done: 1, EndedAt: began.Add(5 * time.Second),
		},
		"7 of 9 jobs were edited, 2 " +
			"skipped.": {Action: "edit", State: "done", Total: new(int64(9)), Done: 7, Skipped: 2, EndedAt: began},
		"Stopped after 7s. 0 jobs were " +
			"deleted.": {Action: "purge", State: "stopped", EndedAt: began.Add(7 * time.Second)},
		"This work failed: it cannot be read from the store.": {State: "failed"},
		"resting: 1 done.": {Action: "melt", State: "resting", Done: 1},
	} {
		w.CreatedAt = began
		text, _ := leadOf(&w, now)
		require.Equal(t, want, text)
	}
}

// A page may have no rows though there are more: a token that is restricted to topics sees few works, which are looked
// for in a bounded time.
func TestListLead_SaysNoMoreThanThePageShows(t *testing.T) {
	some := []client.Work{{State: "running", Action: client.ActionPurge}}
	for _, c := range []struct {
		path, next, want string
		running          []client.Work
	}{
		{"/work", "", "No work is running.", nil},
		{"/work", "c", "No work was found yet, and there is more to look at.", nil},
		{"/work", "c", "At least 1 work is running: deleting jobs: 0 done.", some},
		{"/work?cursor=b", "", "More work that is running, and older work that has ended.", some},
	} {
		v := &web.Visit{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, http.NoBody)}
		require.Equal(t, c.want,
			listLead(v, &client.Page[client.Work]{Items: c.running, NextCursor: c.next}, len(c.running)))
	}
}

func TestWhatOf_SaysWhichJobs(t *testing.T) {
	for want, w := range map[string]client.Work{
		"Revive all dead " +
			"jobs": {Action: "revive", Where: json.RawMessage(`{"all": true}`)},
		"Delete all dead jobs of every " +
			"kind": {Action: "purge", Where: json.RawMessage(`{"kind": "all"}`)},
		"Run 3 jobs by their ids": {
			Action: "run", Where: json.RawMessage(`{"ids_count": 3}`),
		},
		"Cancel ready jobs of topic pay": {
			Action: "cancel", Where: json.RawMessage(`{"topic": "pay", "state": "ready"}`),
		},
		"Edit scheduled, ready or running jobs of topic pay": {
			Action: "edit", Where: json.RawMessage(`{"topic": "pay"}`),
		},
		"Unknown work":           {State: "failed"},
		"melt jobs of topic pay": {Action: "melt", Where: json.RawMessage(`{"topic": "pay"}`)},
	} {
		text, _ := whatOf(&w)
		require.Equal(t, want, text)
	}
}

// A later version may have stored what this one cannot read: the other rows are shown.
func TestRowOf_OfAnUnknownSelection(t *testing.T) {
	w := client.Work{
		ID: "w1", Action: client.ActionPurge, State: "running", Done: 12,
		Where: json.RawMessage(`{"status": "5xx"}`),
	}
	row := rowOf(new(web.Visit), &w)
	require.Equal(t, "Delete jobs: unknown selection", row.What)
	require.Equal(t, "12 jobs", row.Progress.Text)
	_, s := whatOf(&w)
	require.Nil(t, s)
	require.Empty(t, jobLinks(new(web.Visit), &w, s))
}

// The jobs do not match any more what the work has changed.
func TestJobLinks_SelectTheJobsAsTheyAre(t *testing.T) {
	const now, dead = "The jobs as they are now", "What is dead now and matches"
	for _, c := range []struct {
		action, where, change string
		want                  []web.Link
	}{
		{"revive", `{"reason": "exhausted", "status": 503, "ended_before": "2030-01-31T08:00:00Z"}`, `null`, []web.Link{
			{To: "./dead?reason=exhausted&status=503", Text: dead},
		}},
		{"revive", `{"topic": "pay", "state": "delivered", "ended_before": ` +
			`"2030-01-31T08:00:00Z"}`, `null`, []web.Link{{To: "./jobs?topic=pay", Text: now}}},
		{"revive", `{"topic": "pay", "state": "delivered,dead"}`, `null`, []web.Link{
			{To: "./jobs?topic=pay", Text: now}, {To: "./dead?topic=pay", Text: dead},
		}},
		{"purge", `{"topic": "pay", "state": "delivered"}`, `null`, nil},
		{"purge", `{"all": true}`, `null`, []web.Link{{To: "./dead", Text: dead}}},
		{"edit", `{"topic": "pay", "label": ` +
			`"a:b"}`, `{"labels": {"a": "c"}}`, []web.Link{{To: "./jobs?topic=pay", Text: now}}},
		{"edit", `{"topic": "pay", "label": ` +
			`"a:b"}`, `{"timeout": "5s"}`, []web.Link{{To: "./jobs?label=a%3Ab&topic=pay", Text: now}}},
		{"edit", `{"label": "a:b", "created_before": "2030-01-31T08:00:00Z"}`, `{"labels": {}}`, nil},
		{"run", `{"kind": "registered", "created_before": "2030-01-31T08:00:00Z"}`, `null`, nil},
		{"cancel", `{"topic": "pay"}`, `null`, []web.Link{
			{To: "./jobs?state=cancelled&topic=pay", Text: "Cancelled jobs"},
			{To: "./jobs?state=scheduled%2Cready%2Crunning&topic=pay", Text: "Unfinished jobs that match"},
		}},
	} {
		w := client.Work{
			Action: c.action, State: "done", Where: json.RawMessage(c.where),
			Change: json.RawMessage(c.change),
		}
		_, s := whatOf(&w)
		require.Equal(t, c.want, jobLinks(&web.Visit{Base: "."}, &w, s), "%s %s", c.action, c.where)
	}
}

func TestStopNotice_SaysWhetherTheWorkIsStopped(t *testing.T) {
	ended := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	for want, w := range map[string]client.Work{
		"The work stops after the step in progress. 12 revived so far.": {State: "running", Done: 12},
		"The work is stopped. 12 revived.":                              {State: "stopped", Done: 12, EndedAt: ended},
		"The work had ended before.":                                    {State: "done", Done: 12, EndedAt: ended},
	} {
		w.Action = client.ActionRevive
		require.Equal(t, want, stopAnswer("", &w).Notice.Text)
	}
}

func TestProgressOf_SaysWhatIsKnown(t *testing.T) {
	for want, w := range map[string]client.Work{
		"12 jobs":                {Done: 12},
		"1 job":                  {Skipped: 1},
		"12 of at least 30 jobs": {Done: 12, Matched: 30},
		"12 of 30 jobs":          {Done: 12, Total: new(int64(30))},
	} {
		require.Equal(t, want, progressOf(&w).Text)
	}
}

func TestDeadLead_AgreesWithTheNumber(t *testing.T) {
	for _, c := range []struct {
		total, first    int64
		exact, filtered bool
		want            string
	}{
		{1, 1, true, false, "1 job is dead, at a:443: answered 503."},
		{1, 1, true, true, "1 dead job matches, at a:443: answered 503."},
		{3, 3, true, false, "3 jobs are dead, all of them at a:443: answered 503."},
		{3, 2, true, true, "3 dead jobs match; 2 of them at a:443: answered 503."},
		{2, 1, true, false, "2 jobs are dead; 1 of them at a:443: answered 503."},
		{20, 7, false, false, "At least 20 jobs are dead; 7 of them at a:443: answered 503."},
		{50, 1, false, true, "At least 50 dead jobs match; 1 of them at a:443: answered 503."},
		{1, 1, false, true, "At least 1 dead job matches; 1 of them at a:443: answered 503."},
	} {
		n := deadNumbers{Total: c.total, First: c.first, Exact: c.exact, Filtered: c.filtered}
		require.Equal(t, c.want, n.lead("at a:443: answered 503"))
	}
}
