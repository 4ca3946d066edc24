package pool

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// maxLinesPerSecond bounds the logged attempts; of the rest only the number is logged.
const maxLinesPerSecond = 100

// attemptLog writes a log line per attempt, up to maxLinesPerSecond.
type attemptLog struct {
	log *slog.Logger

	mu      sync.Mutex
	second  int64
	written int
	dropped int
}

// attempt logs the result of a claimed job.
func (s *attemptLog) attempt(ctx context.Context, h *store.ClaimedJob, v policy.Verdict, r job.Attempt) {
	if !s.log.Enabled(ctx, slog.LevelInfo) || !s.allow(time.Now().Unix()) {
		return
	}
	attrs := []slog.Attr{
		slog.String("job", h.ID), slog.String("topic", h.Topic), slog.String("lane", h.Lane),
		slog.Int("attempt", r.N), slog.String("verdict", v.Kind.String()),
	}
	if r.Status != 0 {
		attrs = append(attrs, slog.Int("status", r.Status))
	}
	if r.Kind == job.KindAttempt {
		attrs = append(attrs, slog.Float64("took_ms", float64(r.Duration.Round(10*time.Microsecond))/1e6))
	}
	if v.Kind == policy.Again {
		attrs = append(attrs, slog.Int64("wait_ms", v.Wait.Milliseconds()))
	}
	if v.Reason != "" {
		attrs = append(attrs, slog.String("reason", string(v.Reason)))
	}
	if r.Error != "" {
		attrs = append(attrs, slog.String("class", string(r.ErrorClass)), slog.String("err", r.Error))
	}
	s.log.LogAttrs(ctx, slog.LevelInfo, "attempt", attrs...)
}

// allow counts a line in its second. The first line of a second logs the number dropped in the last.
func (s *attemptLog) allow(second int64) bool {
	s.mu.Lock()
	dropped := 0
	if second != s.second {
		s.second, s.written, dropped, s.dropped = second, 0, s.dropped, 0
	}
	ok := s.written < maxLinesPerSecond
	if ok {
		s.written++
	} else {
		s.dropped++
	}
	s.mu.Unlock()
	if dropped > 0 {
		s.log.Info("attempt log lines dropped", "count", dropped)
	}
	return ok
}

// flush logs the lines dropped last.
func (s *attemptLog) flush() {
	s.mu.Lock()
	dropped := s.dropped
	s.dropped = 0
	s.mu.Unlock()
	if dropped > 0 {
		s.log.Info("attempt log lines dropped", "count", dropped)
	}
}
