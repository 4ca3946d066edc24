package api

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// epoch is the constant time of the fake.
var epoch = time.Date(2030, 1, 31, 8, 0, 0, 123_000_000, time.UTC)

// fake is a Service in memory with injected errors.
type fake struct {
	mu    sync.Mutex
	jobs  map[string]job.Job
	calls int // of Register
	news  []job.New
	edits []job.Edit
	// actor is that of the last cancellation, call of RunNow or change of settings.
	actor  string
	runs   int // calls of RunNow
	topics map[string]store.Topic
	own    map[string]store.Lane // lanes' settings, by topic/lane
	busy   bool                  // changes of settings are refused with ErrContended
	bad    error                 // what putting a policy or settings is refused with
	text   map[string]string     // what the secrets are, by id
	// deletions are the calls of DeleteTopic, deleted its result.
	deletions []store.TopicDeletion
	deleted   store.TopicDeleted
	// revival is the last revival of a job.
	revival     store.Revival
	work        store.Work
	event       store.Event
	events      []store.EventSpec // that were sent
	order       store.WorkOrder
	counted     []string // ids
	filter      store.Filter
	page        store.Page
	groups      store.Groups
	by          store.GroupBy
	counts      []store.TopicStats
	historyOf   store.History
	worst       []store.WorstLane
	lanes       []store.LaneStats
	held        []store.TroubledLane
	err         error // of every call
	ready       error
	otherStores []store.Readiness
	checks      int // of readiness
	// explanations are those of unfinished jobs, by id.
	explanations map[string]*job.Explanation
	// register, unless nil, returns the result of a registration.
	register func(job.New) store.RoutedResult

	// waits are the limits of the calls of WaitForEnd. waitForEnd, unless nil, is what they do before they return the
	// job.
	waits      []time.Duration
	waitForEnd func(ctx context.Context) error
	// eventType is that of the last call of ListLanes or TestLane.
	eventType string

	// leased are the jobs of each lease, leaseRequests those that asked, reports what was reported, and released what
	// was released. waitForLeases, unless nil, is what leases do before they return.
	leased        []store.LeasedJob
	waitForLeases func()
	leaseRequests []store.LeaseRequest
	reports       []store.LeaseReport
	leaseErrs     []error
	released      []store.LeasedJob

	// live has the live events.
	live *livetail.Hub

	fakeTokens
	fakeSchedules
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func newFake() *fake {
	return &fake{
		work: store.Work{
			ID: "dead", State: store.WorkRunning, CreatedAt: time.UnixMilli(1000),
			WorkOrder: store.WorkOrder{Action: store.WorkPurge},
		},
		jobs: make(map[string]job.Job), topics: make(map[string]store.Topic), own: make(map[string]store.Lane),
		text: make(map[string]string), live: livetail.New(new(store.LocalTail), quiet), fakeTokens: newFakeTokens(),
		fakeSchedules: fakeSchedules{scheduled: make(map[string]store.Schedule)},
	}
}

func (f *fake) FindStore(context.Context, string) (Store, error) { return f, nil }

func (f *fake) HolderOf(_ context.Context, namespace string) capacity.Holder {
	return capacity.Holder{Namespace: namespace}
}

func (f *fake) Register(_ context.Context, jobs []job.New) []store.RoutedResult {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	results := make([]store.RoutedResult, len(jobs))
	for i, n := range jobs {
		switch {
		case f.err != nil:
			results[i].Err = f.err
		case f.register != nil:
			results[i] = f.register(n)
		default:
			f.news = append(f.news, n)
			results[i] = f.insert(n)
		}
	}
	return results
}

func (f *fake) Lease(_ context.Context, request store.LeaseRequest) ([]store.LeasedJob, error) {
	f.leaseRequests = append(f.leaseRequests, request)
	if f.waitForLeases != nil {
		f.waitForLeases()
	}
	return f.leased, f.err
}

func (f *fake) SettleLeases(
	_ context.Context, _ string, reports []store.LeaseReport, next *store.LeaseRequest,
) ([]error, []store.LeasedJob, error) {
	f.reports = append(f.reports, reports...)
	errs := f.leaseErrs
	if errs == nil {
		errs = make([]error, len(reports))
	}
	if next == nil {
		return errs, nil, f.err
	}
	f.leaseRequests = append(f.leaseRequests, *next)
	if f.waitForLeases != nil {
		f.waitForLeases()
	}
	return errs, f.leased, f.err
}

func (f *fake) ReleaseLeases(_ context.Context, _ string, leased []store.LeasedJob) {
	f.released = append(f.released, leased...)
}

func (f *fake) Listen(ctx context.Context, filter livetail.Filter) (*livetail.Listener, error) {
	if f.err != nil {
		return nil, f.err
	}
	return f.live.Listen(ctx, filter)
}

func (f *fake) insert(n job.New) store.RoutedResult {
	if n.ID == "" {
		n.ID = "made"
	}
	if n.Topic == "" {
		n.Topic = job.DefaultTopic
	}
	if n.Lane == "" {
		n.Lane = job.DefaultLane
	}
	if n.Method == "" {
		n.Method = http.MethodPost
	}
	if known, ok := f.jobs[n.ID]; ok {
		return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Existing, Job: known}}
	}
	j := job.Job{Spec: n.Spec, Progress: job.Progress{
		State: job.Scheduled, CreatedAt: epoch, DueAt: epoch.Add(n.Delay), ExpiresAt: n.ExpiresAt, Version: 1,
	}}
	f.jobs[n.ID] = j
	return store.RoutedResult{InsertResult: store.InsertResult{Outcome: store.Created, Job: j}}
}

