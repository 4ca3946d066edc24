package jobpages

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/filter"
	"github.com/ringback/ringback/console/web"
)

// held returns what a job waits for.
func held(until time.Time) *client.WaitingFor {
	return &client.WaitingFor{
		Kind: "obstacle_of_tomorrow", Obstacle: client.Obstacle{Until: until, Facts: "Lane a is full."},
	}
}

func TestLead_SaysWhyAJobDoesNotRun(t *testing.T) {
	now := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	until := now.Add(59*time.Minute + 51*time.Second)
	failed := []client.Attempt{{AttemptSummary: client.AttemptSummary{
		N: 1, Kind: "attempt", Status: 503,
		Verdict: "again", DurationMS: new(31.2),
	}}}
	refused := []client.Attempt{{AttemptSummary: client.AttemptSummary{
		N: 1, Kind: "attempt", ErrorClass: "refused",
		Verdict: "again", DurationMS: new(0.2),
	}}}
	for _, c := range []struct {
		job  client.JobInfo
		want string
	}{
		{client.JobInfo{
			State: client.Scheduled, RetriesLeft: new(3),
			WaitingFor: &client.WaitingFor{Kind: "due", Obstacle: client.Obstacle{Until: until}},
		}, "Attempt 1 of 4 is due in 59m51s."},
		{
			client.JobInfo{
				State: client.Scheduled, RetriesLeft: new(1), AttemptsMade: 1, Attempts: failed,
				WaitingFor: &client.WaitingFor{Kind: "retry", Obstacle: client.Obstacle{Until: until}},
			},
			"Attempt 2 of 3 follows in 59m51s; attempt 1 was answered 503 after 31ms.",
		},
		{
			client.JobInfo{
				State: client.Scheduled, RetriesLeft: new(1), AttemptsMade: 1, Attempts: failed,
				WaitingFor: &client.WaitingFor{Kind: "end", Obstacle: client.Obstacle{
					Until: until, Facts: "Its max_age is 1h.",
				}},
			},
			"Dead in 59m51s, without another attempt; attempt 1 was answered 503 after 31ms. Its max_age is 1h.",
		},
		{
			client.JobInfo{State: client.Ready, RetriesLeft: new(1), AttemptsMade: 1, WaitingFor: held(until)},
			"Attempt 2 of 3 waits 59m51s. Lane a is full.",
		},
		{
			client.JobInfo{State: client.Ready, ExpiresAt: now.Add(20 * time.Minute), WaitingFor: held(until)},
			"Attempt 1 waits 59m51s; the job expires in 20m, before that. Lane a is full.",
		},
		{client.JobInfo{State: client.Ready, WaitingFor: held(time.Time{})}, "Attempt 1 waits. Lane a is full."},
		{client.JobInfo{State: client.Ready, WaitingFor: held(now)}, "Attempt 1 waits. Lane a is full."},
		{client.JobInfo{State: client.Ready, AttemptsMade: 1, Attempts: refused, NextAttemptAt: now}, "Attempt 2 is " +
			"due now; attempt 1 got no answer: the connection was refused."},
		{client.JobInfo{State: client.Running, RetriesLeft: new(2), AttemptsMade: 1}, "Attempt 2 of 4 runs now."},
		{client.JobInfo{State: client.Running, CancelRequested: true}, "Attempt 1 runs now. The job is cancelled " +
			"unless it succeeds."},
		{client.JobInfo{State: client.Dead, Reason: "expired", EndedAt: now.Add(-time.Hour)}, "Died 1h ago, because " +
			"its expiry passed, or would have before the next attempt."},
		{
			client.JobInfo{
				State: client.Cancelled, AttemptsMade: 2, EndedAt: now.Add(-time.Hour),
				Events: []client.Event{{Kind: "cancelled", Actor: "mia"}, {Kind: "edited", Actor: "otto"}},
			},
			"Cancelled 1h ago by mia, after 2 attempts.",
		},
		{client.JobInfo{State: client.Cancelled, EndedAt: now}, "Cancelled just now, before an attempt."},
		{client.JobInfo{State: client.Delivered, EndedAt: now}, "Delivered just now."},
	} {
		c.job.Topic, c.job.Lane = "pay", "pay.example:443"
		got, _ := leadOf(&c.job, now)
		require.Equal(t, c.want, got)
	}
}

