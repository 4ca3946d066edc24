package metrics_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/metrics"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// The contract holds through the decorator: every method is passed on, with all it was given and all it answered.
func TestStore_BehavesLikeTheWrappedStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Engine {
		t.Helper()
		at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
		now := func() time.Time { return at }
		model := storetest.NewModel(storetest.ModelOptions{Shards: 3, Now: now})
		return storetest.Engine{
			Store: metrics.New(metrics.Options{}).Store("main", model), Now: now,
			Defaults: policy.Builtin(), IsSlow: true, Advance: func(d time.Duration) { at = at.Add(d) },
		}
	})
}

var queue = job.Queue{Namespace: "default", Topic: "orders", Lane: "a"}

func entry(id, topic string) store.NewJob {
	return store.NewJob{New: job.New{Spec: job.Spec{
		ID:    id,
		Queue: job.Queue{Namespace: "default", Topic: topic, Lane: "a"},
	}}, Fingerprint: []byte(id)}
}

// calls are one of each method of the contract.
var calls = map[string]func(ctx context.Context, s store.Store){
	"Insert": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Insert(ctx, store.NewToken(), []store.NewJob{entry("a", "orders")})
	},
	"Lead": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Lead(ctx) },
	"Carry": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Carry(ctx, store.NewToken(), store.CarryOptions{})
	},
	"Notify": func(ctx context.Context, s store.Store) { _ = s.Shards()[0].Notify(ctx, []job.Queue{queue}) },
	"Claim": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Claim(ctx, store.NewToken(), store.ClaimRequest{})
	},
	"ClaimExpired": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].ClaimExpired(ctx, store.NewToken(), store.ClaimExpiredRequest{})
	},
	"Settle": func(ctx context.Context, s store.Store) {
		_, _, _ = s.Shards()[0].Settle(ctx, store.NewToken(), nil, nil)
	},
	"Cancel": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Cancel(ctx, store.NewToken(), job.Ref{}, store.Cancellation{})
	},
	"Replace": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Replace(ctx, store.NewToken(), job.Ref{}, store.Replacement{})
	},
	"Revive":     func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Revive(ctx, store.NewToken(), nil) },
	"Purge":      func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Purge(ctx, store.NewToken(), nil) },
	"GetRecords": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].GetRecords(ctx, nil) },
	"PutRecords": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].PutRecords(ctx, store.NewToken(), nil)
	},
	"ScanLanes": func(ctx context.Context, s store.Store) { _, _, _ = s.Shards()[0].ScanLanes(ctx, "") },
	"Get":       func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Get(ctx, job.Ref{}) },
	"Known":     func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Known(ctx, nil) },
	"List":      func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].List(ctx, store.Filter{Limit: 1}) },
	"TopicStats": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].TopicStats(ctx, store.StatsFilter{Namespace: "default", Limit: 1})
	},
	"Totals": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Totals(ctx, "default") },
	"Usage":  func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Usage(ctx, "default") },
	"LaneStats": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].LaneStats(ctx, "default", "orders", "", 1)
	},
	"QueueState": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].QueueState(ctx, queue) },
	"TopicState": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].TopicState(ctx, "default", "orders", policy.Rate{})
	},
	"ReadHistory": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].ReadHistory(ctx, "default", []string{"t"})
	},
	"ListHealth": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].ListHealth(ctx, store.HealthFilter{Namespace: "default", Limit: 1})
	},
	"Sweep":  func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Sweep(ctx, store.NewToken(), 1) },
	"Repair": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Repair(ctx) },
	"put_topic": func(ctx context.Context, s store.Store) {
		_, _ = store.PutTopic(ctx, s, store.Topic{Namespace: "default", Name: "orders"})
	},
	"topics": func(ctx context.Context, s store.Store) { _, _, _ = storetest.ListTopics(ctx, s) },
	"ListChanges": func(ctx context.Context, s store.Store) {
		_, _ = s.ListChanges(ctx, store.KindTopic, 0)
	},
	"get_topics": func(ctx context.Context, s store.Store) { _, _ = s.GetDocuments(ctx, nil) },
	"put_lane": func(ctx context.Context, s store.Store) {
		_, _ = store.PutLane(ctx, s.Shards()[0], store.NewToken(), store.Lane{Queue: queue})
	},
	"get_lanes": func(ctx context.Context, s store.Store) {
		_, _ = store.GetLanes(ctx, s.Shards()[0], []job.Queue{queue})
	},
	"list_lanes": func(ctx context.Context, s store.Store) {
		_, _ = store.ListLanes(ctx, s.Shards()[0], "default", "orders", "", 1)
	},
	"list_lane_changes": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].ListChanges(ctx, store.KindLane, 0)
	},
	"Permit": func(ctx context.Context, s store.Store) { _, _ = s.Shards()[0].Permit(ctx, store.NewToken(), nil) },
	"Alarm": func(ctx context.Context, s store.Store) {
		_, _ = s.Shards()[0].Alarm(ctx, store.NewToken(), store.Alarm{Namespace: "default", Topic: "orders"})
	},
	"AppendTail": func(ctx context.Context, s store.Store) { _, _ = s.AppendTail(ctx, nil) },
	"ReadTail":   func(ctx context.Context, s store.Store) { _, _, _ = s.ReadTail(ctx, []byte("a"), 0) },
	"LeaveTail":  func(ctx context.Context, s store.Store) { _ = s.LeaveTail(ctx, []byte("a")) },
	"Ping":       func(ctx context.Context, s store.Store) { _ = s.Ping(ctx) },
}

