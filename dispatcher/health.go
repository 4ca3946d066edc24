package dispatcher

import (
	"context"
	"log/slog"
	"time"

	"github.com/ringback/ringback/store"
)

const (
	// maxHealthLines bounds the logged changes of health per second.
	maxHealthLines = 10
	// waitingTimeout bounds the call that counts the jobs of a lane for the log.
	waitingTimeout = time.Second
)

// logHealth logs that a receiver begins to fail, or has recovered, by the settlements of this process.
func (d *Dispatcher) logHealth(ctx context.Context, c *store.HealthChange) {
	suppressed, ok := d.healthLog.Allow()
	if !ok {
		return
	}
	level, message, h := slog.LevelInfo, "receiver recovered", c.Before
	if _, fails := c.Failing(); fails {
		level, message, h = slog.LevelWarn, "receiver fails, jobs wait for their retries", c.After
	}
	attrs := []slog.Attr{
		slog.String("topic", c.Queue.Topic), slog.String("lane", c.Queue.Lane),
		slog.String("namespace", c.Queue.Namespace), slog.Int64("failed", h.Failed), slog.Int64("attempts", h.Attempts),
		slog.Int64("failed_percent", int64(100*h.Share(h.Last))), slog.Time("since", h.Since),
		slog.String("job", h.Failure.JobID), slog.Int("status", h.Failure.Status),
		slog.String("error_class", string(h.Failure.Class)),
	}
	ctx, cancel := context.WithTimeout(ctx, waitingTimeout)
	defer cancel()
	if counts, err := d.LaneCounts(ctx, c.Queue); err == nil {
		attrs = append(attrs, slog.Int64("waiting", counts.Scheduled+counts.Ready))
	}
	if suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", suppressed))
	}
	d.healthLog.Logger.LogAttrs(ctx, level, message, attrs...) //nolint:sloglint // one of two constants
}
