package carrier

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ringback/ringback/store"
)

// repair has the store check the shard's data as long as this process carries it: beside the moves, which a check of a
// large shard must not hold up. A call that fails is made again; the moves find out by themselves when the store is away.
func (s *shard) repair(ctx context.Context) {
	var again store.Backoff
	for ctx.Err() == nil {
		var result store.RepairResult
		err := s.call(ctx, func(ctx context.Context) (err error) {
			result, err = s.keeper.Repair(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			level := again.Level()
			if errors.Is(err, store.ErrUnavailable) {
				level = slog.LevelDebug // the carrier's rounds fail as well, and say so
			}
			s.log.Log(ctx, level, "checking the shard failed, retrying", "shard", s.n, "err", err)
			again.Wait(ctx)
		case result.Wait < 0:
			return
		default:
			again.Reset()
			sleep(ctx, result.Wait, nil)
		}
	}
}