func TestRow_SaysHowLongAnAttemptHasBeenDue(t *testing.T) {
	now := time.Date(2030, 1, 31, 8, 0, 0, 0, time.UTC)
	j := &client.JobInfo{State: client.Ready, NextAttemptAt: now.Add(-time.Second / 2)}
	require.Equal(t, "due now", newRow(j, now).Next)
	require.Equal(t, "due for 3s", newRow(j, now.Add(3*time.Second)).Next)
}

func TestJob_LinksTheAPIWhereALinkLeadsToTheJob(t *testing.T) {
	j := &client.JobInfo{ID: "a", URL: "https://fine.example/", Method: "POST", Body: []byte("{}")}
	v := &web.Visit{Who: &client.Principal{Role: "admin", Bodies: true}, Base: ".", Root: "..", Namespace: "default"}
	require.Equal(t, "../../v1/jobs/a", newJobData(v, j).RawTo)
	v.Namespace = "shop" // which is a header of requests
	require.Empty(t, newJobData(v, j).RawTo)
}

func TestJob_RebuildsOnlyWhatIsLive(t *testing.T) {
	j := &client.JobInfo{ID: "a", URL: "https://fine.example/", Method: "POST", Body: []byte("{}")}
	v := &web.Visit{Who: &client.Principal{Role: "admin", Bodies: true}, Base: "."}
	require.NotEmpty(t, newJobData(v, j).Curl)
	v.Live = true
	d := newJobData(v, j)
	require.NotEmpty(t, d.Lead)
	require.Empty(t, d.Curl)
	require.Empty(t, d.Body.Text)
}

func TestOutcome_SaysWhatCameOfAnAttempt(t *testing.T) {
	for want, a := range map[string]client.AttemptSummary{
		"was answered 200 after 20ms": {Status: 200, DurationMS: new(20.0), Verdict: "delivered"},
		"was answered 200 after 10s, but the timeout expired while reading the " +
			"answer": {Status: 200, DurationMS: new(10000.0), ErrorClass: "timeout_body"},
		"was lost: its process reported no result, so the request may have been made": {Kind: "lost"},
		"failed after 1s: the consumer reported a " +
			"failure": {ErrorClass: "consumer", DurationMS: new(1000.0)},
		"was delivered after 1s": {Verdict: "delivered", DurationMS: new(1000.0)},
		"got no answer: the timeout expired before an " +
			"answer": {ErrorClass: "timeout_headers", DurationMS: new(10000.0)},
		"got no answer: a_class_of_tomorrow": {ErrorClass: "a_class_of_tomorrow"},
	} {
		require.Equal(t, want, outcome(&client.Attempt{AttemptSummary: a}))
	}
}

func TestTimeline_IsInTheOrderOfTime(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2030, 1, 31, 8, 0, s, 0, time.UTC) }
	j := &client.JobInfo{
		Lane: "pay.example:443", State: client.Scheduled, CreatedAt: at(0), AttemptsMade: 3, NextAttemptAt: at(50),
		ExpiresAt: at(59), WaitingFor: held(at(55)), Attempts: []client.Attempt{
			{AttemptSummary: client.AttemptSummary{N: 2, StartedAt: at(10), Status: 500, Verdict: "again"}},
			{AttemptSummary: client.AttemptSummary{N: 3, StartedAt: at(30), Kind: "lost"}},
		},
		Events: []client.Event{
			{At: at(0), Kind: "created", Actor: "shop"},
			{At: at(20), Kind: "edited", Fields: []string{"url", "retries"}, Actor: "mia"},
		},
	}
	var texts []string
	for _, e := range timeline(j) {
		texts = append(texts, e.Text)
	}
	require.Equal(t, []string{
		"registered by shop", "1 earlier attempt no longer kept", "attempt 2 was answered 500",
		"edited: url, retries by mia",
		"attempt 3 was lost: its process reported no result, so the request may have been made",
		"attempt 4", "expires: no attempt starts later",
	}, texts)
	next := timeline(j)[5]
	require.Equal(t, at(55), next.At)
	const why = "lane a is full"
	require.Equal(t, why, next.Why)

	j.ExpiresAt = at(54)
	all := timeline(j)
	require.Equal(t, entry{At: at(54), Class: "next", Text: "expires before attempt 4 can start", Why: why},
		all[len(all)-1])
	require.Len(t, all, len(texts)-1, "no attempt follows")
}

