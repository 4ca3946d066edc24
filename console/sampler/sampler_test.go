package sampler_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/sampler"
	"github.com/ringback/ringback/internal/capacity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is an API that a test scripts.
type fake struct {
	events chan *client.StreamEvent // of the stream

	mu        sync.Mutex
	totals    client.Counts
	statsErr  error
	streamErr error // of the next connections
	cut       chan error
	hang      time.Duration // that a read takes, whatever its context says
	reads     int
	streams   int // that are open
}

func newFake() *fake {
	return &fake{events: make(chan *client.StreamEvent), cut: make(chan error)}
}

// countReads returns how often the counters were read.
func (f *fake) countReads() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.reads
}

func (f *fake) StatsPage(context.Context, client.PageOptions) (*client.Stats, error) {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	time.Sleep(hang)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.reads++
	if f.statsErr != nil {
		return nil, f.statsErr
	}
	return &client.Stats{Totals: f.totals}, nil
}

func (f *fake) Stream(ctx context.Context, _ client.StreamOptions) iter.Seq2[*client.StreamEvent, error] {
	return func(yield func(*client.StreamEvent, error) bool) {
		f.mu.Lock()
		err := f.streamErr
		f.mu.Unlock()
		if err != nil {
			yield(nil, err)
			return
		}
		f.change(func() { f.streams++ })
		defer f.change(func() { f.streams-- })
		if !yield(&client.StreamEvent{Kind: "connected"}, nil) {
			return
		}
		for {
			select {
			case e := <-f.events:
				if !yield(e, nil) {
					return
				}
			case err := <-f.cut:
				yield(nil, err)
				return
			case <-ctx.Done():
				yield(nil, ctx.Err())
				return
			}
		}
	}
}

func (f *fake) change(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) open() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streams
}

// attempts sends attempts of a verdict, that were late by some milliseconds.
func (f *fake) attempts(n int, verdict string, late float64) {
	for range n {
		e := &client.StreamEvent{Kind: "attempt", Attempt: &client.StreamAttempt{LateMS: &late}}
		e.Attempt.Verdict = verdict
		f.events <- e
	}
}

func (f *fake) skipped(n int64) { f.events <- &client.StreamEvent{Kind: "skipped", Skipped: n} }

func problem(status int) error {
	return &client.Problem{Status: status, Detail: http.StatusText(status)}
}

// all are samplers that end with the test.
type all struct {
	*sampler.Samplers
	shutdown func()
}

func newSamplers(t *testing.T) *all {
	t.Helper()
	a := new(all)
	a.Samplers = sampler.New(func(f func()) func() bool {
		a.shutdown = f
		return func() bool { return true }
	})
	t.Cleanup(func() { a.shutdown() })
	return a
}

const quarter = 15 * time.Minute

// step lets a step end.
func step() {
	time.Sleep(sampler.Step)
	synctest.Wait()
}

// last returns the last n values of a series.
func last(values []float64, n int) []float64 { return values[len(values)-n:] }

func of(s sampler.Samples, verdict string) []float64 {
	for _, v := range s.Verdicts {
		if v.Name == verdict {
			return v.PerSecond
		}
	}
	return nil
}

func requireNaN(t *testing.T, values ...float64) {
	t.Helper()
	for _, v := range values {
		require.True(t, math.IsNaN(v), "%v is a gap", values)
	}
}