func (f *fake) find(ref job.Ref) (job.Job, error) {
	if f.err != nil {
		return job.Job{}, f.err
	}
	if j, ok := f.jobs[ref.ID]; ok {
		return j, nil
	}
	return job.Job{}, store.ErrNotFound
}

func (f *fake) Get(_ context.Context, ref job.Ref) (job.Job, error) { return f.find(ref) }

func (f *fake) WaitForEnd(ctx context.Context, last job.Job, limit time.Duration) (job.Job, error) {
	f.mu.Lock()
	f.waits = append(f.waits, limit)
	f.mu.Unlock()
	if f.waitForEnd != nil {
		if err := f.waitForEnd(ctx); err != nil {
			return job.Job{}, err
		}
	}
	return f.find(last.Ref())
}

func (f *fake) Explain(_ context.Context, j *job.Job) *job.Explanation { return f.explanations[j.ID] }

func (f *fake) List(_ context.Context, filter store.Filter) (store.Page, error) {
	f.filter = filter
	return f.page, f.err
}

func (f *fake) Edit(_ context.Context, ref job.Ref, e job.Edit) (job.Job, error) {
	j, err := f.waiting(ref, e.IfVersion)
	if err != nil {
		return j, err
	}
	f.edits = append(f.edits, e)
	if j.Spec, err = codec.Change(&j.Spec, &e.Spec, e.Fields); err != nil {
		return j, err
	}
	j.Version++
	f.jobs[ref.ID] = j
	return j, nil
}

func (f *fake) RunNow(_ context.Context, ref job.Ref, version int64, actor string) (job.Job, error) {
	f.actor = actor
	j, err := f.waiting(ref, version)
	if err == nil {
		f.runs++
	}
	return j, err
}

// waiting returns a job that can be changed.
func (f *fake) waiting(ref job.Ref, version int64) (job.Job, error) {
	j, err := f.find(ref)
	switch {
	case err != nil:
		return j, err
	case j.State != job.Scheduled && j.State != job.Ready:
		return j, &store.StateError{State: j.State}
	case version != 0 && version != j.Version:
		return j, store.ErrVersion
	}
	return j, nil
}

func (f *fake) Revive(_ context.Context, revival store.Revival) (job.Job, error) {
	ref := revival.Ref
	f.revival = revival
	j, err := f.find(ref)
	switch {
	case err != nil:
		return j, err
	case revival.IfVersion != 0 && revival.IfVersion != j.Version:
		return j, store.ErrVersion
	case !j.State.Ended():
		return j, &store.StateError{State: j.State}
	case revival.ExpiresIn == 0 && j.Reason == policy.ReasonExpired:
		return j, store.ErrExpired
	}
	j.State, j.FinishedAt, j.Reason, j.CallbackID = job.Scheduled, time.Time{}, "", ""
	j.Generation++
	j.Version++
	return j, nil
}

