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
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, topic, 0, func(p *policy.Topic) error {
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

// everyDeadLetter selects every dead letter.
func everyDeadLetter() store.Selection {
	return store.Selection{Filter: store.Filter{Namespace: job.DefaultNamespace}}
}

func deadLetters(ids ...string) store.Selection {
	s := everyDeadLetter()
	s.IDs = ids
	return s
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
			future, _ := r.listDead(t, store.Filter{Limit: 100, Ended: store.TimeRange{After: time.Now().Add(time.Hour)}})
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

		counted := everyDeadLetter()
		counted.DryRun = true
		worked, err := r.ReviveDead(t.Context(), counted, store.RevivePlan{})
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 16}, worked)
		counted.Filter.Reason = policy.ReasonExhausted
		worked, err = r.PurgeDead(t.Context(), counted)
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 11}, worked)
		ids, _ := r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 16, "nothing was changed")

		some := everyDeadLetter()
		some.Filter.Topic, some.Filter.Status = "orders", 500
		worked, err = r.ReviveDead(t.Context(), some, store.RevivePlan{URL: "https://new.example/fixed"})
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 7, Done: 7}, worked)
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

		worked, err = r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{})
		require.NoError(t, err)
		require.EqualValues(t, 9, worked.Done)
		time.Sleep(10 * time.Second)
		ids, _ = r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 9, "they died again, of one attempt each")
		require.Equal(t, 2, r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: ids[0]}).Attempts)
	})
}

func TestRevive_ChecksANewURL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}, CheckURL: func(url string) error {
			if strings.Contains(url, "10.0.0.1") {
				return errors.New("it is private")
			}
			return nil
		}})
		r.registerDead(t, 1, "orders/a", 500)
		_, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{URL: "http://10.0.0.1/"})
		require.Equal(t, "/url", requireInvalid(t, err).Errors[0].Field)
		ids, _ := r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 1)
	})
}

// readCounter counts concurrent reads of jobs, and reads of policies.
type readCounter struct {
	store.Store
	topics, atOnce, most atomic.Int32
}

func (w *readCounter) ListDocuments(ctx context.Context, after store.DocumentKey, limit int, known int64) ([]store.Document, int64, error) {
	if after.Kind == store.KindTopic {
		w.topics.Add(1)
	}
	return w.Store.ListDocuments(ctx, after, limit, known)
}

func (w *readCounter) Shards() []store.Shard {
	return storetest.WrapShards(w.Store, func(_ int, next store.Shard) store.Shard { return readCounterShard{next, w} })
}

type readCounterShard struct {
	store.Shard
	*readCounter
}

func (s readCounterShard) ListDocuments(ctx context.Context, after store.DocumentKey, limit int, known int64) ([]store.Document, int64, error) {
	return s.Shard.ListDocuments(ctx, after, limit, known)
}

func (s readCounterShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	now := s.atOnce.Add(1)
	for most := s.most.Load(); now > most && !s.most.CompareAndSwap(most, now); most = s.most.Load() {
	}
	time.Sleep(time.Second)
	s.atOnce.Add(-1)
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
		page.Jobs = []job.Job{{Spec: job.Spec{ID: fmt.Sprint(n)}, Progress: job.Progress{State: job.Dead, FinishedAt: time.UnixMilli(page.Reached.At)}}}
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

		s.fail.Store(19)
		page, err = r.List(t.Context(), f)
		require.NoError(t, err)
		require.Len(t, page.Jobs, 1, "those before the failure")
		require.Equal(t, store.Position{Ended: true, At: 100_000 - 18}, page.Reached)
		require.True(t, page.More)
		s.fail.Store(20)
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
		all, err := r.Groups(t.Context(), store.Filter{Namespace: job.DefaultNamespace, States: []job.State{job.Dead}}, store.GroupBy{Lane: true})
		require.NoError(t, err)
		require.Len(t, all.Groups, 1000)
		require.False(t, all.Exact)
		require.Equal(t, 1005, all.Scanned)
		require.Equal(t, []int64{3, 3, 1}, []int64{all.Groups[0].Count, all.Groups[1].Count, all.Groups[2].Count}, "known groups are counted on")

		r = start(t, dispatcher.Options{Store: &scarceStore{Store: model()}, RegisterOnly: true})
		all, err = r.Groups(t.Context(), store.Filter{Namespace: job.DefaultNamespace}, store.GroupBy{Reason: true})
		require.NoError(t, err)
		require.False(t, all.Exact)
		require.EqualValues(t, 10, all.Groups[0].Count, "two seconds are over")
	})
}