func TestSampler_CountsAttemptsByVerdictAndTheirLateness(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		first := s.Visit("a", "default", api, true, quarter)
		require.Zero(t, first.Steps)
		began := time.Now()
		synctest.Wait()
		api.attempts(98, "delivered", 10)
		api.attempts(2, "again", 1000)
		step()
		api.attempts(5, "dead", 20)
		api.attempts(1, "released", 30)
		api.events <- &client.StreamEvent{Kind: "change", Change: new(client.StreamChange)}
		step()

		got := s.Visit("a", "default", api, true, quarter)
		require.Equal(t, 2, got.Steps)
		require.Equal(t, began.Add(2*sampler.Step), got.To)
		require.Equal(t, got.To.Add(-quarter), got.From)
		require.Len(t, got.P50, 180)
		requireNaN(t, of(got, "delivered")[:178]...)
		require.Equal(t, []float64{19.6, 0}, last(of(got, "delivered"), 2))
		require.Equal(t, []float64{0.4, 0}, last(of(got, "again"), 2))
		require.Equal(t, []float64{0, 1}, last(of(got, "dead"), 2))
		require.Equal(t, []float64{0, 0.2}, last(of(got, "released"), 2))
		require.Equal(t, []float64{0.01, 0.02}, last(got.P50, 2))
		require.Equal(t, []float64{1, 0.03}, last(got.P99, 2))
		require.InDelta(t, 10.6, got.LastMinute(), 1e-9)
		require.InDelta(t, 9.8, got.LastMinute("delivered"), 1e-9)
		require.InDelta(t, 0.01, got.LastP50, 1e-9)
		require.InDelta(t, 1, got.LastP99, 1e-9)
		require.False(t, got.Estimated)
		require.NoError(t, got.Fault)

		for range 12 {
			step()
		}
		got = s.Visit("a", "default", api, true, quarter)
		require.Zero(t, got.LastMinute())
		requireNaN(t, got.LastP99)
	})
}

func TestSampler_ScalesByWhatWasSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("restricted", "default", api, false, quarter)
		synctest.Wait()
		api.attempts(6, "delivered", 1)
		api.attempts(3, "again", 1)
		api.events <- &client.StreamEvent{Kind: "change", Change: new(client.StreamChange)}
		api.skipped(90) // ten times as many events
		step()
		api.skipped(4) // nothing says what they were: they count with the next ones
		step()
		api.attempts(1, "again", 1)
		step()
		got := s.Visit("restricted", "default", api, false, quarter)
		require.Equal(t, []float64{12, 0, 0}, last(of(got, "delivered"), 3))
		require.Equal(t, []float64{6, 0, 1}, last(of(got, "again"), 3))
		require.True(t, got.Estimated)
		require.Zero(t, api.countReads(), "a restricted token may not read the counters")
	})
}

func TestSampler_TakesTheCounterOfDeliveredJobsWhereTheStreamSkipped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		api.totals.Delivered = 1000
		s.Visit("a", "default", api, true, quarter)
		synctest.Wait()
		api.attempts(6, "delivered", 1)
		api.attempts(4, "again", 1)
		api.skipped(90)
		api.change(func() { api.totals.Delivered = 1065 })
		step()
		got := s.Visit("a", "default", api, true, quarter)
		require.Equal(t, []float64{13}, last(of(got, "delivered"), 1))
		require.Equal(t, []float64{8}, last(of(got, "again"), 1))

		api.skipped(50)
		api.attempts(10, "delivered", 1)
		api.change(func() { api.totals.Delivered = 3 }) // a topic was deleted
		step()
		got = s.Visit("a", "default", api, true, quarter)
		require.Equal(t, []float64{12}, last(of(got, "delivered"), 1))
	})
}

func TestSampler_LeavesGapsWhereTheAPIFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, true, quarter)
		synctest.Wait()
		api.attempts(5, "delivered", 1)
		step()
		api.attempts(5, "again", 1)
		api.change(func() { api.streamErr = problem(http.StatusServiceUnavailable) })
		api.cut <- problem(http.StatusServiceUnavailable)
		api.change(func() { api.totals.Delivered, api.totals.Dead = 10, 5 })
		step() // the counters only
		got := s.Visit("a", "default", api, true, quarter)
		require.Equal(t, []float64{1, 2}, last(of(got, "delivered"), 2))
		requireNaN(t, last(of(got, "dead"), 1)...) // they may have expired without an attempt
		requireNaN(t, last(of(got, "again"), 1)...)
		requireNaN(t, last(got.P99, 1)...)
		require.ErrorIs(t, got.Fault, client.ErrUnavailable)

		api.change(func() { api.statsErr = problem(http.StatusServiceUnavailable) })
		step() // nothing
		got = s.Visit("a", "default", api, true, quarter)
		requireNaN(t, last(of(got, "delivered"), 1)...)
		require.Equal(t, time.Now(), got.To, "time goes on")

		api.change(func() { api.streamErr, api.statsErr = nil, nil })
		for range 3 { // at most 4 s until it connects, then whole steps
			step()
		}
		api.attempts(5, "again", 1)
		step()
		got = s.Visit("a", "default", api, true, quarter)
		require.NoError(t, got.Fault)
		require.Equal(t, []float64{1}, last(of(got, "again"), 1))
	})
}

func TestSampler_WaitsLongerAndLongerForTheStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		api.streamErr = problem(http.StatusServiceUnavailable)
		began := time.Now()
		s.Visit("a", "default", api, false, quarter)
		connects := func() bool { synctest.Wait(); return api.open() == 1 }
		for range 7 {
			time.Sleep(time.Minute)
		}
		require.False(t, connects())
		api.change(func() { api.streamErr = nil })
		for !connects() {
			time.Sleep(time.Second)
			require.Less(t, time.Since(began), 9*time.Minute)
		}
	})
}

func TestSampler_EndsTenMinutesAfterTheLastVisit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, true, quarter)
		time.Sleep(9*time.Minute + 52*time.Second)
		got := s.Visit("a", "default", api, true, quarter)
		require.Equal(t, 118, got.Steps, "it went on")
		time.Sleep(9*time.Minute + 52*time.Second)
		synctest.Wait()
		require.Equal(t, 1, api.open())
		time.Sleep(20 * time.Second)
		synctest.Wait()
		require.Zero(t, api.open())
		require.Zero(t, s.Visit("a", "default", api, true, quarter).Steps, "another one began")
	})
}

func TestSampler_KeepsAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		for range 70 {
			s.Visit("a", "default", api, true, quarter)
			synctest.Wait()
			api.attempts(5, "delivered", 1)
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		got := s.Visit("a", "default", api, true, 2*time.Hour)
		require.Len(t, got.P50, 720)
		require.Equal(t, time.Hour, got.To.Sub(got.From))
		require.Equal(t, 720, got.Steps)
		require.Equal(t, 180, s.Visit("a", "default", api, true, quarter).Steps, "of the series")
		sum := 0.0
		for _, v := range of(got, "delivered") {
			sum += v
		}
		require.InDelta(t, 60, sum, 1e-6)
	})
}

func TestSampler_EndsAtTheShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, true, quarter)
		synctest.Wait()
		require.Equal(t, 1, api.open())
		s.shutdown()
		synctest.Wait()
		require.Zero(t, api.open())
		require.Zero(t, s.Visit("a", "default", api, true, quarter).Steps)
		synctest.Wait()
		require.Zero(t, api.open(), "none begins after it")
	})
}

func TestSampler_EndsWithTheToken(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, counted, followed := newSamplers(t), newFake(), newFake()
				s.Visit("counted", "default", counted, true, quarter)
				s.Visit("followed", "default", followed, false, quarter)
				step()
				counted.change(func() { counted.statsErr = problem(status) })
				followed.cut <- problem(status)
				step()
				require.Zero(t, counted.open())
				require.Zero(t, followed.open())
				require.Equal(t, 3, counted.reads)
				require.Zero(t, s.Visit("followed", "default", followed, false, quarter).Steps)
			})
		})
	}
}

