package dispatcher_test

import (
	"context"
	"errors"
	"fmt"
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

// subscribe makes a lane of the topic orders subscribe to patterns.
func (r *fixture) subscribe(t *testing.T, lane string, labels map[string]string, patterns ...string) {
	t.Helper()
	_, err := r.ChangeLane(t.Context(), job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: lane},
		store.ChangeOptions{}, func(l *policy.Lane) error {
			l.URL = "https://" + lane + ".example/hook"
			l.Subscribe, l.SubscribeLabels = patterns, labels
			return nil
		})
	require.NoError(t, err)
}

func (r *fixture) send(t *testing.T, e store.EventSpec) store.Event {
	t.Helper()
	e.Job.Topic = "orders"
	sent := r.SendEvents(t.Context(), job.DefaultNamespace, "shop", []store.EventSpec{e})[0]
	require.NoError(t, sent.Err)
	return sent.Event
}

func lanesOf(e store.Event) (lanes []string) {
	for _, lane := range e.Lanes {
		lanes = append(lanes, lane.Lane)
	}
	return lanes
}

func TestEvents_ReachEachSubscribedLaneOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		r.subscribe(t, "all", nil, "*")
		r.subscribe(t, "paid", nil, "order.paid", "order.*")
		r.subscribe(t, "eu", map[string]string{"region": "eu"}, "order.**")
		r.subscribe(t, "users", nil, "user.*")
		e := store.EventSpec{ID: "e1", Type: "order.paid"}
		e.Job.Body, e.Job.BodyKind = []byte(`{"order":1}`), job.BodyJSON
		sent := r.send(t, e)
		require.Equal(t, []string{"all", "paid"}, lanesOf(sent))
		require.True(t, sent.Expanded)
		require.Equal(t, int64(2), sent.Jobs)
		time.Sleep(time.Second)
		got := make(map[string]job.Request)
		for _, c := range to.calls() {
			require.NotContains(t, got, c.Queue.Lane)
			got[c.Queue.Lane] = c.Request
		}
		require.Len(t, got, 2)
		for _, lane := range sent.Lanes {
			request := got[lane.Lane]
			require.Equal(t, lane.JobID, request.Ref.ID)
			require.Equal(t, "https://"+lane.Lane+".example/hook", request.URL)
			require.Equal(t, `{"order":1}`, string(request.Body))
			header, err := request.HeaderAt(time.Now())
			require.NoError(t, err)
			require.Equal(t, []string{"order.paid"}, header["Ringback-Event"])
			require.Equal(t, []string{"e1"}, header["Ringback-Event-Id"])
			j, err := r.Get(t.Context(), request.Ref)
			require.NoError(t, err)
			require.Equal(t, "e1", j.Origin)
			require.Equal(t, "shop", j.CreatedBy)
		}
		shown, err := r.Event(t.Context(), job.DefaultNamespace, "e1")
		require.NoError(t, err)
		require.Equal(t, &store.EventCounts{Delivered: 2, Exact: true}, shown.Counts)
		require.Equal(t, sent.Lanes, shown.Lanes)

		again := r.send(t, e)
		require.True(t, again.Known)
		require.Equal(t, sent.Lanes, again.Lanes)
		e.Job.Topic, e.Type = "orders", "order.shipped"
		conflict := r.SendEvents(t.Context(), job.DefaultNamespace, "shop", []store.EventSpec{e})[0]
		require.ErrorAs(t, conflict.Err, new(*job.TakenError))
		time.Sleep(time.Minute)
		require.Len(t, to.calls(), 2)

		labelled := store.EventSpec{Type: "order.paid.late"}
		labelled.Job.Labels = map[string]string{"region": "eu"}
		require.Equal(t, []string{"all", "eu"}, lanesOf(r.send(t, labelled)))
	})
}

func TestEvents_FindTheirLanesWhenTheyAreDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		r.subscribe(t, "gone", nil, "*")
		e := store.EventSpec{ID: "later", Type: "a"}
		e.Job.Delay, e.Job.ExpiresIn = time.Hour, 2*time.Hour
		sent := r.send(t, e)
		require.False(t, sent.Expanded)
		require.Empty(t, sent.Lanes)
		r.subscribe(t, "gone", nil)
		r.subscribe(t, "new", nil, "*")
		time.Sleep(time.Hour + time.Second)
		shown, err := r.Event(t.Context(), job.DefaultNamespace, "later")
		require.NoError(t, err)
		require.Equal(t, []string{"new"}, lanesOf(shown))
		require.True(t, shown.Expanded)
		require.Len(t, to.calls(), 1)
		made, err := r.Get(t.Context(), job.Ref{Namespace: job.DefaultNamespace, ID: shown.Lanes[0].JobID})
		require.NoError(t, err)
		require.Equal(t, shown.CreatedAt.Add(2*time.Hour), made.ExpiresAt)
	})
}