func (f *fake) Cancel(_ context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error) {
	f.actor = cancellation.Actor
	j, err := f.find(ref)
	switch {
	case err != nil:
		return j, err
	case cancellation.IfVersion != 0 && cancellation.IfVersion != j.Version:
		return j, store.ErrVersion
	case j.State == job.Delivered || j.State == job.Dead:
		return j, &store.StateError{State: j.State}
	case j.State == job.Running:
		j.CancelRequested = true
	default:
		j.State, j.Reason, j.FinishedAt = job.Cancelled, job.ReasonCancelled, epoch
	}
	f.jobs[ref.ID] = j
	return j, nil
}

func (f *fake) Topic(_ context.Context, _, name string) (store.Topic, error) {
	if f.err != nil {
		return store.Topic{}, f.err
	}
	if t, ok := f.topics[name]; ok {
		return t, nil
	}
	return store.Topic{}, store.ErrNotFound
}

func (f *fake) Topics(_ context.Context, _, after string, limit int) ([]store.Topic, error) {
	var all []store.Topic
	for _, name := range sortedKeys(f.topics) {
		if name > after && len(all) < limit {
			all = append(all, f.topics[name])
		}
	}
	return all, f.err
}

func (f *fake) Effective(_ context.Context, _ string, p policy.Topic) policy.Topic {
	return p.WithDefaults(policy.Builtin())
}

func (f *fake) TopicStats(_ context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	var rows []store.TopicStats
	for _, t := range f.counts {
		if len(filter.Topics) > 0 {
			if slices.Contains(filter.Topics, t.Topic) {
				rows = append(rows, t)
			}
		} else if t.Topic > filter.After && len(rows) < filter.Limit {
			rows = append(rows, t)
		}
	}
	return rows, f.err
}

func (f *fake) Totals(context.Context, string) (total store.TopicStats, err error) {
	for _, t := range f.counts {
		total = total.Add(t)
	}
	return total, f.err
}

func (f *fake) LaneStats(_ context.Context, _, _, after string, limit int) ([]store.LaneStats, error) {
	var rest []store.LaneStats
	for _, l := range f.lanes {
		if l.Lane > after && len(rest) < limit {
			rest = append(rest, l)
		}
	}
	return rest, f.err
}

func (f *fake) TroubledLanes(_ context.Context, filter store.TroubledFilter) (store.TroubledLanes, error) {
	found := store.TroubledLanes{LookedAt: 12, Exact: true}
	for _, l := range f.held {
		q := l.Queue
		if filter.Namespace == q.Namespace && filter.Shown(q.Topic) &&
			(filter.Topic == "" || filter.Topic == q.Topic) && (filter.Lane == "" || filter.Lane == q.Lane) &&
			(filter.Code == "" || filter.Code == l.Reasons[0].Code) {
			found.Total++
			if len(found.Lanes) < filter.Limit {
				found.Lanes = append(found.Lanes, l)
			}
		}
	}
	return found, f.err
}

func (f *fake) History(_ context.Context, _ string, topics []string) ([]store.History, error) {
	all := make([]store.History, len(topics))
	for i, topic := range topics {
		all[i] = f.historyOf
		all[i].Topic = topic
	}
	return all, f.err
}

func (f *fake) WorstLanes(context.Context, string, string, int) ([]store.WorstLane, error) {
	return f.worst, f.err
}

func (f *fake) LaneCounts(_ context.Context, q job.Queue) (store.LaneStats, error) {
	for _, l := range f.lanes {
		if l.Lane == q.Lane {
			return l, f.err
		}
	}
	return store.LaneStats{Lane: q.Lane}, f.err
}

func (f *fake) Readiness(context.Context) []store.Readiness {
	f.checks++
	return append([]store.Readiness{{Store: "main", Err: f.ready}}, f.otherStores...)
}

