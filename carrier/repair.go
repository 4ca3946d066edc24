package carrier

import (
	"context"
	"errors"
	"log/slog"

	"github.com/ringback/ringback/store"
)

// repair makes the store check the shard's data while this process carries it, concurrently with the moves, which a
// check of a large shard must not delay. Failed calls are repeated.
func (s *shard) repair(ctx context.Context) {
	var again store.Backoff
	for ctx.Err() == nil {
		var result store.RepairResult
		err := store.Call(ctx, func(ctx context.Context) (err error) {
			result, err = s.keeper.Repair(ctx)
			return err
		})
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			level := again.Level()
			if errors.Is(err, store.ErrUnavailable) {
				level = slog.LevelDebug // the carrier logs its failed rounds
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