func TestEvents_NameLanesWhoseJobIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		for _, lane := range []string{"a", "c"} {
			r.subscribe(t, lane, nil, "*")
		}
		_, err := r.ChangeLane(t.Context(), job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "b"},
			store.ChangeOptions{}, func(l *policy.Lane) error {
				l.Subscribe = []string{"*"} // and neither it nor the topic has a URL
				return nil
			})
		require.NoError(t, err)
		r.send(t, store.EventSpec{ID: "e", Type: "x"})
		time.Sleep(time.Second)
		shown, err := r.Event(t.Context(), job.DefaultNamespace, "e")
		require.NoError(t, err)
		require.Equal(t, []string{"a", "c"}, lanesOf(shown))
		require.Len(t, shown.Refused, 1)
		require.Equal(t, "b", shown.Refused[0].Lane)
		require.Contains(t, shown.Refused[0].Reason, "is required")
		require.Len(t, to.calls(), 2)
	})
}

func TestEvents_WithoutSubscribersHaveNoJobs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		sent := r.send(t, store.EventSpec{ID: "e", Type: "x"})
		require.True(t, sent.Expanded)
		require.Zero(t, sent.Jobs)
		r.subscribe(t, "late", nil, "*")
		time.Sleep(time.Minute)
		require.Empty(t, to.calls(), "it did not subscribe when the event was sent")
		require.Equal(t, []string{"late"}, lanesOf(r.send(t, store.EventSpec{Type: "x"})), "what this process changed")

		e := store.EventSpec{ID: "expired", Type: "x"}
		e.Job.Topic, e.Job.Delay, e.Job.ExpiresAt = "orders", time.Hour, time.Now().Add(time.Minute)
		refused := r.SendEvents(t.Context(), job.DefaultNamespace, "shop", []store.EventSpec{e})[0]
		require.ErrorAs(t, refused.Err, new(*job.InvalidError))
		e.Job.Delay = 0
		require.False(t, r.send(t, e).Known)
		time.Sleep(time.Hour)
		require.True(t, r.send(t, e).Known, "it was sent in time")
	})
}

// lostReplies loses the replies of some settlements of events, which have taken effect.
type lostReplies struct {
	store.Store
	left atomic.Int32
}

func (l *lostReplies) Shards() []store.Shard {
	return storetest.WrapShards(l.Store, func(_ int, next store.Shard) store.Shard { return lostReply{next, l} })
}

type lostReply struct {
	store.Shard
	of *lostReplies
}

func (l lostReply) Settle(
	ctx context.Context, tok store.Token, it []store.Settlement, n *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	errs, claimed, err := l.Shard.Settle(ctx, tok, it, n)
	if len(it) > 0 && it[0].Queue.Topic == job.EventTopic && l.of.left.Add(-1) >= 0 {
		return nil, store.ClaimResult{}, &store.UnavailableError{Reason: "the reply was lost", Err: errors.New("lost")}
	}
	return errs, claimed, err
}

func TestEvents_MakeEachJobOnceOfManyLanesAndLostReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &lostReplies{Store: storetest.NewModel(storetest.ModelOptions{Shards: 3})}
		s.left.Store(5)
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: s, Deliverer: to})
		const lanes = 2300
		for i := range lanes {
			r.subscribe(t, fmt.Sprintf("lane-%04d", i), nil, "*")
		}
		e := store.EventSpec{ID: "wide", Type: "x"}
		e.Job.Topic = "orders"
		preview, err := r.PreviewEvent(t.Context(), job.DefaultNamespace, "shop", e)
		require.NoError(t, err)
		require.Equal(t, int64(lanes), preview.Jobs)
		require.Len(t, preview.Lanes, store.MaxEventLanes)
		e.Job.Body, e.Job.BodyKind = []byte(strings.Repeat("b", 10_000)), job.BodyText
		require.False(t, r.send(t, e).Expanded)
		time.Sleep(5 * time.Minute)
		seen := make(map[string]int)
		for _, c := range to.calls() {
			seen[c.Queue.Lane]++
		}
		require.Len(t, seen, lanes)
		require.Len(t, to.calls(), lanes)
		shown, err := r.Event(t.Context(), job.DefaultNamespace, "wide")
		require.NoError(t, err)
		require.True(t, shown.Expanded)
		require.Equal(t, int64(lanes), shown.Jobs)
		require.Len(t, shown.Lanes, store.MaxEventLanes)
		require.Equal(t, &store.EventCounts{Delivered: store.MaxEventLanes}, shown.Counts)

		e.ID, e.Job.Topic = "heavy", "orders"
		e.Job.Body = []byte(strings.Repeat("b", 64<<10))
		refused := r.SendEvents(t.Context(), job.DefaultNamespace, "shop", []store.EventSpec{e})[0]
		require.ErrorContains(t, refused.Err, "is too large for 2300 lanes")
	})
}