func TestDeadLetters_AreCountedInSmallBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &readCounter{Store: model()}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 900, "orders/a", 500)
		var ids []string
		for i := range 900 {
			ids = append(ids, fmt.Sprintf("orders-a-500-%04d", i))
		}
		chosen := deadLetters(ids...)
		chosen.DryRun = true
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		worked, err := r.PurgeDead(ctx, chosen)
		require.NoError(t, err)
		require.True(t, worked.More)
		require.NoError(t, ctx.Err(), "there is time for the answer")
		require.Greater(t, worked.Matched, int64(200))
		require.LessOrEqual(t, s.most.Load(), int32(64))

		worked, err = r.PurgeDead(t.Context(), chosen)
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 900}, worked)
	})
}

func TestRevive_ContinuationKeepsItsPace(t *testing.T) {
	second := policy.Rate{Starts: 1, Per: time.Second}
	for name, plan := range map[string]store.RevivePlan{"all": {Rate: second}, "lanes": {LaneRate: second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slowListStore{Store: model(), page: 2 * time.Second}
				r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
				r.registerDead(t, 1700, "orders/a", 500)
				r.pauseTopics(t, "orders")
				calls := 0
				began := time.Now()
				for more := true; more; calls++ {
					ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second) // for six pages
					worked, err := r.ReviveDead(ctx, everyDeadLetter(), plan)
					cancel()
					require.NoError(t, err)
					took := 10 * time.Second // from the first revival to the answer
					if !worked.More {
						took = worked.NextDelay - plan.Delay - time.Duration(worked.Done)*time.Second
						require.LessOrEqual(t, took, time.Duration(0))
						took = -took
					}
					require.Equal(t, plan.Delay+time.Duration(worked.Done)*time.Second-took, worked.NextDelay)
					plan.Delay, more = worked.NextDelay, worked.More
				}
				require.Equal(t, 2, calls)
				page := s.page
				s.page = 0
				waits := r.scheduledDelays(t, "orders", "a")
				require.Len(t, waits, 1700)
				for i := range waits[1:] {
					require.GreaterOrEqual(t, waits[i+1]-waits[i], time.Second, "no faster than the pace, %d", i)
				}
				require.LessOrEqual(t, waits[1699]+time.Since(began), 1700*time.Second+13*page)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 3, "orders/a", 500)
		r.pauseTopics(t, "orders")
		worked, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{Delay: time.Minute})
		require.NoError(t, err)
		require.Zero(t, worked.NextDelay, "nothing is paced")
		require.Equal(t, []time.Duration{time.Minute, time.Minute, time.Minute}, r.scheduledDelays(t, "orders", "a"))
	})
}

// scheduledDelays returns the waits of the waiting jobs, in order.
func (r *fixture) scheduledDelays(t *testing.T, topic, lane string) []time.Duration {
	t.Helper()
	var waits []time.Duration
	f := store.Filter{Namespace: job.DefaultNamespace, Topic: topic, Lane: lane, States: []job.State{job.Scheduled, job.Ready}, Limit: 500}
	for more := true; more; {
		page, err := r.List(t.Context(), f)
		require.NoError(t, err)
		for _, j := range page.Jobs {
			waits = append(waits, time.Until(j.DueAt))
		}
		f.After, more = page.Reached, page.More
	}
	slices.Sort(waits)
	return waits
}

