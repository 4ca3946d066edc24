package carrier

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/ringback/ringback/store"
)

// agendaTimeout bounds one wait for the agenda, so that a lost connection is noticed.
const agendaTimeout = 5 * time.Second

// watchAgenda wakes the carrier whenever a moment is scheduled before the head of the agenda, until ctx ends.
func (s *shard) watchAgenda(ctx context.Context) {
	var pause store.Backoff
	for ctx.Err() == nil {
		moved, err := s.keeper.WaitAgenda(ctx, agendaTimeout)
		if moved {
			s.wakeUp()
		}
		switch {
		case ctx.Err() != nil:
		case err == nil:
			pause.Reset()
		default:
			level := pause.Level()
			if errors.Is(err, store.ErrUnavailable) {
				level = slog.LevelDebug // the carrier's rounds fail as well, and log it
			}
			s.log.Log(ctx, level, "waiting for the agenda failed, retrying", "shard", s.n, "err", err)
			pause.Wait(ctx)
		}
	}
}