// replay sends events again, and returns the work when it has ended.
func (r *fixture) replay(t *testing.T, o store.WorkOrder) store.Work {
	t.Helper()
	o.Action, o.Filter.Namespace, o.Actor = store.WorkReplay, job.DefaultNamespace, "ops"
	counted, err := r.GroupReplay(t.Context(), job.DefaultNamespace, o, store.GroupBy{Topic: true})
	require.NoError(t, err)
	require.True(t, counted.Exact)
	begun, err := r.StartWork(t.Context(), job.DefaultNamespace, o)
	require.NoError(t, err)
	time.Sleep(30 * time.Second)
	w, err := r.Work(t.Context(), job.DefaultNamespace, begun.ID)
	require.NoError(t, err)
	require.Equal(t, store.WorkDone, w.State)
	expected := int64(0)
	for _, g := range counted.Groups {
		require.Equal(t, "orders", g.Topic)
		expected += g.Count
	}
	require.Equal(t, expected, w.Done, "as it was counted")
	return w
}

func TestEvents_AreSentAgainToThoseThatMissedThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: func(ctx context.Context, c job.Request) policy.Result {
			if c.Ref.ID == job.EventJobID("e2", "orders", "down") {
				return policy.Result{Status: 410}
			}
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Deliverer: to})
		for _, lane := range []string{"down", "up"} {
			r.subscribe(t, lane, nil, "order.*")
		}
		for i, name := range []string{"order.paid", "order.paid", "order.shipped", "user.new"} {
			e := store.EventSpec{ID: fmt.Sprint("e", i+1), Type: name}
			e.Job.Body, e.Job.BodyKind = []byte(`{"n":1}`), job.BodyJSON
			e.Job.ExpiresIn = 10 * time.Second
			r.send(t, e)
		}
		time.Sleep(time.Minute)
		sent := len(to.calls())
		require.Equal(t, 6, sent)
		got := func() (ids []string) {
			for _, c := range to.calls()[sent:] {
				event := job.EventOf(c.Ref.ID, c.Queue)
				ids = append(ids, event+" "+c.Queue.Lane)
				require.Equal(t, `{"n":1}`, string(c.Body))
				j, err := r.Get(t.Context(), c.Ref)
				require.NoError(t, err)
				require.Equal(t, "ops", j.CreatedBy)
				require.Equal(t, event, j.Origin)
			}
			sent = len(to.calls())
			return ids
		}
		w := r.replay(t, store.WorkOrder{Filter: store.Filter{Topic: "orders", States: []job.State{job.Dead}}})
		require.Equal(t, int64(1), w.Done)
		require.Equal(t, []string{"e2 down"}, got())

		r.subscribe(t, "late", nil, "*")
		r.replay(t, store.WorkOrder{Filter: store.Filter{
			Topic: "orders", Lane: "late", States: []job.State{store.Missed},
			Labels: []store.Label{{Key: job.LabelEvent, Value: "order.paid"}},
		}})
		require.ElementsMatch(t, []string{"e1 late", "e2 late"}, got())
		r.replay(t, store.WorkOrder{IDs: []string{"e4", "e3", "none"}})
		require.ElementsMatch(t, []string{"e4 late", "e3 down", "e3 late", "e3 up"}, got())

		paced := r.replay(t, store.WorkOrder{
			Filter: store.Filter{Topic: "orders", Lane: "up"}, Rate: policy.Rate{Starts: 1, Per: 5 * time.Second},
		})
		require.Equal(t, int64(3), paced.Done)
		calls := to.calls()[sent:]
		require.Len(t, calls, 3)
		for i := range calls[1:] {
			require.GreaterOrEqual(t, calls[i+1].at.Sub(calls[i].at), 5*time.Second-time.Millisecond)
		}
	})
}

