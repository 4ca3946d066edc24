package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// statusByPath responds with the status in the URL's path, else 200.
func statusByPath(_ context.Context, r job.Request) policy.Result {
	code := 200
	_, _ = fmt.Sscanf(r.URL[strings.LastIndex(r.URL, "/"):], "/%d", &code)
	return policy.Result{Status: code}
}

// registerDead registers n jobs of "topic/lane" and waits until the status made them dead.
func (r *fixture) registerDead(t *testing.T, n int, queue string, code int, change ...func(i int, n *job.New)) {
	t.Helper()
	topic, lane, _ := strings.Cut(queue, "/")
	news := make([]job.New, n)
	for i := range news {
		news[i].Spec = job.Spec{
			ID: fmt.Sprintf("%s-%s-%d-%04d", topic, lane, code, i), Queue: job.Queue{Topic: topic, Lane: lane},
			URL: fmt.Sprintf("https://x.example/%d", code), Terms: policy.Terms{Retries: new(0)},
		}
		for _, do := range change {
			do(i, &news[i])
		}
	}
	r.registerAll(t, news)
	for {
		time.Sleep(time.Second)
		stats, err := r.Stats(t.Context(), job.DefaultNamespace, topic)
		require.NoError(t, err)
		if stats[0].Scheduled+stats[0].Ready+stats[0].Running == 0 {
			return
		}
	}
}

// pauseTopics pauses topics, so that revived jobs stay ready.
func (r *fixture) pauseTopics(t *testing.T, topics ...string) {
	t.Helper()
	for _, topic := range topics {
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, topic, store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.Paused = true
				return nil
			})
		require.NoError(t, err)
	}
}

// listDead reads all pages of dead letters and returns their ids.
func (r *fixture) listDead(t *testing.T, f store.Filter) (ids []string, pages int) {
	t.Helper()
	f.Namespace, f.Limit, f.States = job.DefaultNamespace, max(f.Limit, 1), []job.State{job.Dead}
	for {
		page, err := r.List(t.Context(), f)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.Jobs), f.Limit)
		for _, j := range page.Jobs {
			require.Equal(t, job.Dead, j.State)
			ids = append(ids, j.ID)
		}
		pages++
		require.Less(t, pages, 1000)
		if f.After = page.Reached; !page.More {
			return ids, pages
		}
		require.Len(t, page.Jobs, f.Limit, "each page but the last is full")
	}
}

// work does bulk work and returns it after its end. The namespace and the states are set if they are missing.
func (r *fixture) work(t *testing.T, o store.WorkOrder) store.Work {
	t.Helper()
	o.Filter.Namespace = job.DefaultNamespace
	if o.Filter.States == nil {
		_, o.Filter.States = o.Action.States()
	}
	w, err := r.StartWork(t.Context(), job.DefaultNamespace, o)
	require.NoError(t, err)
	for range 10_000 {
		time.Sleep(time.Second)
		w, err = r.Work(t.Context(), job.DefaultNamespace, w.ID)
		require.NoError(t, err)
		if w.State != store.WorkRunning {
			return w
		}
	}
	t.Fatalf("the work does not end: %+v", w)
	return w
}