func TestRevive_IsPacedEvenlyAndStartsAtOnce(t *testing.T) {
	every := func(step time.Duration, n int) (waits []time.Duration) {
		for i := range n {
			waits = append(waits, time.Duration(i)*step)
		}
		return waits
	}
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		const many = 600 // more than a page
		r.registerDead(t, many, "orders/a", 500)
		r.registerDead(t, 10, "orders/b", 500)
		r.pauseTopics(t, "orders")
		worked, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{Rate: policy.Rate{Starts: 2, Per: time.Second}})
		require.NoError(t, err)
		require.EqualValues(t, many+10, worked.Done)
		require.Equal(t, every(500*time.Millisecond, many+10), r.scheduledDelays(t, "orders", ""))
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 20, "orders/a", 500)
		r.registerDead(t, 10, "orders/b", 500)
		r.pauseTopics(t, "orders")
		_, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{LaneRate: policy.Rate{Starts: 1, Per: 3 * time.Second}})
		require.NoError(t, err)
		require.Equal(t, every(3*time.Second, 20), r.scheduledDelays(t, "orders", "a"))
		b := r.scheduledDelays(t, "orders", "b")
		require.Less(t, b[0], 100*time.Millisecond)
		for i := range b {
			require.Equal(t, time.Duration(i)*3*time.Second, b[i]-b[0], "each lane by itself")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 20, "orders/a", 500)
		r.registerDead(t, 10, "orders/b", 500)
		r.pauseTopics(t, "orders")
		_, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{
			Rate: policy.Rate{Starts: 1, Per: time.Second}, LaneRate: policy.Rate{Starts: 1, Per: 2 * time.Second},
		})
		require.NoError(t, err)
		a, b := r.scheduledDelays(t, "orders", "a"), r.scheduledDelays(t, "orders", "b")
		require.Equal(t, every(2*time.Second, 20), a, "the slower of the two holds")
		for i := range b {
			require.Equal(t, time.Duration(1+2*i)*time.Second, b[i], "what one lane leaves the other takes, at its own rate too")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 200, "orders/a", 500)
		r.pauseTopics(t, "orders")
		_, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{Rate: policy.Rate{Starts: 1, Per: policy.MaxPer}})
		require.NoError(t, err)
		waits := r.scheduledDelays(t, "orders", "a")
		require.Zero(t, waits[0])
		require.Equal(t, job.MaxAhead, waits[199], "no wait is longer than a job may have")
	})
}

// A hundred dead jobs in one lane and thirty in the next: neither rate is exceeded, in any window,
// whatever the pages, and however often the call ends early.
func TestReviveDead_KeepsEveryRateInEveryWindow(t *testing.T) {
	rates := map[string]store.RevivePlan{
		"both":              {Rate: policy.Rate{Starts: 50, Per: time.Second}, LaneRate: policy.Rate{Starts: 5, Per: time.Second}},
		"odd ones":          {Rate: policy.Rate{Starts: 7, Per: time.Second}, LaneRate: policy.Rate{Starts: 3, Per: 1700 * time.Millisecond}},
		"lanes alone":       {LaneRate: policy.Rate{Starts: 5, Per: time.Second}},
		"a fast lane":       {Rate: policy.Rate{Starts: 30, Per: time.Second}, LaneRate: policy.Rate{Starts: 90, Per: time.Second}},
		"all alone":         {Rate: policy.Rate{Starts: 40, Per: time.Second}},
		"faster than calls": {Rate: policy.Rate{Starts: 1000, Per: time.Second}, LaneRate: policy.Rate{Starts: 300, Per: time.Second}},
	}
	for name, plan := range rates {
		for how, s := range map[string]*slowListStore{
			"at once": {Store: model()}, "slowly": {Store: model(), page: 700 * time.Millisecond},
			"in requests": {Store: model(), page: 4 * time.Second}, // four pages each
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					page := s.page
					s.page = 0
					s.before = func([]store.Revival) { time.Sleep(7 * time.Millisecond) } // the way to the store
					r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
					r.registerDead(t, 100, "orders/a", 500)
					r.registerDead(t, 30, "orders/z", 500)
					r.registerDead(t, 40, "orders/m", 500)
					r.registerDead(t, 25, "bills/a", 500)
					r.pauseTopics(t, "orders", "bills")
					s.page = page
					plan := plan
					for more := true; more; {
						ctx, cancel := context.WithTimeout(t.Context(), 16*time.Second)
						worked, err := r.ReviveDead(ctx, everyDeadLetter(), plan)
						cancel()
						require.NoError(t, err)
						plan.Delay, more = worked.NextDelay, worked.More
					}
					s.page = 0
					lanes := [][]time.Duration{r.scheduledDelays(t, "orders", "a"), r.scheduledDelays(t, "orders", "z"), r.scheduledDelays(t, "orders", "m"), r.scheduledDelays(t, "bills", "a")}
					whole := slices.Sorted(slices.Values(slices.Concat(lanes...)))
					require.Len(t, whole, 195)
					requireRate(t, plan.Rate, whole)
					for _, lane := range lanes {
						requireRate(t, plan.LaneRate, lane)
					}
					if how == "at once" && plan.Rate.Limited() && plan.LaneRate.Limited() && name != "odd ones" {
						fastest := max(100*plan.LaneRate.Per/time.Duration(plan.LaneRate.Starts), 195*plan.Rate.Per/time.Duration(plan.Rate.Starts))
						require.LessOrEqual(t, whole[194]-whole[0], fastest+time.Second, "and none is slower than it must be")
					}
				})
			})
		}
	}
}

