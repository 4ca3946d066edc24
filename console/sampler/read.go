package sampler

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/client"
)

const (
	// readTime bounds a read of the counters: it ends before the next step does.
	readTime = Step - time.Second
	// firstPause and longestPause bound the wait before the stream is requested again.
	firstPause   = time.Second
	longestPause = time.Minute
)

var errStreamEnded = errors.New("the stream ended")

// isRefused reports whether an error says that the token may not read any more, or that its namespace is gone.
func isRefused(err error) bool {
	return errors.Is(err, client.ErrUnauthorized) || errors.Is(err, client.ErrForbidden) ||
		errors.Is(err, client.ErrNotFound)
}

// run ends steps until ctx ends or isDone says so.
func (s *sampler) run(ctx context.Context, isDone func(refused bool) bool) {
	tick := time.NewTicker(Step)
	defer tick.Stop()
	counts, err := s.readCounters(ctx)
	s.setCounters(counts)
	for !isDone(isRefused(err)) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		taken := s.take(time.Now())
		counts, err = s.readCounters(ctx)
		if ctx.Err() != nil {
			return
		}
		s.add(taken, counts)
	}
}

// counters are numbers of jobs, and when they were requested.
type counters struct {
	delivered int64
	at        time.Time
}

// readCounters reads the counters of the namespace.
func (s *sampler) readCounters(ctx context.Context) (*counters, error) {
	if s.readStats == nil {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	stats, at, err := s.readStats(ctx)
	if err != nil {
		return nil, err
	}
	return &counters{stats.Totals.Delivered, at}, nil
}

// follow follows the stream until ctx ends, or the token is refused, which it reports.
func (s *sampler) follow(ctx context.Context, refused func()) {
	for pause := firstPause; ; {
		connected, err := s.readStream(ctx)
		s.disconnect(err)
		if ctx.Err() != nil {
			return
		}
		if isRefused(err) {
			refused()
			return
		}
		if connected {
			pause = firstPause
		}
		wait := pause/2 + rand.N(pause/2)
		if p, ok := errors.AsType[*client.Problem](err); ok {
			wait = max(wait, min(p.RetryAfter(), longestPause))
		}
		pause = min(2*pause, longestPause)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// readStream reads a connection of the stream until it ends.
func (s *sampler) readStream(ctx context.Context) (connected bool, err error) {
	if err := s.streams.TryAcquire(s.holder, 1); err != nil {
		return false, err
	}
	defer s.streams.Release(s.holder, 1)
	for event, err := range s.source.Stream(ctx, client.StreamOptions{}) {
		if err != nil {
			return connected, err
		}
		connected = true
		if event.Resumed { // what happened meanwhile is missing
			s.disconnect(errStreamEnded)
		}
		s.count(event, time.Now())
	}
	return connected, errStreamEnded
}