// requireUnchanged asserts that nothing was stored or changed.
func (f *fake) requireUnchanged(t *testing.T) {
	t.Helper()
	require.Zero(t, f.calls, "something was registered: %v", f.news)
	require.Empty(t, f.edits)
	require.Zero(t, f.runs)
	require.Empty(t, f.topics)
	require.Empty(t, f.own)
	require.Empty(t, f.text)
	require.Empty(t, f.order)
}

// handlerOf returns the API of a service, without a token.
func handlerOf(s Service) http.Handler {
	return New(Options{
		Service: s, Version: "v1.2.3", Commit: "0123abc", GoVersion: "go1.26.0",
		Process: "host-1/5tR1nGs0aB", Logger: slog.New(slog.DiscardHandler),
	})
}

// call makes a request with a JSON body, unless it is empty. More are further headers, name and value in turn.
func call(t testing.TB, h http.Handler, method, target, body string, more ...string) *httptest.ResponseRecorder {
	t.Helper()
	var content io.Reader
	if body != "" {
		content = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, target, content)
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	w := httptest.NewRecorder()
	if r.URL.Path == "/v1/stream" { // endless: the client disconnects when it has the header
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h.ServeHTTP(disconnecting{w, cancel}, r.WithContext(ctx))
		return w
	}
	h.ServeHTTP(w, r)
	return w
}

// disconnecting is a connection whose client disconnects after the first flush.
type disconnecting struct {
	*httptest.ResponseRecorder
	disconnect func()
}

func (d disconnecting) Flush() { d.disconnect() }

// decodeResponse decodes a JSON response.
func decodeResponse(t testing.TB, w *httptest.ResponseRecorder) map[string]any {
	t.Helper()
	var got map[string]any
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &got), w.Body.String())
	return got
}

// listed reads a page of a list and returns one member of each item, and the cursor.
func listed(t testing.TB, h http.Handler, target, member string) (all []string, cursor any) {
	t.Helper()
	got := decodeResponse(t, call(t, h, http.MethodGet, target, ""))
	items, _ := got["items"].([]any)
	for _, i := range items {
		item, _ := i.(map[string]any)
		name, _ := item[member].(string)
		all = append(all, name)
	}
	return all, got["next_cursor"]
}

// problemBody is a problem as a client reads it.
type problemBody struct {
	Type   string
	Code   string
	Title  string
	Status int
	Detail string
	// RetryAfter is in milliseconds.
	RetryAfter *int64 `json:"retry_after_ms"`
	Errors     []struct{ Field, Detail string }
}

// problemIn decodes a problem and checks its form.
func problemIn(t testing.TB, w *httptest.ResponseRecorder) problemBody {
	t.Helper()
	require.Equal(t, "application/problem+json", w.Header().Get("Content-Type"), w.Body.String())
	var p problemBody
	dec := json.NewDecoder(bytes.NewReader(w.Body.Bytes()))
	dec.DisallowUnknownFields()
	require.NoError(t, dec.Decode(&p), w.Body.String())
	require.Equal(t, w.Code, p.Status)
	require.NotEmpty(t, p.Detail)
	require.Equal(t, w.Header().Get("Retry-After") != "", p.RetryAfter != nil)
	requireKnownProblem(t, p)
	return p
}

// fields returns the fields of a problem's errors.
func (p problemBody) fields() []string {
	var all []string
	for _, e := range p.Errors {
		all = append(all, e.Field)
	}
	return all
}

// chunkedRequest is a request without a length.
type chunkedRequest struct {
	w *httptest.ResponseRecorder
	r *http.Request
}

func newChunked(t testing.TB, target, body string) chunkedRequest {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, target, io.MultiReader(strings.NewReader(body)))
	r.ContentLength = -1
	r.Header.Set("Content-Type", "application/json")
	return chunkedRequest{httptest.NewRecorder(), r}
}

// failingAfter is a fake that fails after a number of registrations.
type failingAfter struct {
	*fake
	left int
}

func (f *failingAfter) FindStore(context.Context, string) (Store, error) { return f, nil }

func (f *failingAfter) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	if f.left--; f.left < 0 {
		f.err = store.ErrUnavailable
	}
	return f.fake.Register(ctx, jobs)
}