// settingsNames are the names of the methods of store.Settings, which a store and its shards have.
var settingsNames = map[reflect.Type]map[string]string{
	reflect.TypeFor[store.Store](): {
		"PutDocument": "put_topic", "GetDocuments": "get_topics",
		"ListDocuments": "topics",
	},
	reflect.TypeFor[store.Shard](): {
		"PutDocument": "put_lane", "GetDocuments": "get_lanes",
		"ListDocuments": "list_lanes", "ListChanges": "list_lane_changes",
	},
}

// untimed methods ask nothing of the store's data, or wait.
var untimed = map[string]bool{"Shards": true, "Wait": true, "WaitAgenda": true, "Close": true}

func TestStore_TimesEveryMethod(t *testing.T) {
	var methods []string
	for contract, settings := range settingsNames {
		for method := range contract.Methods() {
			methods = append(methods, cmp.Or(settings[method.Name], method.Name))
		}
	}
	for _, name := range methods {
		if untimed[name] {
			continue
		}
		t.Run(name, func(t *testing.T) {
			require.Contains(t, calls, name, "a call of it is missing here")
			m := metrics.New(metrics.Options{})
			calls[name](t.Context(), m.Store("main", storetest.NewModel(storetest.ModelOptions{})))
			got := scrape(t, m)
			require.InDelta(t, 1, got.sum("ringback_store_seconds_count", "method", snake(name)), 0)
			require.InDelta(t, 1, got.sum("ringback_store_seconds_count"), 0, "and under no other name")
		})
	}
}

// snake writes PutTopic as put_topic.
func snake(name string) string {
	var out []rune
	for i, r := range name {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				out = append(out, '_')
			}
			r += 'a' - 'A'
		}
		out = append(out, r)
	}
	return string(out)
}

func TestStore_TimesLeadership(t *testing.T) {
	m := metrics.New(metrics.Options{})
	s := m.Store("main", storetest.NewModel(storetest.ModelOptions{}))
	held, err := s.Shards()[0].Lead(t.Context())
	require.NoError(t, err)
	second, err := s.Shards()[0].Lead(t.Context())
	require.ErrorIs(t, err, store.ErrNotLeader)
	require.Nil(t, second)
	require.NoError(t, held.Extend(t.Context()))
	require.NoError(t, held.Release(t.Context()))
	require.ErrorIs(t, held.Extend(t.Context()), store.ErrNotLeader)
	got := scrape(t, m)
	for _, c := range [][2]string{
		{"lead", "ok"}, {"lead", "refused"}, {"extend", "ok"}, {"release", "ok"}, {"extend", "refused"},
	} {
		require.InDelta(t, 1, got.value(t, "ringback_store_seconds_count", "method", c[0], "outcome", c[1]), 0, c)
	}
}

// stub is a store with given results.
type stub struct {
	store.Store
	err      error
	errs     []error
	inserted []store.InsertResult
	carried  store.CarryResult
	swept    store.SweepResult
	repaired store.RepairResult
}

func (s stub) Shards() []store.Shard {
	return []store.Shard{stubShard{stub: s}}
}

type stubShard struct {
	store.Shard
	stub
}

func (s stub) Ping(context.Context) error { return s.err }

func (s stubShard) Wait(context.Context, store.WaitOptions) ([]job.Queue, error) {
	return nil, s.err
}

func (s stubShard) Insert(context.Context, store.Token, []store.NewJob) ([]store.InsertResult, error) {
	return s.inserted, s.err
}

func (s stubShard) Settle(
	context.Context, store.Token, []store.Settlement, *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	return s.errs, store.ClaimResult{}, s.err
}

func (s stubShard) Carry(context.Context, store.Token, store.CarryOptions) (store.CarryResult, error) {
	return s.carried, s.err
}

func (s stubShard) Sweep(context.Context, store.Token, int) (store.SweepResult, error) {
	return s.swept, s.err
}

func (s stubShard) Repair(context.Context) (store.RepairResult, error) {
	return s.repaired, s.err
}