func TestList_ShowsDeadLettersOfAllTopicsNewestFirst(t *testing.T) {
	for _, shards := range []int{1, 4} {
		synctest.Test(t, func(t *testing.T) {
			r := start(t, dispatcher.Options{Store: sharded(shards), Deliverer: &receiver{answer: statusByPath}})
			for _, queue := range []string{"c/1", "a/1", "a/2", "d/1"} {
				r.registerDead(t, 5, queue, 500)
				r.registerDead(t, 2, queue, 410)
			}
			r.registerDead(t, 3, "b/1", 200) // these are delivered
			for _, limit := range []int{1, 3, 7, 100} {
				ids, _ := r.listDead(t, store.Filter{Limit: limit})
				require.Len(t, ids, 28)
				require.Len(t, slices.Compact(slices.Sorted(slices.Values(ids))), 28, "each once")
				require.Equal(t, "d", ids[0][:1], "the newest first")
				require.Equal(t, "c", ids[27][:1])
			}
			one, _ := r.listDead(t, store.Filter{Limit: 4, Topic: "a"})
			require.Len(t, one, 14)
			lane, _ := r.listDead(t, store.Filter{Limit: 4, Topic: "a", Lane: "2"})
			require.Len(t, lane, 7)
			gave, _ := r.listDead(t, store.Filter{Limit: 100, Reason: policy.ReasonGaveUp})
			require.Len(t, gave, 8)
			gave, _ = r.listDead(t, store.Filter{Limit: 3, Reason: policy.ReasonGaveUp})
			require.Len(t, gave, 8)
			failed, _ := r.listDead(t, store.Filter{Limit: 3, Status: 500, Lane: "1"})
			require.Len(t, failed, 15)
			none, _ := r.listDead(t, store.Filter{Limit: 100, Topic: "unknown"})
			require.Empty(t, none)
			future, _ := r.listDead(t,
				store.Filter{Limit: 100, Ended: store.TimeRange{After: time.Now().Add(time.Hour)}})
			require.Empty(t, future)
		})
	}
}

func TestRevive_ResetsTheRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec := &receiver{answer: statusByPath}
		r := start(t, dispatcher.Options{Store: sharded(4), Deliverer: rec})
		r.registerDead(t, 7, "orders/a", 500)
		r.registerDead(t, 5, "orders/b", 410)
		r.registerDead(t, 4, "bills/a", 500)

		w := r.work(t, store.WorkOrder{
			Action: store.WorkRevive, Filter: store.Filter{Topic: "orders", Status: 500},
			URL: "https://new.example/fixed",
		})
		require.Equal(t, store.WorkCounts{Matched: 7, Done: 7}, w.WorkCounts)
		time.Sleep(10 * time.Second)
		for i := range 7 {
			j := r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: fmt.Sprintf("orders-a-500-%04d", i)})
			require.Equal(t, job.Delivered, j.State)
			require.Equal(t, 1, j.Generation)
			require.Equal(t, 2, j.Attempts)
			require.Equal(t, "https://new.example/fixed", j.URL)
			require.Equal(t, "a", j.Lane, "its lane never changes")
		}
		require.Equal(t, "https://new.example/fixed", rec.calls()[len(rec.calls())-1].URL)

		require.EqualValues(t, 9, r.work(t, store.WorkOrder{Action: store.WorkRevive}).Done)
		time.Sleep(10 * time.Second)
		ids, _ := r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 9, "they died again, of one attempt each")
		require.Equal(t, 2, r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: ids[0]}).Attempts)
	})
}

func TestWork_ChecksANewURL(t *testing.T) {
	r := start(t, dispatcher.Options{RegisterOnly: true, CheckURL: func(url string) error {
		if strings.Contains(url, "10.0.0.1") {
			return errors.New("it is private")
		}
		return nil
	}})
	edit := job.Edit{Fields: []string{"url"}, Spec: job.Spec{URL: "http://10.0.0.1/"}}
	for _, o := range []store.WorkOrder{
		{Action: store.WorkRevive, URL: "http://10.0.0.1/"}, {Action: store.WorkEdit, Edit: &edit},
	} {
		_, err := r.StartWork(t.Context(), job.DefaultNamespace, o)
		require.Equal(t, "/change/url", requireInvalid(t, err).Errors[0].Field)
	}
}

// readCounter counts concurrent reads of jobs, and reads of policies.
type readCounter struct {
	store.Store
	topics, atOnce, most atomic.Int32
}

func (w *readCounter) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if kind == store.KindTopic {
		w.topics.Add(1)
	}
	return w.Store.ListChanges(ctx, kind, since)
}

func (w *readCounter) Shards() []store.Shard {
	return storetest.WrapShards(w.Store, func(_ int, next store.Shard) store.Shard { return readCounterShard{next, w} })
}

type readCounterShard struct {
	store.Shard
	counter *readCounter
}