// requireRate requires that no window of a rate's length has more starts than the rate allows.
func requireRate(t *testing.T, rate policy.Rate, starts []time.Duration) {
	t.Helper()
	if !rate.Limited() {
		return
	}
	for i := range len(starts) - rate.Starts {
		require.GreaterOrEqual(t, starts[i+rate.Starts]-starts[i], rate.Per, "%d starts from %v on", rate.Starts+1, starts[i])
	}
}

// unreadableJobStore is a store that fails to read one job.
type unreadableJobStore struct {
	store.Store
	err error
}

func (u *unreadableJobStore) Shards() []store.Shard {
	return storetest.WrapShards(u.Store, func(_ int, next store.Shard) store.Shard { return unreadableJobShard{next, u} })
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

func TestRevive_DryRunListsAnUnreadableJobAsFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &unreadableJobStore{Store: model(), err: errors.New("malformed record")}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 2, "orders/a", 500)
		chosen := deadLetters("orders-a-500-0000", "orders-a-500-0001")
		chosen.DryRun = true
		worked, err := r.ReviveDead(t.Context(), chosen, store.RevivePlan{})
		require.NoError(t, err)
		require.Equal(t, []store.BulkFailure{{ID: "orders-a-500-0000", Err: s.err}}, worked.Failed)
		require.EqualValues(t, 2, worked.Matched)

		s.err = store.ErrUnavailable
		_, err = r.ReviveDead(t.Context(), chosen, store.RevivePlan{})
		require.ErrorIs(t, err, store.ErrUnavailable, "the count would be wrong")
	})
}

func TestRevive_ReturnsAResultPerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, shards := range []int{1, 4} {
			r := start(t, dispatcher.Options{Store: sharded(shards), Deliverer: &receiver{answer: statusByPath}})
			r.registerDead(t, 3, "orders/a", 500)
			r.registerDead(t, 1, "orders/b", 200)
			r.pauseTopics(t, "orders")
			waiting := r.register(t, job.New{Spec: job.Spec{Queue: job.Queue{Topic: "orders"}}})
			chosen := deadLetters("orders-a-500-0000", "unknown", "orders-b-200-0000", "orders-a-500-0001", waiting.ID, "orders-a-500-0000")
			chosen.DryRun = true
			worked, err := r.ReviveDead(t.Context(), chosen, store.RevivePlan{})
			require.NoError(t, err)
			require.EqualValues(t, 3, worked.Matched, "named twice, counted twice")
			require.Zero(t, worked.Done)
			require.Len(t, worked.Failed, 3)

			chosen.DryRun = false
			worked, err = r.ReviveDead(t.Context(), chosen, store.RevivePlan{Rate: policy.Rate{Starts: 1, Per: time.Minute}})
			require.NoError(t, err)
			require.EqualValues(t, 2, worked.Matched)
			require.EqualValues(t, 2, worked.Done)
			require.False(t, worked.More)
			failed := map[string]string{}
			for _, f := range worked.Failed {
				failed[f.ID] = f.Err.Error()
			}
			require.Equal(t, map[string]string{
				"unknown":           store.ErrNotFound.Error(),
				"orders-b-200-0000": "the job is delivered",
				waiting.ID:          "the job is ready",
				"orders-a-500-0000": "the job is ready", // by the time of its second turn
			}, failed)

			worked, err = r.PurgeDead(t.Context(), deadLetters("orders-a-500-0002", "orders-b-200-0000"))
			require.NoError(t, err)
			require.EqualValues(t, 1, worked.Done)
			require.Len(t, worked.Failed, 1)
			_, err = r.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: "orders-a-500-0002"})
			require.ErrorIs(t, err, store.ErrNotFound)
		}
	})
}

func TestRevive_ListsAtMostSomeFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: statusByPath}})
		var ids []string
		for i := range 1200 {
			ids = append(ids, fmt.Sprint("unknown-", i))
		}
		worked, err := r.PurgeDead(t.Context(), deadLetters(ids...))
		require.NoError(t, err)
		require.Len(t, worked.Failed, 100)
		require.Zero(t, worked.Matched)
	})
}

