package livetail_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/dispatcher/livetail"
	"github.com/ringback/ringback/internal/access"
	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// process is a Hub that runs, and counts its calls of the tail.
type process struct {
	*livetail.Hub
	tail  store.Tail
	calls atomic.Int64
	fail  atomic.Bool
	// twice appends messages twice, as when a reply is lost.
	twice bool
	// late is called before the result of an append is returned.
	late func()
	stop func()
}

// newProcess starts a process on a tail.
func newProcess(t *testing.T, tail store.Tail) *process {
	t.Helper()
	p := &process{tail: tail}
	p.Hub = livetail.New(p, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.Run(ctx) }()
	p.stop = func() { cancel(); <-done }
	t.Cleanup(p.stop)
	return p
}

func (p *process) AppendTail(ctx context.Context, message []byte) ([][]byte, error) {
	p.calls.Add(1)
	if p.fail.Load() {
		return nil, errors.New("the store is down")
	}
	if len(message) > store.MaxTailMessage {
		panic("the message is too long")
	}
	readers, err := p.tail.AppendTail(ctx, message)
	if p.twice {
		readers, err = p.tail.AppendTail(ctx, message)
	}
	if p.late != nil {
		p.late()
	}
	return readers, err
}

func (p *process) ReadTail(ctx context.Context, reader []byte, after int64) ([][]byte, int64, error) {
	return p.tail.ReadTail(ctx, reader, after)
}

func (p *process) LeaveTail(ctx context.Context, reader []byte) error {
	return p.tail.LeaveTail(ctx, reader)
}

// listen returns a listener of the default namespace.
func (p *process) listen(t *testing.T, f livetail.Filter) *listener {
	t.Helper()
	f.Namespace = job.DefaultNamespace
	l, err := p.Listen(t.Context(), f)
	require.NoError(t, err)
	t.Cleanup(l.Close)
	return &listener{Listener: l}
}

// listener collects what a Listener gets.
type listener struct {
	*livetail.Listener
	ids     []string
	skipped uint64
}

// watch reads for a duration.
func (l *listener) watch(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(livetail.ReadEvery) {
		updates, skipped, err := l.Next(t.Context())
		require.NoError(t, err)
		for _, e := range updates {
			l.ids = append(l.ids, e.ID)
		}
		l.skipped += skipped
	}
}

// attempt returns the update of an attempt.
func attempt(topic, lane, id, verdict string) livetail.Update {
	return livetail.Update{
		At: time.Now(), Namespace: job.DefaultNamespace, Topic: topic, Lane: lane, ID: id,
		Attempt: &job.Attempt{N: 1, Kind: job.KindAttempt, Verdict: verdict},
	}
}

// inBubble runs a test in fake time.
func inBubble(t *testing.T, test func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

func TestHub_PassesUpdatesToTheListenersOfAllProcesses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tail := new(store.LocalTail)
		one, two := newProcess(t, tail), newProcess(t, tail)
		l := one.listen(t, livetail.Filter{})
		sent := livetail.Update{
			At: time.UnixMilli(5).UTC(), Namespace: job.DefaultNamespace, Topic: "orders", Lane: "a", ID: "first",
			Labels: map[string]string{"k": "v"},
			Attempt: &job.Attempt{
				N: 3, Kind: job.KindAttempt, StartedAt: time.UnixMilli(7).UTC(),
				Duration: time.Second, URL: "https://a.example/", Status: 503, Verdict: "again", Error: "\xff",
			},
		}
		one.Publish(sent)
		time.Sleep(2 * livetail.ReadEvery)
		updates, skipped, err := l.Next(t.Context())
		require.NoError(t, err)
		require.Zero(t, skipped)
		sent.Attempt.Error = "\ufffd"
		require.Equal(t, []livetail.Update{sent}, updates, "its own from the start")

		two.Publish(attempt("orders", "a", "second", "dead"))
		edited := livetail.Update{
			At: time.Now().UTC(), Namespace: job.DefaultNamespace, Topic: "orders", ID: "third",
			Change: livetail.Change{Kind: "edited", Fields: []string{"url"}, Actor: "me"},
		}
		two.Publish(edited)
		time.Sleep(2 * livetail.ReadEvery)
		updates, _, err = l.Next(t.Context())
		require.NoError(t, err)
		require.Len(t, updates, 2)
		require.Equal(t, edited, updates[1])
		require.Equal(t, 1, one.Listeners())
		require.Zero(t, two.Listeners())
	})
}