func (s readCounterShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := s.counter.atOnce.Add(1)
	for most := s.counter.most.Load(); now > most && !s.counter.most.CompareAndSwap(most, now); {
		most = s.counter.most.Load()
	}
	time.Sleep(time.Second)
	s.counter.atOnce.Add(-1)
	return s.Shard.Get(ctx, ref)
}

// scarceStore lists few jobs, or none, however many it has looked at.
type scarceStore struct {
	store.Store
	lists atomic.Int32
	fail  atomic.Int32 // the call that fails
}

func (s *scarceStore) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return scarceShard{next, s} })
}

type scarceShard struct {
	store.Shard
	*scarceStore
}

func (s scarceShard) List(_ context.Context, f store.Filter) (store.Page, error) {
	n := s.lists.Add(1)
	if n == s.fail.Load() {
		return store.Page{}, store.ErrUnavailable
	}
	time.Sleep(100 * time.Millisecond)
	page := store.Page{Scanned: f.ScanLimit, More: true, Reached: store.Position{Ended: true, At: int64(100_000 - n)}}
	if n%2 == 0 {
		page.Jobs = []job.Job{{
			Spec:     job.Spec{ID: fmt.Sprint(n)},
			Progress: job.Progress{State: job.Dead, FinishedAt: time.UnixMilli(page.Reached.At)},
		}}
		page.Ties = []string{"x"}
	}
	return page, nil
}

func TestList_FillsPagesWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &scarceStore{Store: model()}
		r := start(t, dispatcher.Options{Store: s, RegisterOnly: true})
		f := store.Filter{Namespace: job.DefaultNamespace, Limit: 3}
		page, err := r.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Jobs, 3)
		require.EqualValues(t, 6, s.lists.Load())
		require.Equal(t, 6*5000, page.Scanned)
		require.Equal(t, store.Position{Ended: true, At: 100_000 - 6}, page.Reached)

		f.Limit, f.After = 100, page.Reached
		page, err = r.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Jobs, 5, "a second is over")
		require.True(t, page.More)
		require.Equal(t, store.Position{Ended: true, At: 100_000 - 16}, page.Reached)

		f.Within = 150 * time.Millisecond
		page, err = r.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1, "its time is over")
		require.True(t, page.More)
		require.Equal(t, store.Position{Ended: true, At: 100_000 - 18}, page.Reached)
		f.Within = 0

		s.fail.Store(21)
		page, err = r.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1, "those before the failure")
		require.Equal(t, store.Position{Ended: true, At: 100_000 - 20}, page.Reached)
		require.True(t, page.More)
		s.fail.Store(22)
		_, err = r.List(t.Context(), f)
		require.ErrorIs(t, err, store.ErrUnavailable)
	})
}

func TestGroups_CountTheLargestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Store: sharded(4), Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 7, "a/1", 500)
		r.registerDead(t, 600, "a/2", 410)
		r.registerDead(t, 3, "b/1", 500)
		dead := store.Filter{Namespace: job.DefaultNamespace, States: []job.State{job.Dead}}
		counts := func(f store.Filter, by store.GroupBy) (rows []string) {
			all, err := r.Groups(t.Context(), f, by)
			require.NoError(t, err)
			require.True(t, all.Exact)
			total := 0
			for _, g := range all.Groups {
				rows = append(rows, fmt.Sprintf("%d %s %s %s %d", g.Count, g.Topic, g.Lane, g.Reason, g.Status))
				total += int(g.Count)
				sample := r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: g.ID})
				require.Equal(t, g.EndedAt, sample.FinishedAt)
				require.Equal(t, g.GroupKey, by.Key(&sample))
			}
			require.GreaterOrEqual(t, all.Scanned, total)
			return rows
		}
		require.Equal(t, []string{"607 a   0", "3 b   0"}, counts(dead, store.GroupBy{Topic: true}))
		require.Equal(t, []string{"600 a 2 gave_up 410", "7 a 1 exhausted 500", "3 b 1 exhausted 500"},
			counts(dead, store.GroupBy{Topic: true, Lane: true, Reason: true, Status: true}))
		require.Equal(t, []string{"600   gave_up 0", "10   exhausted 0"}, counts(dead, store.GroupBy{Reason: true}))
		dead.Status = 500
		require.Equal(t, []string{"10  1  0"}, counts(dead, store.GroupBy{Lane: true}))
		dead.Status = 404
		require.Empty(t, counts(dead, store.GroupBy{Lane: true}))
	})
}

func TestGroups_AreBoundedInNumberAndTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 1001, "orders/x", 500, func(i int, n *job.New) { n.Lane = fmt.Sprintf("%04d", i) })
		r.registerDead(t, 2, "orders/0000", 410)
		r.registerDead(t, 2, "orders/1000", 410)
		all, err := r.Groups(t.Context(), store.Filter{Namespace: job.DefaultNamespace, States: []job.State{job.Dead}},
			store.GroupBy{Lane: true})
		require.NoError(t, err)
		require.Len(t, all.Groups, 1000)
		require.False(t, all.Exact)
		require.Equal(t, 1005, all.Scanned)
		require.Equal(t, []int64{3, 3, 1}, []int64{all.Groups[0].Count, all.Groups[1].Count, all.Groups[2].Count},
			"known groups are counted on")

		r = start(t, dispatcher.Options{Store: &scarceStore{Store: model()}, RegisterOnly: true})
		all, err = r.Groups(t.Context(), store.Filter{Namespace: job.DefaultNamespace}, store.GroupBy{Reason: true})
		require.NoError(t, err)
		require.False(t, all.Exact)
		require.EqualValues(t, 10, all.Groups[0].Count, "two seconds are over")
		for within, scanned := range map[time.Duration]int{
			time.Millisecond: 100, 500 * time.Millisecond: 5 * 5000, 10 * time.Second: 100 * 5000,
		} {
			began := time.Now()
			all, err = r.Groups(t.Context(), store.Filter{Namespace: job.DefaultNamespace},
				store.GroupBy{Reason: true, Within: within})
			require.NoError(t, err)
			require.False(t, all.Exact)
			require.Equal(t, scanned, all.Scanned, within)
			require.LessOrEqual(t, time.Since(began), within+100*time.Millisecond, "up to the end of a page")
		}
	})
}

func TestGroupIDs_ReadsInSmallBatchesWithinItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readCounter{Store: model()}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 900, "orders/a", 500)
		var ids []string
		for i := range 900 {
			ids = append(ids, fmt.Sprintf("orders-a-500-%04d", i))
		}
		found, err := r.GroupIDs(t.Context(), job.DefaultNamespace, ids, []job.State{job.Dead},
			store.GroupBy{Topic: true, Reason: true})
		require.NoError(t, err)
		require.False(t, found.Exact, "each read takes a second")
		require.Len(t, found.Groups, 1)
		require.EqualValues(t, 2*4, found.Groups[0].Count, "two seconds")
		found, err = r.GroupIDs(t.Context(), job.DefaultNamespace, ids, []job.State{job.Dead},
			store.GroupBy{Within: 5 * time.Second})
		require.NoError(t, err)
		require.False(t, found.Exact)
		require.EqualValues(t, 5*4, found.Groups[0].Count, "five seconds")
		require.LessOrEqual(t, s.most.Load(), int32(4))

		ctx, leave := context.WithTimeout(t.Context(), time.Second/2)
		defer leave()
		_, err = r.GroupIDs(ctx, job.DefaultNamespace, ids, []job.State{job.Dead}, store.GroupBy{Topic: true})
		require.Error(t, err, "the client has left")
	})
}

// unreadableJobStore is a store that fails to read one job.
type unreadableJobStore struct {
	store.Store
	err error
}

func (u *unreadableJobStore) Shards() []store.Shard {
	return storetest.WrapShards(u.Store,
		func(_ int, next store.Shard) store.Shard { return unreadableJobShard{next, u} })
}