func TestStore_SeparatesCallerErrors(t *testing.T) {
	ctx := t.Context()
	gone, leave := context.WithCancel(ctx)
	leave()
	why := errors.New("the process is stopping")
	stopped, stop := context.WithCancelCause(ctx)
	stop(why)
	late, end := context.WithDeadline(ctx, time.Now().Add(-time.Second))
	defer end()
	away := &store.UnavailableError{Reason: "redis is away"}
	for name, c := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"an answer":       {ctx, nil, "ok"},
		"no such job":     {ctx, fmt.Errorf("get: %w", store.ErrNotFound), "refused"},
		"another version": {ctx, store.ErrVersion, "refused"},
		"a lost lease":    {ctx, store.ErrLeaseLost, "refused"},
		"another leader":  {ctx, store.ErrNotLeader, "refused"},
		"another state": {
			ctx, fmt.Errorf("replace: %w", &store.StateError{State: job.Dead}), "refused",
		},
		"a caller that left": {gone, fmt.Errorf("get: %w", context.Canceled), "refused"},
		"a caller that left, as the store has": {
			gone, &store.UnavailableError{Reason: "?", Err: context.Canceled}, "refused",
		},
		"a caller that left for a reason":   {stopped, fmt.Errorf("get: %w", why), "refused"},
		"a caller that left a broken store": {gone, away, "unavailable"},
		"no caller left":                    {ctx, context.Canceled, "error"},
		"a caller whose time ran out":       {late, errors.New("read: i/o timeout"), "unavailable"},
		"the store's own time ran out":      {ctx, context.DeadlineExceeded, "unavailable"},
		"the store is away":                 {ctx, fmt.Errorf("claim: %w", away), "unavailable"},
		"a bug":                             {ctx, errors.New("syntax error"), "error"},
	} {
		t.Run(name, func(t *testing.T) {
			m := metrics.New(metrics.Options{})
			s := m.Store("main", stub{err: c.err})
			require.Equal(t, c.err, s.Ping(c.ctx))
			_, err := s.Shards()[0].Wait(c.ctx, store.WaitOptions{})
			require.Equal(t, c.err, err)
			got := scrape(t, m)
			require.InDelta(t, 1, got.value(t, "ringback_store_seconds_count", "outcome", c.want), 0)
			faults := 0.0
			if c.want == "unavailable" || c.want == "error" {
				faults = 1
				require.InDelta(t, 1, got.value(t, "ringback_wakeup_failures_total", "outcome", c.want), 0)
			}
			require.InDelta(t, faults, got.sum("ringback_wakeup_failures_total"), 0)
			require.Empty(t, got.all("ringback_store_seconds_count", "method", "wait"))
		})
	}
}

func TestStore_CountsInsertionsByTopicAndOutcome(t *testing.T) {
	m := metrics.New(metrics.Options{})
	entries := []store.NewJob{entry("a", "x"), entry("b", "x"), entry("c", "y"), entry("d", "x"), entry("e", "y")}
	results := make([]store.InsertResult, len(entries))
	for i, outcome := range []store.Outcome{
		store.Created, store.Created, store.Existing, store.Conflict, store.Created,
	} {
		results[i].Outcome = outcome
	}
	_, err := m.Store("main", stub{inserted: results}).Shards()[0].Insert(t.Context(), "", entries)
	require.NoError(t, err)
	_, err = m.Store("main", stub{err: store.ErrUnavailable}).Shards()[0].Insert(t.Context(), "", entries)
	require.Error(t, err)
	got := scrape(t, m)
	for _, c := range []struct {
		topic, outcome string
		n              float64
	}{
		{"x", "created", 2},
		{"x", "conflict", 1},
		{"x", "failed", 3},
		{"y", "created", 1},
		{"y", "existing", 1},
		{"y", "failed", 2},
	} {
		require.InDelta(t, c.n,
			got.value(t, "ringback_jobs_inserted_total", "topic", c.topic, "outcome", c.outcome), 0, c)
	}
	require.InDelta(t, 10, got.sum("ringback_jobs_inserted_total"), 0)
}