func TestHub_WithoutListenersAsksOnceInTwoSecondsAndNeverWhenIdle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		p.late = func() { time.Sleep(25 * time.Millisecond) } // meanwhile updates happen
		require.Zero(t, p.calls.Load())
		for range 1000 { // 10 s
			if p.Wanted() {
				p.Publish(attempt("orders", "a", "x", "again"))
			}
			time.Sleep(10 * time.Millisecond)
		}
		require.EqualValues(t, 5, p.calls.Load())
		time.Sleep(time.Hour)
		require.EqualValues(t, 5, p.calls.Load(), "an idle process makes no calls")
		e := attempt("orders", "a", "x", "again")
		p.Publish(e)
		time.Sleep(100 * time.Millisecond)
		require.Zero(t, testing.AllocsPerRun(1000, func() {
			if p.Wanted() {
				p.Publish(e)
			}
		}))
		require.EqualValues(t, 6, p.calls.Load())
	})
}

func TestHub_ReachesAListenerOfAnotherProcessWithinTwoSeconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tail := new(store.LocalTail)
		one, two := newProcess(t, tail), newProcess(t, tail)
		two.Publish(attempt("orders", "a", "before", "again")) // it learns that nobody listens
		synctest.Wait()
		l := one.listen(t, livetail.Filter{})
		time.Sleep(2*time.Second + time.Millisecond)
		two.Publish(attempt("orders", "a", "after", "again"))
		l.watch(t, time.Second)
		require.Equal(t, []string{"after"}, l.ids)
	})
}

func TestHub_SeesAListenerBesideManyClosedOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tail := new(store.LocalTail)
		one, two := newProcess(t, tail), newProcess(t, tail)
		l := one.listen(t, livetail.Filter{})
		for range store.MaxTailReaders + 44 {
			ctx, cancel := context.WithCancel(t.Context())
			closed, err := one.Listen(ctx, livetail.Filter{Namespace: job.DefaultNamespace})
			require.NoError(t, err)
			cancel() // the client is gone
			closed.Close()
		}
		readers, err := tail.AppendTail(t.Context(), nil)
		require.NoError(t, err)
		require.Len(t, readers, 1, "a closed listener withdraws its announcement")
		two.Publish(attempt("orders", "a", "first", "again"))
		l.watch(t, time.Second)
		require.Equal(t, []string{"first"}, l.ids)
	})
}

func TestHub_SeesAListenerThatBeginsWhileItAsks(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		var l *listener
		p.late = func() {
			if l == nil {
				l = p.listen(t, livetail.Filter{})
			}
		}
		p.Publish(attempt("orders", "a", "first", "again"))
		synctest.Wait()
		p.Publish(attempt("orders", "a", "second", "again"))
		l.watch(t, time.Second)
		require.Equal(t, []string{"first", "second"}, l.ids)
	})
}

func TestListener_CountsUpdatesThatCameBeforeItWasKnown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		flood := sync.OnceFunc(func() {
			for i := range 1000 {
				p.Publish(attempt("orders", "a", fmt.Sprint(i), "again"))
			}
		})
		p.late = flood
		l := p.listen(t, livetail.Filter{})
		l.watch(t, 3*time.Second)
		require.Len(t, l.ids, livetail.Rate)
		require.EqualValues(t, 1000-livetail.Rate, l.skipped)
	})
}

func TestListener_IsNotDisturbedByNewOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		l := p.listen(t, livetail.Filter{})
		synctest.Wait()
		p.late = sync.OnceFunc(func() {
			for i := range 1000 { // while it asks who listens
				e := attempt("orders", "a", fmt.Sprint(i), "again")
				e.Namespace = "busy"
				p.Publish(e)
			}
			p.Publish(attempt("orders", "a", "mine", "again"))
		})
		quiet := p.listen(t, livetail.Filter{Topic: "invoices"})
		busy, err := p.Listen(t.Context(), livetail.Filter{Namespace: "busy", Topic: "orders"})
		require.NoError(t, err)
		t.Cleanup(busy.Close)
		l.watch(t, 3*time.Second)
		require.Equal(t, []string{"mine"}, l.ids)
		require.Zero(t, l.skipped)
		quiet.watch(t, 1)
		require.LessOrEqual(t, quiet.skipped, uint64(1), "only of its namespace")
		other := &listener{Listener: busy}
		other.watch(t, 1)
		require.EqualValues(t, 1000, uint64(len(other.ids))+other.skipped)
	})
}