func TestEvents_AreSentAgainToManyLanesInParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lanes = 1200
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		for i := range lanes {
			r.subscribe(t, fmt.Sprintf("l%04d", i), nil, "*")
		}
		r.send(t, store.EventSpec{ID: "e", Type: "a"})
		time.Sleep(10 * time.Second)
		require.Len(t, to.calls(), lanes)
		w := r.replay(t, store.WorkOrder{Filter: store.Filter{Topic: "orders"}})
		require.Equal(t, int64(lanes), w.Done)
		require.Len(t, to.calls(), 2*lanes)
	})
}

func TestEvents_AreWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: func(context.Context, job.Request) policy.Result {
			time.Sleep(3 * time.Second)
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Deliverer: to})
		for _, lane := range []string{"a", "b"} {
			r.subscribe(t, lane, nil, "*")
		}
		r.send(t, store.EventSpec{ID: "e", Type: "x"})
		began := time.Now()
		e, err := r.WaitForEvent(t.Context(), job.DefaultNamespace, "e", time.Minute)
		require.NoError(t, err)
		require.Equal(t, &store.EventCounts{Delivered: 2, Exact: true}, e.Counts)
		require.Less(t, time.Since(began), 10*time.Second)
		_, err = r.WaitForEvent(t.Context(), job.DefaultNamespace, "none", time.Minute)
		require.ErrorIs(t, err, store.ErrNotFound)
		r.subscribe(t, "a", nil)
		r.subscribe(t, "b", nil)
		r.send(t, store.EventSpec{ID: "none-subscribes", Type: "x"})
		e, err = r.WaitForEvent(t.Context(), job.DefaultNamespace, "none-subscribes", time.Minute)
		require.NoError(t, err)
		require.True(t, e.Expanded)
		require.Zero(t, e.Jobs)
	})
}

func TestLane_IsTested(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(500)}
		r := start(t, dispatcher.Options{Deliverer: to, CheckURL: func(url string) error {
			if url == "" {
				return errors.New("it is no URL")
			}
			return nil
		}})
		_, err := r.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", store.ChangeOptions{},
			func(p *policy.Topic) error {
				p.OnDead = &policy.Callback{URL: "https://callbacks.example/"}
				return nil
			})
		require.NoError(t, err)
		r.subscribe(t, "a", nil)
		q := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a"}
		got := r.TestLane(t.Context(), q, "order.paid", "ops")
		require.NoError(t, got.Err)
		ended, err := r.WaitForEnd(t.Context(), got.Job, time.Minute)
		require.NoError(t, err)
		require.Equal(t, job.Dead, ended.State, "it is attempted once")
		time.Sleep(time.Minute)
		require.Len(t, to.calls(), 1, "and has no callback")
		header, err := to.calls()[0].HeaderAt(time.Now())
		require.NoError(t, err)
		require.Equal(t, []string{"order.paid"}, header["Ringback-Event"])
		q.Lane = "none"
		require.ErrorAs(t, r.TestLane(t.Context(), q, "a", "").Err, new(*job.InvalidError), "it has no URL")
	})
}

func TestReplay_SaysWhyJobsAreRefusedOrWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		r.subscribe(t, "a", nil, "*")
		r.subscribe(t, "b", nil, "*")
		late, fine := store.EventSpec{ID: "late", Type: "x"}, store.EventSpec{ID: "fine", Type: "x"}
		late.Job.ExpiresAt = time.Now().Add(10 * time.Second)
		r.send(t, late)
		r.send(t, fine)
		_, err := r.ChangeLane(t.Context(), job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "c"},
			store.ChangeOptions{}, func(l *policy.Lane) error {
				l.Subscribe = []string{"*"} // and neither it nor the topic has a URL
				return nil
			})
		require.NoError(t, err)
		time.Sleep(time.Minute)
		sent := len(to.calls())
		o := store.WorkOrder{
			Action: store.WorkReplay, Filter: store.Filter{Namespace: job.DefaultNamespace, Topic: "orders"},
		}
		begun, err := r.StartWork(t.Context(), job.DefaultNamespace, o)
		require.NoError(t, err)
		time.Sleep(30 * time.Second)
		w, err := r.Work(t.Context(), job.DefaultNamespace, begun.ID)
		require.NoError(t, err)
		require.Equal(t, store.WorkDone, w.State)
		require.Equal(t, int64(2), w.Done)
		require.Len(t, to.calls(), sent+2, "what has expired is not made")
		reasons := make(map[string][]string)
		for _, f := range w.Failures {
			reasons[f.ID] = append(reasons[f.ID], f.Reason)
		}
		require.Len(t, reasons["late"], 3)
		require.Contains(t, reasons["late"][0], "lane a: ")
		require.Len(t, reasons["fine"], 1)
		require.Contains(t, reasons["fine"][0], "lane c: /url")
	})
}