func TestPurge_RemovesDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Store: sharded(4), Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 1100, "orders/a", 500)
		r.registerDead(t, 20, "bills/a", 410)
		some := everyDeadLetter()
		some.Filter.Reason = policy.ReasonExhausted
		worked, err := r.PurgeDead(t.Context(), some)
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 1100, Done: 1100}, worked)
		ids, _ := r.listDead(t, store.Filter{Limit: 100})
		require.Len(t, ids, 20)
		worked, err = r.PurgeDead(t.Context(), everyDeadLetter())
		require.NoError(t, err)
		require.EqualValues(t, 20, worked.Done)
		ids, _ = r.listDead(t, store.Filter{Limit: 100})
		require.Empty(t, ids)
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

func (s slowListShard) Revive(ctx context.Context, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	if s.before != nil {
		s.before(items)
	}
	return s.Shard.Revive(ctx, token, items)
}

func TestBulk_ContinuesAfterItsTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowListStore{Store: model(), page: 2 * time.Second}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 1700, "orders/a", 500)
		r.pauseTopics(t, "orders")
		within := func(d time.Duration) store.BulkResult {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			worked, err := r.ReviveDead(ctx, everyDeadLetter(), store.RevivePlan{})
			require.NoError(t, err)
			require.NoError(t, ctx.Err(), "there is time for the answer")
			return worked
		}
		require.Equal(t, store.BulkResult{More: true}, within(4*time.Second))
		require.Equal(t, store.BulkResult{Matched: 996, Done: 996, More: true}, within(16*time.Second)) // 16, 32, 64, 128, 256, 500
		require.Equal(t, store.BulkResult{Matched: 704, Done: 704}, within(time.Minute))

		ids := make([]string, 10)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		worked, err := r.PurgeDead(ctx, deadLetters(ids...))
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{More: true}, worked)
	})
}

func TestRevive_SkipsAConcurrentlyRevivedJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := model()
		s := &slowListStore{Store: base}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 5, "orders/a", 500)
		r.pauseTopics(t, "orders")
		s.before = func(items []store.Revival) {
			revived, err := base.Shards()[0].Revive(t.Context(), store.NewToken(), items[2:3])
			require.NoError(t, err)
			require.NoError(t, revived[0].Err)
			purged, err := base.Shards()[0].Purge(t.Context(), store.NewToken(), []store.Removal{{Ref: items[3].Ref}})
			require.NoError(t, err)
			require.NoError(t, purged[0])
		}
		worked, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{})
		require.NoError(t, err)
		require.EqualValues(t, 3, worked.Matched)
		require.EqualValues(t, 3, worked.Done)
		require.Len(t, worked.Failed, 2)
		require.Equal(t, "orders-a-500-0002", worked.Failed[0].ID)
		var state *store.StateError
		require.ErrorAs(t, worked.Failed[0].Err, &state)
		require.Equal(t, job.Ready, state.State)
		require.ErrorIs(t, worked.Failed[1].Err, store.ErrNotFound)
		require.Equal(t, 1, r.get(t, job.Ref{Namespace: job.DefaultNamespace, ID: "orders-a-500-0002"}).Generation, "once")
	})
}

// A job that dies again during a bulk revival is not revived twice by it.
func TestRevive_RevivesEachDeadLetterOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowListStore{Store: model()}
		rec := &receiver{answer: statusByPath}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		r.registerDead(t, 1200, "orders/a", 500)
		s.page = 10 * time.Second // they are dead again by the time of the next page
		worked, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{})
		require.NoError(t, err)
		require.Equal(t, store.BulkResult{Matched: 1200, Done: 1200}, worked)
		time.Sleep(time.Minute)
		require.Len(t, rec.calls(), 2400)
	})
}

func TestRevive_StoreOutageFailsNoJob(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := model()
		var away atomic.Bool
		faulty := storetest.Faulty(s, func(method string) storetest.Fault {
			if away.Load() && (method == "Revive" || method == "Purge") {
				return storetest.Before
			}
			return storetest.None
		})
		r := start(t, dispatcher.Options{Store: faulty, Deliverer: &receiver{answer: statusByPath}})
		r.registerDead(t, 5, "orders/a", 500)
		away.Store(true)
		worked, err := r.ReviveDead(t.Context(), everyDeadLetter(), store.RevivePlan{})
		require.NoError(t, err)
		require.EqualValues(t, 5, worked.Matched)
		require.Zero(t, worked.Done)
		require.Len(t, worked.Failed, 5)
		require.ErrorIs(t, worked.Failed[0].Err, store.ErrUnavailable)
	})
}