func TestSampler_BoundsAudiencesAndStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		for i := range sampler.MaxAudiences + 3 {
			s.Visit(fmt.Sprint(i), "default", api, true, quarter)
			time.Sleep(time.Millisecond)
		}
		synctest.Wait()
		before := api.countReads()
		step()
		require.Equal(t, sampler.MaxAudiences, api.countReads()-before)
		time.Sleep(2 * time.Minute) // until others have taken the streams of those that ended
		synctest.Wait()
		require.Equal(t, capacity.ChartStreams.Share(), api.open())
		require.Zero(t, s.Visit("0", "default", api, true, quarter).Steps, "it was visited longest ago")
		require.NotZero(t, s.Visit("66", "default", api, true, quarter).Steps)
	})
}

func TestSampler_LeavesGapsForTimeThatItDidNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, true, quarter)
		step()
		api.change(func() { api.hang = 17 * time.Second }) // as if the machine slept
		step()
		api.change(func() { api.hang = 0 })
		time.Sleep(17 * time.Second)
		synctest.Wait()
		step()
		api.attempts(5, "delivered", 1)
		step()
		got := s.Visit("a", "default", api, true, quarter)
		require.Equal(t, got.Steps, int(time.Since(got.To.Add(-sampler.Step*time.Duration(got.Steps)))/sampler.Step))
		require.Less(t, time.Since(got.To), sampler.Step)
		values := last(of(got, "delivered"), got.Steps)
		require.Equal(t, 1.0, values[len(values)-1]) //nolint:testifylint // 5 attempts in 5 s
		gaps := 0
		for _, v := range values {
			if math.IsNaN(v) {
				gaps++
			}
		}
		require.Equal(t, 3, gaps, "%v", values)
	})
}

func TestSampler_LeavesAGapForAStepThatTheStreamBeganIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, false, quarter)
		time.Sleep(4 * time.Second)
		synctest.Wait()
		api.change(func() { api.streamErr = problem(http.StatusServiceUnavailable) })
		api.cut <- problem(http.StatusServiceUnavailable)
		time.Sleep(time.Second)
		synctest.Wait()
		api.change(func() { api.streamErr = nil })
		step() // it connects 0.5 s to 2 s after the step's beginning
		require.Equal(t, 1, api.open())
		api.attempts(5, "again", 1)
		step()
		got := s.Visit("a", "default", api, false, quarter)
		require.Equal(t, 3, got.Steps)
		requireNaN(t, last(of(got, "again"), 3)[:2]...)
		require.Equal(t, []float64{1}, last(of(got, "again"), 1))
		require.Equal(t, 2*sampler.Step, got.Missing())
	})
}

func TestSampler_LeavesAGapForAConnectionThatWasReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		s.Visit("a", "default", api, false, quarter)
		synctest.Wait()
		api.attempts(5, "again", 1)
		api.events <- &client.StreamEvent{Kind: "resumed", Resumed: true}
		step()
		api.attempts(5, "again", 1)
		step()
		got := s.Visit("a", "default", api, false, quarter)
		requireNaN(t, last(of(got, "again"), 2)[0])
		require.Equal(t, []float64{1}, last(of(got, "again"), 1))
		require.NoError(t, got.Fault)
	})
}

func TestSampler_SpreadsCountersThatTakeLongOverTheTimeBetweenTwoReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, api := newSamplers(t), newFake()
		api.streamErr, api.hang = problem(http.StatusServiceUnavailable), time.Second
		s.Visit("a", "default", api, true, quarter)
		time.Sleep(api.hang)
		synctest.Wait()
		api.change(func() { api.totals.Delivered = 150 })
		for range 3 { // the first answer is used for 11 s
			step()
		}
		got := s.Visit("a", "default", api, true, quarter)
		requireNaN(t, last(of(got, "delivered"), 3)[:2]...)
		require.Equal(t, []float64{10}, last(of(got, "delivered"), 1))
		require.InDelta(t, 10, got.LastMinute("delivered"), 1e-9)
		require.Equal(t, 2, api.countReads())
	})
}
