package stream_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ringback/ringback/client/internal/stream"
)

// server answers exchanges with a function.
type server func(n int, reports []stream.Report[int], most int) (stream.WorkAnswer[int], error)

// counted is a server that counts the exchanges.
type counted struct {
	answer server
	n      atomic.Int64
}

func (s *counted) Exchange(_ context.Context, reports []stream.Report[int], most int) (stream.WorkAnswer[int], error) {
	return s.answer(int(s.n.Add(1)), reports, most)
}

func (*counted) Extend(context.Context, string) (stream.Extension, error) {
	return stream.Extension{Extended: true}, nil
}
func (*counted) IsInvalid(error) bool                   { return false }
func (*counted) RetryAfter(error) (time.Duration, bool) { return 0, true }

var options = stream.ConsumeOptions{
	Concurrency: 2, Lease: time.Hour, Grace: time.Second, Timeout: time.Second,
	Retrying: func(error, time.Duration) {},
}

// leased is an answer with jobs. Value is the number of seconds that the function takes.
func leased(seconds ...int) stream.WorkAnswer[int] {
	var a stream.WorkAnswer[int]
	for _, n := range seconds {
		a.Leased = append(a.Leased,
			stream.Job[int]{ID: fmt.Sprint("job-", n), Lease: fmt.Sprint("lease-", n), For: time.Hour, Value: n})
	}
	return a
}

func sleep(_ context.Context, seconds int) error {
	time.Sleep(time.Duration(seconds) * time.Second)
	return nil
}

// A store that takes no report is not asked without a pause, nor do the jobs of others wait for it.
func TestRun_WaitsBeforeItRepeatsWhatTheStoreCannotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var repeats, others atomic.Int64
		s := &counted{answer: func(n int, reports []stream.Report[int], most int) (stream.WorkAnswer[int], error) {
			if n == 1 {
				return leased(0, 1), nil
			}
			var answer stream.WorkAnswer[int]
			for _, r := range reports {
				if r.Job.ID == "job-0" {
					repeats.Add(1)
					answer.Unavailable = map[string]bool{"job-0": true}
				} else {
					others.Add(1)
				}
			}
			time.Sleep(10 * time.Millisecond)
			if most > 0 {
				time.Sleep(time.Second)
				answer.Leased = leased(1).Leased
			}
			return answer, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.Error(t, stream.Consume(ctx, s, options, sleep))
		require.InDelta(t, 14, repeats.Load(), 6) // 0.1 s, 0.2 s, … 10 s, and some at the end
		require.Greater(t, others.Load(), int64(40))
	})
}

// Requests that do not heed their context end after Run, and nobody takes their answers.
func TestRun_LeavesNoGoroutineWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		var hanging atomic.Int64
		s := &counted{answer: func(n int, _ []stream.Report[int], _ int) (stream.WorkAnswer[int], error) {
			switch n {
			case 1:
				return leased(1, 2), nil
			case 2: // it reports job-1; the next one reports job-2
				time.Sleep(2 * time.Second)
				answer := leased(10)
				answer.Unavailable = map[string]bool{"job-1": true}
				return answer, nil
			case 4: // now no function is free, and job-1 is reported beside job-2
				time.Sleep(time.Second)
				return leased(5), nil
			}
			hanging.Add(1)
			<-hang
			return stream.WorkAnswer[int]{}, nil
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		require.Error(t, stream.Consume(ctx, s, options, sleep))
		require.Equal(t, int64(3), hanging.Load())
		close(hang)
		synctest.Wait() // the end of the test finds goroutines that are left
	})
}