func TestListener_GetsASmallUpdateBesideManyLargeOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		busy := p.listen(t, livetail.Filter{Topic: "busy"})
		quiet := p.listen(t, livetail.Filter{Topic: "quiet"})
		time.Sleep(3 * time.Second)
		p.Publish(attempt("busy", "a", "x", "again")) // it learns of both
		quiet.watch(t, time.Second)
		for range livetail.Rate - 1 {
			p.Publish(attempt("busy", "a", "x", strings.Repeat("x", 4_000)))
		}
		for range 10 {
			p.Publish(attempt("quiet", "a", "y", "again"))
		}
		busy.watch(t, 3*time.Second)
		quiet.watch(t, 1)
		require.Len(t, quiet.ids, 10)
		require.Zero(t, quiet.skipped)
		require.EqualValues(t, livetail.Rate, uint64(len(busy.ids))+busy.skipped)
		require.NotZero(t, busy.skipped)
	})
}

func TestHub_AsksLessOftenWhileTheStoreIsDown(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		p.fail.Store(true)
		for range 1000 { // 10 s
			p.Publish(attempt("orders", "a", "x", "again"))
			time.Sleep(10 * time.Millisecond)
		}
		require.LessOrEqual(t, p.calls.Load(), int64(14), "not 40")
		require.Greater(t, p.calls.Load(), int64(4))
	})
}

func TestListener_GetsARepeatedMessageOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		p.twice = true
		l := p.listen(t, livetail.Filter{})
		for _, id := range []string{"a", "b"} {
			p.Publish(attempt("orders", "a", id, "again"))
			l.watch(t, 3*time.Second)
		}
		require.Equal(t, []string{"a", "b"}, l.ids)
		require.Zero(t, l.skipped)
	})
}

func TestListener_GetsAHundredUpdatesASecondAndTheNumberOfTheOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tail := new(store.LocalTail)
		one, two := newProcess(t, tail), newProcess(t, tail)
		all, dead := one.listen(t, livetail.Filter{}), one.listen(t, livetail.Filter{Verdict: "dead"})
		go func() {
			for i := range 1000 { // 2 s
				one.Publish(attempt("orders", "a", fmt.Sprint("one-", i), "again"))
				two.Publish(attempt("orders", "a", fmt.Sprint("two-", i), "again"))
				if i%20 == 0 {
					two.Publish(attempt("orders", "a", fmt.Sprint("dead-", i), "dead"))
				}
				time.Sleep(2 * time.Millisecond)
			}
		}()
		for range 20 {
			all.watch(t, livetail.ReadEvery)
			dead.watch(t, 1)
		}
		require.InDelta(t, 200, len(all.ids), 100, "100 a second")
		require.EqualValues(t, 2050, uint64(len(all.ids))+all.skipped)
		require.Len(t, dead.ids, 50, "the other updates do not displace those of a filter")
		require.Zero(t, dead.skipped)
		require.Equal(t, all.skipped, one.Skipped())
	})
}

func TestListener_CountsWhatAFaultOfTheStoreLost(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		l := p.listen(t, livetail.Filter{})
		publish := func(n int) {
			for i := range n {
				p.Publish(attempt("orders", "a", fmt.Sprint(i), "again"))
			}
			l.watch(t, 3*time.Second)
		}
		publish(10)
		p.Publish(attempt("orders", "a", "x", "again"))
		l.watch(t, 2*livetail.ReadEvery)
		require.Len(t, l.ids, 11)
		p.fail.Store(true)
		publish(20)
		require.Len(t, l.ids, 11)
		p.fail.Store(false)
		publish(1)
		require.EqualValues(t, 32, uint64(len(l.ids))+l.skipped)
		require.NotZero(t, l.skipped)
	})
}

func TestListener_CountsWhatItReadTooLate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		slow := p.listen(t, livetail.Filter{})
		const updates = 400
		began := time.Now()
		for i := range updates { // 8 s
			p.Publish(attempt("orders", "a", fmt.Sprint(i), strings.Repeat("x", 10_000)))
			time.Sleep(20 * time.Millisecond)
		}
		require.Equal(t, updates*20*time.Millisecond, time.Since(began), "publishing does not wait for a listener")
		slow.watch(t, 3*time.Second)
		require.EqualValues(t, updates, uint64(len(slow.ids))+slow.skipped)
		require.NotZero(t, slow.skipped)

		time.Sleep(time.Minute) // its announcement expires
		slow.skipped, slow.ids = 0, nil
		p.Publish(attempt("orders", "a", "for nobody", "again"))
		synctest.Wait()
		slow.watch(t, 3*time.Second)
		p.Publish(attempt("orders", "a", "again", "again"))
		slow.watch(t, 3*time.Second)
		require.Equal(t, []string{"again"}, slow.ids)
		require.Zero(t, slow.skipped)
	})
}

func TestHub_AppendsTheLastUpdatesWhenItEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		tail := new(store.LocalTail)
		one, two := newProcess(t, tail), newProcess(t, tail)
		l := one.listen(t, livetail.Filter{})
		two.Publish(attempt("orders", "a", "first", "again"))
		synctest.Wait()
		two.Publish(attempt("orders", "a", "last", "again"))
		two.stop()
		l.watch(t, 2*livetail.ReadEvery)
		require.Equal(t, []string{"first", "last"}, l.ids)
	})
}