func TestEvents_AreKeptForAWeek(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := start(t, dispatcher.Options{Deliverer: &receiver{answer: status(200)}})
		r.subscribe(t, "a", nil, "*")
		r.send(t, store.EventSpec{ID: "e", Type: "x"})
		time.Sleep(6 * 24 * time.Hour)
		_, err := r.Event(t.Context(), job.DefaultNamespace, "e")
		require.NoError(t, err)
		time.Sleep(25 * time.Hour)
		_, err = r.Event(t.Context(), job.DefaultNamespace, "e")
		require.ErrorIs(t, err, store.ErrNotFound)
	})
}

func TestReplay_WaitsForAQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		to := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Deliverer: to})
		for i := range 6 {
			r.subscribe(t, fmt.Sprint("lane-", i), nil, "*")
		}
		r.send(t, store.EventSpec{ID: "e", Type: "x"})
		time.Sleep(time.Minute)
		require.Len(t, to.calls(), 6)
		_, err := r.PutNamespace(t.Context(),
			job.Namespace{
				Name: job.DefaultNamespace, Quota: job.Quota{Rate: policy.Rate{Starts: 2, Per: 20 * time.Second}},
			}, 0)
		require.NoError(t, err)
		time.Sleep(10 * time.Second)
		begun, err := r.StartWork(t.Context(), job.DefaultNamespace, store.WorkOrder{
			Action: store.WorkReplay, Filter: store.Filter{Namespace: job.DefaultNamespace, Topic: "orders"},
		})
		require.NoError(t, err)
		time.Sleep(5 * time.Second)
		w, err := r.Work(t.Context(), job.DefaultNamespace, begun.ID)
		require.NoError(t, err)
		require.Equal(t, store.WorkRunning, w.State)
		require.Contains(t, w.WaitingFor, "quota")
		require.Less(t, w.Done, int64(6))
		time.Sleep(2 * time.Minute)
		w, err = r.Work(t.Context(), job.DefaultNamespace, begun.ID)
		require.NoError(t, err)
		require.Equal(t, store.WorkDone, w.State)
		require.Equal(t, int64(6), w.Done)
		require.Empty(t, w.WaitingFor)
		require.Len(t, to.calls(), 12)
	})
}

// deafStore does not say what changed in the settings of lanes, while it is deaf.
type deafStore struct {
	store.Store
	deaf atomic.Bool
}

type deafShard struct {
	store.Shard
	of *deafStore
}

func (s *deafStore) Shards() []store.Shard {
	var all []store.Shard
	for _, shard := range s.Store.Shards() {
		all = append(all, deafShard{shard, s})
	}
	return all
}

func (s deafShard) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	if s.of.deaf.Load() && kind == store.KindLane {
		return store.Changes{}, &store.UnavailableError{Reason: "it is deaf"}
	}
	return s.Shard.ListChanges(ctx, kind, since)
}

func TestEvents_AreRefusedRatherThanLeaveOutALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := model()
		s := &deafStore{Store: all}
		r := start(t, dispatcher.Options{Store: s, Deliverer: &receiver{answer: status(200)}})
		other := start(t, dispatcher.Options{Store: all, RegisterOnly: true})
		other.subscribe(t, "a", nil, "*")
		require.Equal(t, []string{"a"}, lanesOf(r.send(t, store.EventSpec{Type: "x"})))
		s.deaf.Store(true)
		other.subscribe(t, "b", nil, "*")
		time.Sleep(5 * time.Second)
		e := store.EventSpec{ID: "e", Type: "x"}
		e.Job.Topic = "orders"
		got := r.SendEvents(t.Context(), job.DefaultNamespace, "", []store.EventSpec{e})[0]
		require.ErrorIs(t, got.Err, store.ErrUnavailable)
		s.deaf.Store(false)
		time.Sleep(2 * time.Second)
		require.Equal(t, []string{"a", "b"}, lanesOf(r.send(t, e)))
	})
}