type unreadableJobShard struct {
	store.Shard
	*unreadableJobStore
}

func (s unreadableJobShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	if ref.ID == "orders-a-500-0000" {
		return job.Job{}, s.err
	}
	return s.Shard.Get(ctx, ref)
}

func TestWork_ShowsNoErrorsOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreadableJobStore{Store: model(), err: errors.New("dial 10.0.0.7: malformed record")}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 2, "orders/a", 500)
		ids := []string{"orders-a-500-0000", "orders-a-500-0001", "unknown"}
		found, err := r.GroupIDs(t.Context(), job.DefaultNamespace, ids, []job.State{job.Dead},
			store.GroupBy{Topic: true})
		require.NoError(t, err)
		require.EqualValues(t, 1, found.Groups[0].Count)
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive, IDs: ids})
		require.Equal(t, store.WorkCounts{Matched: 3, Done: 1, Failed: 1, Skipped: 1, Failures: []store.WorkFailure{
			{ID: "orders-a-500-0000", Reason: "internal error: see the server's log"},
			{ID: "unknown", Reason: "not found"},
		}}, w.WorkCounts)

		s.err = store.ErrUnavailable
		_, err = r.GroupIDs(t.Context(), job.DefaultNamespace, ids, []job.State{job.Dead}, store.GroupBy{Topic: true})
		require.ErrorIs(t, err, store.ErrUnavailable, "the count would be wrong")
	})
}

func TestWork_ReturnsAResultPerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, shards := range []int{1, 4} {
			r := start(t, dispatcher.Options{Store: sharded(shards), Deliverer: &receiver{answer: statusByPath}})
			r.registerDead(t, 3, "orders/a", 500)
			r.registerDead(t, 1, "orders/b", 200)
			r.pauseTopics(t, "orders")
			waiting := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}}})
			w := r.work(t, store.WorkOrder{
				Action: store.WorkRevive, Rate: policy.Rate{Starts: 1, Per: time.Minute},
				IDs: []string{
					"orders-a-500-0000", "unknown", "orders-b-200-0000", "orders-a-500-0001",
					waiting.ID, "rb:work:x",
				},
			})
			require.Equal(t, store.WorkCounts{Matched: 6, Done: 2, Skipped: 4, Failures: []store.WorkFailure{
				{ID: "unknown", Reason: "not found"},
				{ID: "orders-b-200-0000", Reason: "the job is delivered"},
				{ID: waiting.ID, Reason: "the job is ready"},
				{ID: "rb:work:x", Reason: "not found"},
			}}, w.WorkCounts)
			w = r.work(t,
				store.WorkOrder{Action: store.WorkPurge, IDs: []string{"orders-a-500-0002", "orders-b-200-0000"}})
			require.EqualValues(t, 1, w.Done)
			require.EqualValues(t, 1, w.Skipped)
			_, err := r.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "orders-a-500-0002"})
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	})
}

func TestWork_IsNotAJobForClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive})
		ref := job.Ref{Namespace: job.DefaultNamespace, ID: "rb:work:" + w.ID}
		_, err := r.Get(t.Context(), ref)
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.Revive(t.Context(), store.Revival{Ref: ref})
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.Cancel(t.Context(), ref, store.Cancellation{})
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.RunNow(t.Context(), ref, 0, "")
		require.ErrorIs(t, err, store.ErrNotFound)
		_, err = r.Edit(t.Context(), ref, job.Edit{})
		require.ErrorIs(t, err, store.ErrNotFound)
		every := store.Filter{States: []job.State{job.Delivered, job.Dead, job.Cancelled}}
		require.Equal(t, store.WorkCounts{},
			r.work(t, store.WorkOrder{Action: store.WorkPurge, Filter: every}).WorkCounts, "work purges no work")
	})
}

func TestWork_ListsAtMostSomeFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		var ids []string
		for i := range 1200 {
			ids = append(ids, fmt.Sprint("unknown-", i))
		}
		w := r.work(t, store.WorkOrder{Action: store.WorkPurge, IDs: ids})
		require.Len(t, w.Failures, 100)
		require.EqualValues(t, 1200, w.Skipped)
	})
}