func TestListen_IsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := newProcess(t, new(store.LocalTail))
		listen := func(namespace string) error {
			l, err := p.Listen(t.Context(), livetail.Filter{Namespace: namespace})
			if err == nil {
				t.Cleanup(l.Close)
			}
			return err
		}
		for range capacity.LiveListeners.Share() - 1 {
			require.NoError(t, listen("a"))
		}
		last, err := p.Listen(t.Context(), livetail.Filter{Namespace: "a"})
		require.NoError(t, err)
		require.ErrorContains(t, listen("a"), "its share of 12")
		last.Close()
		require.NoError(t, listen("a"))
		for i := range capacity.LiveListeners.Whole - capacity.LiveListeners.Share() {
			require.NoError(t, listen(fmt.Sprint(i)))
		}
		require.ErrorContains(t, listen("b"), "room for 16")
		require.Equal(t, capacity.LiveListeners.Whole, p.Listeners())
	})
}

func TestFilter_Selects(t *testing.T) {
	closed := livetail.Update{
		Namespace: "default", Topic: "orders", Lane: "a", ID: "x",
		Change: livetail.Change{Kind: livetail.Dead},
	}
	paused := livetail.Update{Namespace: "default", Topic: "orders", Change: livetail.Change{Kind: livetail.Paused}}
	for name, c := range map[string]struct {
		filter livetail.Filter
		update livetail.Update
		want   bool
	}{
		"everything":    {livetail.Filter{}, attempt("orders", "a", "x", "again"), true},
		"a topic":       {livetail.Filter{Topic: "orders"}, attempt("orders", "a", "x", "again"), true},
		"another topic": {livetail.Filter{Topic: "orders"}, attempt("order", "a", "x", "again"), false},
		"callbacks":     {livetail.Filter{}, attempt("_callbacks", "a", "x", "again"), false},
		"callbacks by " +
			"name": {livetail.Filter{Topic: "_callbacks"}, attempt("_callbacks", "a", "x", "again"), true},
		"a topic of the " +
			"token": {livetail.Filter{Topics: access.Topics{"ord*"}}, attempt("orders", "a", "x", "again"), true},
		"not of the token": {
			livetail.Filter{Topics: access.Topics{"ord*"}}, attempt("users", "a", "x", "again"), false,
		},
		"not of the token, by name": {
			livetail.Filter{Topic: "users", Topics: access.Topics{"ord*"}}, attempt("users", "a", "x", "again"), false,
		},
		"a lane":                  {livetail.Filter{Lane: "a"}, attempt("orders", "a", "x", "again"), true},
		"another lane":            {livetail.Filter{Lane: "a"}, attempt("orders", "b", "x", "again"), false},
		"the topic of a lane":     {livetail.Filter{Lane: "a"}, paused, true},
		"a verdict":               {livetail.Filter{Verdict: "dead"}, attempt("orders", "a", "x", "dead"), true},
		"another verdict":         {livetail.Filter{Verdict: "dead"}, attempt("orders", "a", "x", "again"), false},
		"a death without attempt": {livetail.Filter{Verdict: "dead"}, closed, true},
		"a change":                {livetail.Filter{Verdict: "dead"}, paused, false},
		"another namespace": {
			livetail.Filter{},
			livetail.Update{Namespace: "shop", Topic: "orders", Change: livetail.Change{Kind: livetail.Paused}},
			false,
		},
	} {
		inBubble(t, func(t *testing.T) {
			p := newProcess(t, new(store.LocalTail))
			l := p.listen(t, c.filter)
			p.Publish(c.update)
			time.Sleep(2 * livetail.ReadEvery)
			updates, _, err := l.Next(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.want, len(updates) == 1, name)
		})
	}
}

// BenchmarkPublish has the cost of an attempt for the process that makes it.
func BenchmarkPublish(b *testing.B) {
	for name, filters := range map[string][]livetail.Filter{
		"no listener":               nil,
		"a listener":                {{Namespace: "default"}},
		"a listener of other topic": {{Namespace: "default", Topic: "other"}},
	} {
		b.Run(name, func(b *testing.B) {
			hub := livetail.New(new(store.LocalTail), slog.New(slog.DiscardHandler))
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			go hub.Run(ctx)
			for _, f := range filters {
				l, err := hub.Listen(ctx, f)
				require.NoError(b, err)
				defer l.Close()
			}
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if hub.Wanted() {
						hub.Publish(attempt("orders", "a", "x", "again"))
					}
				}
			})
		})
	}
}
