package carrier

import (
	"context"
	"time"

	"github.com/ringback/ringback/store"
)

// sweeper removes ended jobs that retention no longer keeps, a bounded number between two moves.
type sweeper struct {
	shard *shard
	last  time.Time
	more  bool
	found bool // something was removed since the store was last found clean
	pause time.Duration
}

const (
	// sweepEvery is the pause after a round of sweeps that removed something, sweepIdle after one that did not.
	sweepEvery = 10 * time.Second
	sweepIdle  = time.Minute
	// sweepPause is left between two sweeps while there is more to remove.
	sweepPause = 5 * time.Millisecond
	// sweepLimit bounds one sweep, so that moves are not delayed.
	sweepLimit = 500
)

// wait returns the longest sleep until the next sweep.
func (w *sweeper) wait() time.Duration {
	if w.more {
		return sweepPause
	}
	return maxSleep
}

// sweep removes jobs when a sweep is due.
func (w *sweeper) sweep(ctx context.Context) error {
	if !w.more && time.Since(w.last) < w.pause {
		return nil
	}
	swept, err := w.shard.keeper.Sweep(ctx, store.NewToken(), sweepLimit)
	if err != nil {
		return err
	}
	w.last, w.more = time.Now(), swept.More
	w.found = w.found || swept.Jobs+swept.IDs > 0
	if !w.more {
		w.pause = sweepIdle
		if w.found {
			w.pause = sweepEvery
		}
		w.found = false
	}
	return nil
}