func TestTimeline_SaysWhetherACancellationEndedTheJob(t *testing.T) {
	at := func(s int) time.Time { return time.Date(2030, 1, 31, 8, 0, s, 0, time.UTC) }
	delivered := client.Attempt{AttemptSummary: client.AttemptSummary{
		N: 1, StartedAt: at(1),
		Status: 200, Verdict: "delivered",
	}}
	failed := client.Attempt{AttemptSummary: client.AttemptSummary{
		N: 1, StartedAt: at(1),
		Status: 500, Verdict: "cancelled",
	}}
	for _, c := range []struct {
		job  client.JobInfo
		want []string
	}{
		{client.JobInfo{State: client.Cancelled, EndedAt: at(5)}, []string{"cancelled by mia"}},
		{client.JobInfo{State: client.Running, CancelRequested: true}, []string{
			"cancellation requested by mia", "attempt 1 runs now",
		}},
		{
			client.JobInfo{State: client.Delivered, EndedAt: at(7), Attempts: []client.Attempt{delivered}},
			[]string{"attempt 1 was answered 200", "cancellation requested by mia"},
		},
		{
			client.JobInfo{State: client.Cancelled, EndedAt: at(7), Attempts: []client.Attempt{failed}},
			[]string{"attempt 1 was answered 500", "cancellation requested by mia", "cancelled"},
		},
	} {
		c.job.CreatedAt, c.job.Events = at(0), []client.Event{{At: at(5), Kind: "cancelled", Actor: "mia"}}
		var texts []string
		for _, e := range timeline(&c.job)[1:] {
			texts = append(texts, e.Text)
		}
		require.Equal(t, c.want, texts)
	}
}

func TestBudget_SaysWhatASearchLookedAt(t *testing.T) {
	page := func(n int) *client.JobPage {
		return &client.JobPage{Items: make([]client.JobInfo, n), Scanned: 5000, NextCursor: "c"}
	}
	first, later := &selection{Form: new(filter.Form)}, &selection{cursor: "x"}
	require.Equal(t, "Looked at 5,000 jobs, 12 match so far.", budget(first, page(12)))
	require.Equal(t, "Looked at 5,000 more jobs, none matches so far.", budget(later, page(0)))
	first.Topic, first.Status = "pay", 503
	require.Equal(t, "12 jobs match so far: jobs of topic pay, last answered 503.", lead(first, page(12), nil))
	require.Equal(t, "No job matches so far: jobs of topic pay, last answered 503.", lead(first, page(0), nil))

	v := &web.Visit{Request: httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/jobs?topic=pay&status=503",
		nil), Who: &client.Principal{}, Base: "."}
	short, full := new(listData), new(listData)
	short.fill(v, first, page(12), nil)
	require.Contains(t, short.Pager.GoOn, "search=long", "goes on for longer")
	require.Contains(t, short.Pager.GoOn, "cursor=c")
	require.Empty(t, short.Pager.Next)
	full.fill(v, first, page(pageSize), nil)
	require.Empty(t, full.Pager.GoOn)
	require.NotContains(t, full.Pager.Next, "search=long")
	require.Contains(t, full.Pager.Next, "cursor=c")
}
