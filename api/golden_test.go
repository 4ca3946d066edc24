package api

import (
	"bytes"
	"encoding/base64"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

var update = flag.Bool("update", false, "write the golden answers anew")

// leasedJob returns a job with a lease.
func leasedJob(j job.Job, token store.Token) store.LeasedJob {
	l := store.ClientLease{ID: j.ID, Queue: j.Queue, Token: token, LeasedAt: epoch, Attempts: j.Attempts}
	return store.LeasedJob{
		ClaimedJob: store.ClaimedJob{Job: j, Lease: token}, ClientLease: l,
		Until: epoch.Add(time.Minute),
	}
}

// fullService is a service with every field that a response can have.
func fullService() *fake {
	f := newFake()
	spec := job.Spec{
		ID: "close-4711", Queue: job.Queue{Namespace: "default", Topic: "order.close", Lane: "customer-42"},
		URL: "https://shop.example/hooks/close", Method: "POST",
		Header:      map[string][]string{"X-Tenant": {"42"}, "X-Many": {"1", "2"}, "Authorization": {"Bearer hunter2"}},
		ContentType: "application/json", BodyKind: job.BodyJSON, Body: []byte(`{"order":  4711, "note": "<é>"}`),
		Labels: map[string]string{"customer": "42", "say": "\"ü\"\n"},
		Terms: policy.Terms{
			Ladder: policy.Ladder{15 * time.Second, 3 * time.Minute}, Retries: new(9), Timeout: 10 * time.Second,
			OnDelivered: &policy.Callback{URL: "https://shop.example/told"},
			OnDead: &policy.Callback{
				URL: "https://shop.example/told", Method: "PUT",
				Headers: map[string][]string{"Authorization": {"Bearer hunter2"}, "X-A": {"1"}},
				Retries: new(5), Timeout: time.Second, Include: []string{"body", "query"},
			},
		},
	}
	f.jobs["dead"] = job.Job{
		Spec: spec,
		Progress: job.Progress{
			State: job.Dead, Reason: policy.ReasonExhausted, CreatedAt: epoch, DueAt: epoch, FirstDueAt: epoch,
			ExpiresAt:  epoch.Add(72 * time.Hour),
			FinishedAt: epoch.Add(time.Hour), Version: 3, Generation: 1, Attempts: 12, FailedAttempts: 3, Status: 503,
		},
		CallbackID: "rb:close-4711:1:o71n66bf",
		History: []job.Attempt{
			{N: 11, Kind: job.KindLost, StartedAt: epoch, Process: "7K2QJ7HNTA"},
			{
				N: 12, Kind: job.KindAttempt, StartedAt: epoch.Add(time.Second), Duration: 12_600 * time.Microsecond,
				Status: 503,
				Phases: policy.Phases{
					DNS: 400 * time.Microsecond, Connect: time.Millisecond,
					TLS: 3 * time.Millisecond, FirstByte: 8 * time.Millisecond,
				},
				RemoteAddr: "192.0.2.7:443", Process: "web-1/7K2QJ7HNTA",
				Verdict: "again", Header: map[string][]string{"Content-Type": {"text/plain"}, "Set-Cookie": {"s=1"}},
				Body: []byte("busy\n"),
			},
			{
				N: 13, Kind: job.KindAttempt, StartedAt: epoch.Add(2 * time.Second), Duration: 10 * time.Second,
				Verdict: "dead",
				Reason:  policy.ReasonExhausted, Error: "no answer in time", ErrorClass: policy.ClassTimeoutHeaders,
			},
			{N: 14, Kind: job.KindAttempt, StartedAt: epoch, Status: 200, Verdict: "delivered", Body: []byte{0xff}},
		},
		Events: []job.Event{{At: epoch, Kind: job.EventEdited, Fields: []string{"url"}, Actor: "jan"}},
	}
	f.jobs["rb:dead:1"] = job.Job{
		Spec: job.Spec{
			ID: "rb:dead:1", Queue: job.Queue{Topic: job.CallbackTopic, Lane: "shop.example:443"},
			URL: "https://shop.example/told", Method: "POST",
			ContentType: "application/json", BodyKind: job.BodyJSON, Kind: job.KindCallback, Origin: "dead",
			Labels: map[string]string{job.LabelTopic: "order.close"},
			Body: []byte(`{"type":"job.dead","job":{"id":"dead","headers":{"Authorization":["Bearer ` +
				`hunter2"],"X-Tenant":["42"]},"body":{"order":  4711}},` +
				`"attempt":{"status":503,"response_headers":{"Set-Cookie":"s=hunter2","X-B":["1","2"]}}}`),
		},
		Progress: job.Progress{State: job.Scheduled, CreatedAt: epoch, DueAt: epoch, Version: 1},
	}
	f.jobs["running"] = job.Job{
		Spec: job.Spec{
			ID: "running", Queue: job.Queue{Topic: "default", Lane: "default"}, Method: "GET",
			BodyKind: job.BodyText, Body: []byte("hi\n"),
		},
		Progress: job.Progress{
			State: job.Running, CreatedAt: epoch, DueAt: epoch, Version: 1,
		},
	}
	f.jobs["plain"] = job.Job{
		Spec: job.Spec{
			ID: "plain", Queue: job.Queue{Topic: "default", Lane: "a.example:80"}, Method: "POST",
			BodyKind: job.BodyBase64, Body: []byte{0, 255},
		},
		Progress: job.Progress{State: job.Scheduled, CreatedAt: epoch, DueAt: epoch.Add(30 * time.Minute), Version: 1},
	}
	terms := policy.Builtin().Terms(policy.Terms{})
	f.explanations = map[string]*job.Explanation{
		"running": {Effective: &job.Effective{Terms: terms}},
		"plain": {
			Effective: &job.Effective{URL: "https://a.example/hook", Terms: terms, RetriesLeft: 8},
			WaitingFor: &job.Obstacle{
				Code: job.ObstacleRetry, Until: epoch.Add(30 * time.Minute),
				Facts: "Waits after failed attempt 1 of 10", Hint: ": POST /v1/jobs/plain/run to run it now",
				Remedy: job.Remedy{Action: job.RemedyRun, Topic: "default", Lane: "a.example:80", ID: "plain"},
			},
		},
		"rb:dead:1": {WaitingFor: &job.Obstacle{
			Code: job.ObstacleTopicPaused, Facts: "The policy of topic _callbacks is not readable",
			Remedy: job.Remedy{Action: job.RemedyPut, Topic: "_callbacks"},
		}},
	}
	f.jobs["durable"] = job.Job{
		Spec:       job.Spec{ID: "durable", Queue: job.Queue{Topic: "default", Lane: "default"}, Method: "POST"},
		Progress:   job.Progress{State: job.Scheduled, CreatedAt: epoch, DueAt: epoch, Version: 1},
		Durability: &job.Durability{Replicas: 1, Synced: true},
	}
	f.leased = []store.LeasedJob{
		leasedJob(f.jobs["dead"], "7K2QJ7HNTAAAAAAAAAAAAAAAA2"),
		leasedJob(f.jobs["plain"], "7K2QJ7HNTAAAAAAAAAAAAAAAA3"),
	}
	f.topics["written"] = store.Topic{Name: "written", Durability: &job.Durability{Replicas: 1}}
	f.page = store.Page{
		Jobs: []job.Job{f.jobs["dead"], f.jobs["plain"]}, More: true, Scanned: 5,
		Reached: store.Position{Topic: "order.close", Lane: "a", At: 1, Tie: "7"},
	}
	f.groups = store.Groups{Exact: true, Scanned: 17, Groups: []store.Group{
		{
			GroupKey: store.GroupKey{Lane: "a", Reason: policy.ReasonExhausted, Status: 503}, Count: 16, ID: "dead",
			EndedAt: epoch,
		},
		{GroupKey: store.GroupKey{Lane: "b", Reason: policy.ReasonExpired}, Count: 1, ID: "dead-2", EndedAt: epoch},
	}}
	f.topics["order.close"] = store.Topic{Name: "order.close", Revision: 7, Policy: policy.Topic{
		URL: "https://shop.example/hooks/close", Headers: map[string][]string{"X-Api-Key": {"hunter2"}, "X-A": {"1"}},
		Paused:   true,
		Pause:    policy.Pause{At: epoch, By: "mia", Note: "the receiver moves"},
		KeepDead: policy.Retention{For: new(36 * time.Hour), MaxBytes: new(int64(1<<20 + 1))},
		Rate:     policy.Rate{Starts: 100, Per: time.Second}, LaneRate: policy.Rate{Starts: 5, Per: 90 * time.Second},
		Success:     policy.Success{BodyEquals: "success", BodyContains: "<ok>"},
		Breaker:     policy.Breaker{Failures: new(3), Open: time.Minute},
		OnDelivered: spec.OnDelivered, OnDead: spec.OnDead,
		OnBacklog: &policy.Backlog{
			Callback: policy.Callback{
				URL:     "https://shop.example/backlog",
				Headers: map[string][]string{"X-Api-Key": {"hunter2"}},
			},
			OlderThan: 5 * time.Minute, MoreThan: 10_000,
		},
		Secrets: []policy.Secret{{
			ID: sharedSecret.ID(), CreatedAt: epoch,
			Value: policy.Sealed(sharedSecret.Text()),
		}},
		ClientCert: &policy.ClientCert{Chain: "-----BEGIN CERTIFICATE-----\n…", Key: "hunter2"},
	}}
	f.scheduled["daily"] = fullSchedule(spec)
	f.own["order.close/a"] = store.Lane{Revision: 8, Settings: policy.Lane{
		URL: "https://a.example/", Headers: map[string][]string{"Authorization": {"Bearer hunter2"}},
		LaneConcurrency: 4,
		LaneRate:        policy.Rate{Starts: 10, Per: time.Second}, Paused: true,
		Pause:   policy.Pause{At: epoch, By: "mia", Note: "ask Mia"},
		Secrets: []policy.Secret{{ID: keySecret.ID(), CreatedAt: epoch, Value: policy.Sealed(keySecret.Text())}},
	}}
	f.own["order.close/b"] = store.Lane{
		Revision: 9, Settings: policy.Lane{URL: "https://b.example/"},
		Durability: &job.Durability{Replicas: 1},
	}
	f.work = store.Work{
		ID: "w1", WorkOrder: store.WorkOrder{Action: store.WorkRevive, Filter: store.Filter{Topic: "order.close"}},
		State: store.WorkRunning, CreatedAt: epoch, Total: 9, ETA: epoch.Add(time.Minute),
		WorkCounts: store.WorkCounts{
			Matched: 5, Done: 2, Failed: 1, Skipped: 1,
			Failures: []store.WorkFailure{{ID: "gone", Reason: "not found"}},
		},
	}
	f.event = store.Event{
		Namespace: "default", ID: "e1", Topic: "order.close", Type: "order.closed",
		Labels: map[string]string{"region": "eu"}, DueAt: epoch, CreatedAt: epoch, CreatedBy: "shop-api",
		Expanded: true,
		Jobs:     2, Lanes: []store.EventLane{
			{Lane: "customer-7", JobID: job.EventJobID("e1", "order.close", "customer-7")},
			{Lane: "customer-8", JobID: job.EventJobID("e1", "order.close", "customer-8")},
		},
		Refused:  []store.EventRefusal{{Lane: "customer-9", Reason: "/url: is required"}},
		Counts:   &store.EventCounts{Delivered: 1, Dead: 1, Exact: true},
		BodyKind: job.BodyJSON, Body: []byte(`{"order":  4711}`),
	}
	f.tokens["5tR1nGs0"] = access.Token{
		ID: "5tR1nGs0", Name: "shop-api", Role: access.Publish, Namespace: "default", Topics: access.Topics{"order.*"},
		Bodies: true,
		Hash:   access.HashOf(fakeToken), CreatedAt: epoch, CreatedBy: access.Root,
		ExpiresAt:  epoch.Add(90 * 24 * time.Hour),
		LastUsedAt: epoch.Truncate(time.Hour),
	}
	f.tokens["zzzzzzzz"] = access.Token{
		ID: "zzzzzzzz", Name: "ops", Role: access.Read, Namespace: "shop",
		CreatedAt: epoch,
	}
	f.topics["seen"] = store.Topic{Name: "seen"}
	f.counts = []store.TopicStats{
		{
			Topic: "order.close", Registered: 21, Scheduled: 1, Ready: 2, Running: 3,
			Delivered: 4, Dead: 5, Cancelled: 6, OldestDue: epoch, OpenBreakers: 2, LanesFailing: 1, Bytes: 4096,
		},
		{Topic: "seen"},
	}
	f.lanes = []store.LaneStats{
		{Lane: "a", Scheduled: 1, Ready: 2, Running: 3, BreakerOpen: true, CooldownUntil: epoch.AddDate(900, 0, 0)},
		{
			Lane: "b", Ready: 1, BreakerOpen: true, CooldownUntil: epoch.AddDate(-10, 0, 0), Health: &policy.Health{
				Since: epoch, Attempts: 4, Failed: 3, InRow: 3, Last: epoch.AddDate(900, 0, 0),
				Failure: policy.Failure{JobID: "close-2", At: epoch, Status: 500},
			},
		},
		{Lane: "c", CooldownUntil: epoch.AddDate(900, 0, 0)},
		{Lane: "d"},
	}
	counts := store.HistoryCounts{Delivered: 90, Failed: 10, Dead: 1, Released: 2, Late: [9]int64{50, 40, 10}}
	f.historyOf = store.History{
		Minutes: []store.HistoryBucket{{At: epoch, HistoryCounts: counts}},
		Hours:   []store.HistoryBucket{{At: epoch, HistoryCounts: counts}},
	}
	f.worst = []store.WorstLane{{
		Lane: "b", Receiver: store.NewReceiver(f.lanes[1].Health, epoch.AddDate(900, 0, 0)), History: f.historyOf,
	}}
	f.held = []store.TroubledLane{
		{
			Queue: job.Queue{Namespace: "default", Topic: "order.close", Lane: "a"}, Scheduled: 1, Ready: 2, Running: 3,
			OldestDue: epoch,
			Reasons: []job.Obstacle{
				{Code: job.ObstacleBreakerOpen, Until: epoch.Add(time.Minute), Facts: "The breaker is open"},
				{
					Code: job.ObstacleLanePaused, Facts: "The lane is paused", Since: epoch, By: "ops",
					Note:   "it moves",
					Remedy: job.Remedy{Action: job.RemedyResume, Topic: "order.close", Lane: "a"},
				},
			},
			Receiver: store.Receiver{
				Health: &store.ReceiverHealth{
					State: policy.HealthFailing, Since: epoch, Attempts: 57, Failed: 56, FailedPercent: 98,
				},
				LastFailure: &store.LaneFailure{
					JobID: "close-1", At: epoch, Status: 503, Error: "connection reset",
					ErrorClass: policy.ClassReset,
				},
			},
		},
		{
			Queue: job.Queue{Namespace: "default", Topic: "seen", Lane: "b"}, Ready: 1,
			Reasons: []job.Obstacle{{Code: job.ObstacleLaneFull, Facts: "The lane is full"}},
		},
	}
	return f
}

// Constant secrets.
var (
	sharedSecret = secretOf("whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD")
	keySecret    = secretOf("whsk_" + base64.StdEncoding.EncodeToString(make([]byte, 32)))
)

func secretOf(text string) sign.Secret {
	s, err := sign.ParseSecret(text)
	if err != nil {
		panic(err)
	}
	return s
}

// golden has requests to fullService, with the file of the response and its schema.
var golden = []struct {
	file, schema   string
	method, target string
	body           string
	status         int
}{
	{"job_created", "RegisteredJob", "POST", "/v1/jobs", `{"id": "new", "topic": "t", "url": "http://a.example/", ` +
		`"body":  [ 1 ],
		"delay": "90s", "headers": {"cookie": "s=1"}, "labels": {"a": "b"}, "on_delivered": ` +
		`"https://b.example/callback",
		"on_dead": {"url": "https://b.example/callback", "headers": {"x-token": "hunter2", "x-a": ["1"]}, "retries": ` +
		`0, "include": []}}`, 201},
	{"job_waited", "RegisteredJob", "POST", "/v1/jobs?wait=30s", `{"id": "plain", "url": "http://a.example/"}`, 200},
	{"job_dead", "Job", "GET", "/v1/jobs/dead", "", 200},
	{"job_text", "Job", "GET", "/v1/jobs/running", "", 200},
	{"job_bytes", "Job", "GET", "/v1/jobs/plain", "", 200},
	{"job_revived", "ChangedJob", "POST", "/v1/jobs/dead/revive", "", 200},
	{"job_cancel_requested", "ChangedJob", "DELETE", "/v1/jobs/running", "", 202},
	{"job_cancelled", "ChangedJob", "DELETE", "/v1/jobs/plain", "", 200},
	{"leases", "Leases", "POST", "/v1/topics/order.close/lease", `{"max": 2}`, 200},
	{
		"leases_settled", "SettledLeases", "POST", "/v1/leases",
		`{"done": [{"lease": ` +
			`"APbB3--ubgAAAAAAGjdLMlFKN0hOVEFBQUFBQUFBQUFBQUFBQUEyC29yZGVyLmNsb3Nl` +
			`C2N1c3RvbWVyLTQyCmNsb3NlLTQ3MTGfPGLRpwWL5E0b6cB3JvpY"}], "next": {}}`, 200,
	},
	{"job_list", "JobPage", "GET", "/v1/jobs?topic=order.close&state=dead&limit=2", "", 200},
	{
		"batch", "BatchResults", "POST", "/v1/batch",
		`{"jobs": [{"id": "a"}, {"id": "a"}, {"id": "a.b"}, {"id": "c", "id": "c"}]}`, 200,
	},
	{"batch_durable", "BatchResults", "POST", "/v1/batch", `{"jobs": [{"id": "durable"}, {"id": "a.b"}]}`, 200},
	{"job_durable", "ChangedJob", "PATCH", "/v1/jobs/durable", `{"retries": 1}`, 200},
	{"topic_durable", "Topic", "PATCH", "/v1/topics/written", `{"workers": 8}`, 200},
	{"topic", "Topic", "GET", "/v1/topics/order.close", "", 200},
	{"topic_set", "Topic", "GET", "/v1/topics/order.close?defaults=false", "", 200},
	{"topic_callbacks", "Topic", "GET", "/v1/topics/_callbacks", "", 200},
	{"topic_list", "TopicPage", "GET", "/v1/topics?limit=1", "", 200},
	{"topic_stats", "TopicStats", "GET", "/v1/topics/order.close/stats?limit=3", "", 200},
	{"topic_history", "TopicHistory", "GET", "/v1/topics/order.close/history", "", 200},
	{"topic_stats_lane", "LaneCounts", "GET", "/v1/topics/order.close/stats?lane=a", "", 200},
	{"job_callback", "Job", "GET", "/v1/jobs/rb:dead:1", "", 200},
	{"dead_list", "JobPage", "GET", "/v1/dead?reason=exhausted&status=503&limit=2", "", 200},
	{"dead_groups", "JobGroups", "GET", "/v1/dead/groups?by=lane,reason,status&topic=order.close", "", 200},
	{
		"dead_revived", "Work", "POST", "/v1/dead/revive",
		`{"topic": "order.close", "rate": "50/s", "url": "https://shop.example/new"}`, 202,
	},
	{"dead_purge_counted", "WorkCount", "POST", "/v1/dead/purge", `{"all": true, "dry_run": true}`, 200},
	{
		"event_sent", "Event", "POST", "/v1/events",
		`{"id": "e1", "topic": "order.close", "type": "order.closed", "body": {"order":  4711}}`, 201,
	},
	{
		"event_previewed", "Event", "POST", "/v1/events?dry_run=true",
		`{"topic": "order.close", "type": "order.closed"}`, 200,
	},
	{"event", "SentEvent", "GET", "/v1/events/e1", "", 200},
	{"event_list", "EventPage", "GET", "/v1/events?topic=order.close&type=order.closed", "", 200},
	{
		"event_batch", "EventResults", "POST", "/v1/events/batch",
		`{"events": [{"id": "e1", "topic": "order.close", "type": "order.closed"}, {"id": "e2", "type": "no type"}]}`,
		200,
	},
	{"lanes_troubled", "TroubledLanes", "GET", "/v1/lanes/troubled", "", 200},
	{"lane", "Lane", "GET", "/v1/topics/order.close/lanes/a", "", 200},
	{"lane_durable", "Lane", "PATCH", "/v1/topics/order.close/lanes/b", `{"lane_concurrency": 2}`, 200},
	{"lane_list", "LanePage", "GET", "/v1/topics/order.close/lanes?limit=1", "", 200},
	{"secret_added", "Secret", "POST", "/v1/topics/seen/secrets", `{"secret": "` + sharedSecret.Text() + `"}`, 201},
	{"key_added", "Secret", "POST", "/v1/topics/seen/lanes/a/secrets", `{"secret": "` + keySecret.Text() + `"}`, 201},
	{"secret_list", "SecretPage", "GET", "/v1/topics/order.close/secrets", "", 200},
	{"key_list", "KeyPage", "GET", "/v1/topics/order.close/lanes/a/keys", "", 200},
	{"schedule", "Schedule", "GET", "/v1/schedules/daily", "", 200},
	{"stats", "Stats", "GET", "/v1/stats", "", 200},
	{"history", "History", "GET", "/v1/history?topics=order.close", "", 200},
	{
		"token_created", "NewToken", "POST", "/v1/tokens",
		`{"name": "shop-api", "role": "publish", "topics": ["order.*"]}`, 201,
	},
	{"token", "Token", "GET", "/v1/tokens/5tR1nGs0", "", 200},
	{"token_list", "TokenPage", "GET", "/v1/tokens?limit=1", "", 200},
	{"whoami", "Principal", "GET", "/v1/whoami", "", 200},
	{"namespace_put", "Namespace", "PUT", "/v1/namespaces/new", `{"quota": {"pending": 5, "bytes": "1536MiB"}}`, 200},
	{"namespace_list", "NamespacePage", "GET", "/v1/namespaces?limit=1", "", 200},
	{"namespace", "Namespace", "GET", "/v1/namespaces/shop", "", 200},
	{"version", "Version", "GET", "/v1/version", "", 200},
	{"root", "Root", "GET", "/", "", 200},
	{"alive", "Status", "GET", "/healthz", "", 200},
	{"ready", "Ready", "GET", "/readyz", "", 200},
	{"problem_invalid", "Problem", "POST", "/v1/jobs", `{"id": "a.b", "url": "x", "more": 1, "ladder": ["0s"]}`, 422},
	{"problem_unreadable", "Problem", "POST", "/v1/jobs", `{"id": `, 400},
	{"problem_state", "Problem", "PATCH", "/v1/jobs/dead", `{"retries": 1}`, 409},
	{"problem_not_found", "Problem", "GET", "/v1/jobs/none", "", 404},
}

// ask makes a golden request of a new service.
func ask(t testing.TB, i int) *httptest.ResponseRecorder {
	t.Helper()
	g := golden[i]
	w := call(t, handlerOf(fullService()), g.method, g.target, g.body)
	require.Equal(t, g.status, w.Code, w.Body.String())
	return w
}

func TestGolden_AnswersOnTheWire(t *testing.T) {
	for i, g := range golden {
		t.Run(g.file, func(t *testing.T) {
			requireGolden(t, g.file, g.method+" "+g.target, ask(t, i))
		})
	}
}

// requireGolden compares a response with a file.
func requireGolden(t *testing.T, name, request string, w *httptest.ResponseRecorder) {
	t.Helper()
	var got bytes.Buffer
	got.WriteString(request + "\n" + http.StatusText(w.Code) + "\n")
	for _, name := range sortedKeys(w.Header()) {
		got.WriteString(name + ": " + strings.Join(w.Header()[name], ", ") + "\n")
	}
	got.WriteString("\n" + w.Body.String())
	file := filepath.Join("testdata", name+".txt")
	if *update {
		require.NoError(t, os.WriteFile(file, got.Bytes(), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "make it with: go test ./api -run OnTheWire -update")
	require.Equal(t, string(want), got.String())
}

func TestGolden_StreamOnTheWire(t *testing.T) {
	w := call(t, handlerOf(fullService()), http.MethodPost, "/v1/batch",
		"{\"id\": \"a\"}\n\n{\"id\": \"a\"}\n{\"id\": \n{\"id\": \"a.b\"}\n{\"id\": \"durable\"}", "Content-Type",
		"application/x-ndjson")
	resultsIn(t, w.Body.Bytes())
	requireGolden(t, "stream", "POST /v1/batch", w)
}
