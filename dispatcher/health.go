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

// logHealth logs that a receiver begins to fail, or has recovered, by the settlements of this process. Its caller must
// not wait for the store, so that runHealthLog counts the jobs of the lane; a line that it has no room for lacks them.
func (d *Dispatcher) logHealth(_ context.Context, c *store.HealthChange) {
	suppressed, ok := d.healthLog.Allow()
	if !ok {
		return
	}
	line := healthLine{*c, suppressed}
	if d.state.Load() == running {
		select {
		case d.healthLines <- line:
			return
		default:
		}
	}
	d.writeHealth(line)
}

// healthLine is a change of a receiver's health, and how many lines were suppressed before it.
type healthLine struct {
	store.HealthChange

	suppressed int
}

// runHealthLog writes the lines of logHealth until ctx ends.
func (d *Dispatcher) runHealthLog(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			for {
				select {
				case line := <-d.healthLines:
					d.writeHealth(line)
				default:
					return
				}
			}
		case line := <-d.healthLines:
			var waiting []slog.Attr
			counting, cancel := context.WithTimeout(ctx, waitingTimeout)
			if counts, err := d.LaneCounts(counting, line.Queue); err == nil {
				waiting = append(waiting, slog.Int64("waiting", counts.Scheduled+counts.Ready))
			}
			cancel()
			d.writeHealth(line, waiting...)
		}
	}
}

func (d *Dispatcher) writeHealth(line healthLine, more ...slog.Attr) {
	level, message, h := slog.LevelInfo, "receiver recovered", line.Before
	if _, fails := line.Failing(); fails {
		level, message, h = slog.LevelWarn, "receiver fails, jobs wait for their retries", line.After
	}
	attrs := append([]slog.Attr{
		slog.String("topic", line.Queue.Topic), slog.String("lane", line.Queue.Lane),
		slog.String("namespace", line.Queue.Namespace), slog.Int64("failed", h.Failed),
		slog.Int64("attempts", h.Attempts), slog.Int64("failed_percent", int64(100*h.Share(h.Last))),
		slog.Time("since", h.Since), slog.String("job", h.Failure.JobID), slog.Int("status", h.Failure.Status),
		slog.String("error_class", string(h.Failure.Class)),
	}, more...)
	if line.suppressed > 0 {
		attrs = append(attrs, slog.Int("suppressed", line.suppressed))
	}
	//nolint:sloglint // one of two constants
	d.healthLog.Logger.LogAttrs(context.Background(), level, message, attrs...)
}
