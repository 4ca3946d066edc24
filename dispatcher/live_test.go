package dispatcher_test

import (
	"cmp"
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// tailCounter counts the calls of a store's tail.
type tailCounter struct {
	store.Store
	calls atomic.Int64
}

func (s *tailCounter) AppendTail(ctx context.Context, message []byte) ([][]byte, error) {
	s.calls.Add(1)
	return s.Store.AppendTail(ctx, message)
}

// events reads a listener until it has n events.
func events(t *testing.T, l *livetail.Listener, n int) (all []livetail.Update) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); len(all) < n &&
		time.Now().Before(end); time.Sleep(livetail.ReadEvery) {
		more, skipped, err := l.Next(t.Context())
		require.NoError(t, err)
		require.Zero(t, skipped)
		all = append(all, more...)
	}
	require.Len(t, all, n)
	return all
}

func TestListen_SeesAttemptsAndChangesOfAllProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := storetest.NewModel(storetest.ModelOptions{})
		answers := policy.Result{
			Status: 500,
			Header: map[string][]string{"Set-Cookie": {"secret"}}, Body: []byte("secret"),
		}
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result { return answers }}
		worker := start(t, dispatcher.Options{Store: shared{model}, Deliverer: rec})
		other := start(t, dispatcher.Options{Store: shared{model}, RegisterOnly: true})
		l, err := other.Listen(t.Context(), livetail.Filter{Namespace: job.DefaultNamespace})
		require.NoError(t, err)
		defer l.Close()
		time.Sleep(3 * time.Second)

		spec := job.Spec{
			ID: "a", Queue: job.Queue{Topic: "orders", Lane: "one"},
			Labels: map[string]string{"k": "v"}, CreatedBy: "shop",
		}
		spec.Retries = new(0)
		other.register(t, job.New{Spec: spec})
		got := events(t, l, 2)
		// they are of the same instant
		slices.SortFunc(got, func(a, b livetail.Update) int { return cmp.Compare(b.Change.Kind, a.Change.Kind) })
		require.Equal(t, livetail.Change{Kind: "created", Actor: "shop"}, got[0].Change)
		require.Equal(t, spec.Labels, got[0].Labels)
		require.Equal(t, []string{"orders", "one", "a"}, []string{got[1].Topic, got[1].Lane, got[1].ID})
		attempt := got[1].Attempt
		require.Equal(t, &job.Attempt{
			N: 1, Kind: job.KindAttempt, StartedAt: attempt.StartedAt, Duration: attempt.Duration,
			URL: "https://shop.example/hook", Process: worker.Process(),
			Status: 500, Verdict: "dead", Reason: policy.ReasonExhausted,
		}, attempt, "without the response")

		ref := job.Ref{Namespace: job.DefaultNamespace, ID: "a"}
		_, err = worker.Revive(t.Context(), store.Revival{Ref: ref, Delay: time.Hour, Actor: "me"})
		require.NoError(t, err)
		_, err = worker.Edit(t.Context(), ref, job.Edit{Fields: []string{"labels"}, Actor: "you"})
		require.NoError(t, err)
		_, err = other.Cancel(t.Context(), ref, store.Cancellation{Actor: "they"})
		require.NoError(t, err)
		operator := store.ChangeOptions{Updated: policy.Update{By: "operator"}}
		_, err = other.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", operator,
			func(p *policy.Topic) error { p.Paused = true; return nil })
		require.NoError(t, err)
		_, err = worker.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", operator,
			func(p *policy.Topic) error { p.URL = "https://a.example"; return nil })
		require.NoError(t, err)
		lane := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "one"}
		for _, paused := range []bool{true, false} {
			_, err = worker.ChangeLane(t.Context(), lane, operator,
				func(p *policy.Lane) error { p.Paused = paused; return nil })
			require.NoError(t, err)
		}
		byKind := make(map[livetail.ChangeKind][]livetail.Update)
		for _, e := range events(t, l, 6) {
			byKind[e.Change.Kind] = append(byKind[e.Change.Kind], e)
			require.WithinDuration(t, time.Now(), e.At, 10*time.Second)
		}
		require.Equal(t, "me", byKind["revived"][0].Change.Actor)
		require.Equal(t, livetail.Change{Kind: "edited", Fields: []string{"labels"}, Actor: "you"},
			byKind["edited"][0].Change)
		require.Equal(t, "they", byKind["cancelled"][0].Change.Actor)
		require.Len(t, byKind[livetail.Paused], 2)
		for _, e := range byKind[livetail.Paused] {
			require.Equal(t, "operator", e.Change.Actor)
			require.Equal(t, "orders", e.Topic)
			require.Empty(t, e.ID)
		}
		require.Equal(t, "one", byKind[livetail.Resumed][0].Lane)

		other.register(t,
			job.New{Spec: job.Spec{ID: "old", Queue: lane}, ExpiresIn: time.Second, Delay: 500 * time.Millisecond})
		_, err = worker.ChangeTopic(t.Context(), job.DefaultNamespace, "orders", operator,
			func(p *policy.Topic) error { p.Paused = true; return nil })
		require.NoError(t, err)
		got = events(t, l, 2)
		require.Equal(t, livetail.Change{Kind: livetail.Dead, Reason: policy.ReasonExpired}, got[1].Change)
	})
}

func TestListen_SeesHowLateAttemptsAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		attempts := 0
		rec := &receiver{answer: func(context.Context, job.Request) policy.Result {
			if attempts++; attempts == 1 {
				return policy.Result{Status: 500}
			}
			return policy.Result{Status: 200}
		}}
		r := start(t, dispatcher.Options{Store: storetest.NewModel(storetest.ModelOptions{}), Deliverer: rec})
		l, err := r.Listen(t.Context(), livetail.Filter{Namespace: job.DefaultNamespace, Lane: "one"})
		require.NoError(t, err)
		defer l.Close()
		setPaused := func(paused bool) {
			lane := job.Queue{Namespace: job.DefaultNamespace, Topic: "orders", Lane: "one"}
			_, err := r.ChangeLane(t.Context(), lane, store.ChangeOptions{},
				func(l *policy.Lane) error { l.Paused = paused; return nil })
			require.NoError(t, err)
		}
		setPaused(true)
		ladder := []time.Duration{10 * time.Second}
		r.register(t, job.New{Spec: job.Spec{
			ID: "a", Queue: job.Queue{Topic: "orders", Lane: "one"},
			Terms: policy.Terms{Ladder: ladder},
		}, Delay: 2 * time.Second})
		var late []time.Duration
		resumeAt, end := time.Now().Add(9*time.Second), time.Now().Add(40*time.Second)
		for paused := true; time.Now().Before(end); time.Sleep(livetail.ReadEvery) {
			if paused && !time.Now().Before(resumeAt) {
				setPaused(false)
				paused = false
			}
			more, _, err := l.Next(t.Context())
			require.NoError(t, err)
			for _, e := range more {
				require.Equal(t, e.Attempt != nil, e.Late != nil)
				if e.Late != nil {
					late = append(late, *e.Late)
				}
			}
		}
		require.Len(t, late, 2)
		require.InDelta(t, 7*time.Second, late[0], float64(500*time.Millisecond), "the pause counts")
		require.InDelta(t, 0, late[1], float64(100*time.Millisecond), "the ladder's wait does not")
	})
}

func TestListen_AfterAProcessIdlesItMakesNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tailCounter{Store: storetest.NewModel(storetest.ModelOptions{})}
		rec := &receiver{answer: status(200)}
		r := start(t, dispatcher.Options{Store: s, Deliverer: rec})
		time.Sleep(time.Minute)
		require.Zero(t, s.calls.Load())
		for range 100 {
			r.register(t, job.New{})
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, s.calls.Load(), int64(1))
		time.Sleep(time.Hour)
		require.LessOrEqual(t, s.calls.Load(), int64(1))
		require.Len(t, rec.calls(), 100)
	})
}