// An end counts when the store has recorded it.
func TestStore_CountsRecordedEnds(t *testing.T) {
	m := metrics.New(metrics.Options{})
	ends := []policy.Verdict{
		{Kind: policy.Delivered},
		{Kind: policy.Delivered},
		{Kind: policy.Dead, Reason: policy.ReasonMaxAge},
		{Kind: policy.Dead, Reason: "a reason to come"},
		{Kind: policy.Again},
		{Kind: policy.Released},
		{Kind: policy.Dead, Reason: policy.ReasonExhausted},
		{Kind: policy.Delivered},
	}
	items := make([]store.Settlement, len(ends))
	for i, verdict := range ends {
		items[i] = store.Settlement{Queue: queue, Verdict: verdict}
	}
	errs := make([]error, len(ends))
	errs[6], errs[7] = store.ErrLeaseLost, errors.New("odd")
	_, _, err := m.Store("main", stub{errs: errs}).Shards()[0].Settle(t.Context(), "", items, nil)
	require.NoError(t, err)
	_, _, err = m.Store("main", stub{err: store.ErrUnavailable}).Shards()[0].Settle(t.Context(), "", items, nil)
	require.Error(t, err)
	extension := store.Settlement{Queue: job.Queue{Namespace: "n", Topic: "pulled", Lane: "l"}, Extend: time.Minute}
	_, _, err = m.Store("main", stub{errs: []error{nil, store.ErrCancelRequested}}).Shards()[0].Settle(t.Context(), "",
		[]store.Settlement{extension, extension}, nil)
	require.NoError(t, err)
	got := scrape(t, m)
	require.InDelta(t, 2, got.value(t, "ringback_settlements_total", "outcome", "extended"), 0)
	require.Empty(t, got.all("ringback_jobs_ended_total", "topic", "pulled"), "a longer lease is no end")
	require.InDelta(t, 6, got.value(t, "ringback_settlements_total", "outcome", "recorded"), 0)
	require.InDelta(t, 1, got.value(t, "ringback_settlements_total", "outcome", "lease_lost"), 0)
	require.InDelta(t, 9, got.value(t, "ringback_settlements_total", "outcome", "failed"), 0)
	require.InDelta(t, 4, got.sum("ringback_jobs_ended_total"), 0)
	require.InDelta(t, 2,
		got.value(t, "ringback_jobs_ended_total", "topic", "orders", "state", "delivered", "reason", "none"), 0)
	require.InDelta(t, 1, got.value(t, "ringback_jobs_ended_total", "state", "dead", "reason", "max_age"), 0)
	require.InDelta(t, 1, got.value(t, "ringback_jobs_ended_total", "state", "dead", "reason", "other"), 0)
	for _, reason := range policy.Reasons() {
		require.Len(t, got.all("ringback_jobs_ended_total", "state", "dead", "reason", string(reason)), 1,
			"%s is there before the first such death", reason)
	}
}

func TestStore_CountsCarrierMovesAndSweeps(t *testing.T) {
	m := metrics.New(metrics.Options{})
	done := stub{carried: store.CarryResult{Moved: 5, ExpiredLeases: 2, Outbox: make([]store.NewJob,
		3), ClockStep: -time.Second}, swept: store.SweepResult{Jobs: 7, IDs: 4}}
	failed := done
	failed.err = store.ErrUnavailable
	for _, s := range []store.Store{m.Store("main", done), m.Store("main", failed), m.Store("main", done)} {
		_, _ = s.Shards()[0].Carry(t.Context(), "", store.CarryOptions{})
		_, _ = s.Shards()[0].Sweep(t.Context(), "", 1)
	}
	got := scrape(t, m)
	require.InDelta(t, 10, got.value(t, "ringback_carrier_moves_total", "what", "moved"), 0)
	require.InDelta(t, 4, got.value(t, "ringback_carrier_moves_total", "what", "lease_expired"), 0)
	require.InDelta(t, 6, got.value(t, "ringback_carrier_moves_total", "what", "outbox"), 0)
	require.InDelta(t, 2, got.value(t, "ringback_clock_steps_total", "direction", "back"), 0)
	require.InDelta(t, 0, got.value(t, "ringback_clock_steps_total", "direction", "ahead"), 0)
	require.InDelta(t, 14, got.value(t, "ringback_swept_total", "what", "jobs"), 0)
	require.InDelta(t, 8, got.value(t, "ringback_swept_total", "what", "ids"), 0)
}

func TestStore_CountsRepairsByKind(t *testing.T) {
	m := metrics.New(metrics.Options{})
	done := stub{repaired: store.RepairResult{Repairs: map[store.RepairKind]int{
		store.RepairUnplaced: 3,
		store.RepairCounter:  1,
	}}}
	failed := done
	failed.err = store.ErrUnavailable
	for _, s := range []store.Store{m.Store("main", done), m.Store("main", failed)} {
		_, _ = s.Shards()[0].Repair(t.Context())
	}
	got := scrape(t, m)
	require.InDelta(t, 6, got.value(t, "ringback_store_repairs_total", "kind", "unplaced"), 0,
		"what a call repaired before it failed counts")
	require.InDelta(t, 2, got.value(t, "ringback_store_repairs_total", "kind", "counter"), 0)
	require.Len(t, got.all("ringback_store_repairs_total"), len(store.RepairKinds()),
		"each kind is there from the start")
}