func TestPurge_RemovesDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Store: sharded(4), Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 1100, "orders/a", 500)
		r.registerDead(t, 20, "bills/a", 410)
		r.registerDead(t, 5, "bills/a", 200)
		w := r.work(t, store.WorkOrder{Action: store.WorkPurge, Filter: store.Filter{Reason: policy.ReasonExhausted}})
		require.Equal(t, store.WorkCounts{Matched: 1100, Done: 1100}, w.WorkCounts)
		ids, _ := r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 20)
		require.EqualValues(t, 20, r.work(t, store.WorkOrder{Action: store.WorkPurge}).Done)
		ids, _ = r.listDead(t, store.Filter{Limit: 100})
		require.Empty(t, ids)
		delivered := store.Filter{States: []job.State{job.Delivered}, Topic: "bills"}
		require.EqualValues(t, 5, r.work(t, store.WorkOrder{Action: store.WorkPurge, Filter: delivered}).Done)
	})
}

// slowListStore delays List, and calls a hook before Revive.
type slowListStore struct {
	store.Store
	page   time.Duration
	before func(items []store.Revival)
}

func (s *slowListStore) Shards() []store.Shard {
	return storetest.WrapShards(s.Store, func(_ int, next store.Shard) store.Shard { return slowListShard{next, s} })
}

type slowListShard struct {
	store.Shard
	*slowListStore
}

func (s slowListShard) List(ctx context.Context, f store.Filter) (store.Page, error) {
	time.Sleep(s.page)
	return s.Shard.List(ctx, f)
}

func (s slowListShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	if s.before != nil {
		s.before(items)
	}
	return s.Shard.Revive(ctx, token, items)
}

func TestRevive_SkipsAConcurrentlyRevivedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := model()
		s := &slowListStore{Store: base}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 5, "orders/a", 500)
		r.pauseTopics(t, "orders")
		s.before = func(items []store.Revival) {
			s.before = nil
			item := items[2]
			item.Actor = "jan"
			revived, err := base.Shards()[0].Revive(t.Context(), store.NewToken(), []store.Revival{item})
			require.NoError(t, err)
			require.NoError(t, revived[0].Err)
			purged, err := base.Shards()[0].Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: items[3].Ref}})
			require.NoError(t, err)
			require.NoError(t, purged[0])
		}
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive})
		require.Equal(t, store.WorkCounts{Matched: 5, Done: 3, Skipped: 2, Failures: []store.WorkFailure{
			{ID: "orders-a-500-0002", Reason: "changed since it was selected"},
			{ID: "orders-a-500-0003", Reason: "not found"},
		}}, w.WorkCounts)
		require.Equal(t, 1,
			r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: "orders-a-500-0002"}).Generation, "once")
	})
}

// A job that dies again during a bulk revival is not revived twice by it.
func TestRevive_RevivesEachDeadLetterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowListStore{Store: model()}
		rec := &receiver{answer: statusByPath}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		r.registerDead(t, 600, "orders/a", 500) // more than a batch
		s.page = 2 * time.Second                // they are dead again by the time of the next page
		w := r.work(t, store.WorkOrder{Action: store.WorkRevive})
		require.Equal(t, store.WorkCounts{Matched: 600, Done: 600}, w.WorkCounts)
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 1200)
	})
}

func TestRevive_StoreOutageFailsNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var away atomic.Bool
		faulty := storetest.Faulty(model(), func(method string) storetest.Fault {
			if away.Load() && method == "Revive" {
				return storetest.Before
			}
			return storetest.None
		})
		r := start(t, dispatcher.Options{Store: faulty, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 5, "orders/a", 500)
		away.Store(true)
		time.AfterFunc(time.Minute, func() { away.Store(false) })
		require.Equal(t, store.WorkCounts{Matched: 5, Done: 5},
			r.work(t, store.WorkOrder{Action: store.WorkRevive}).WorkCounts)
	})
}
