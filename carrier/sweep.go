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
func (s *sweeper) wait() time.Duration {
	if s.more {
		return sweepPause
	}
	return maxSleep
}

// sweep removes jobs when a sweep is due.
func (s *sweeper) sweep(ctx context.Context) error {
	if !s.more && time.Since(s.last) < s.pause {
		return nil
	}
	swept, err := s.shard.keeper.Sweep(ctx, store.NewToken(), sweepLimit)
	if err != nil {
		return err
	}
	s.last, s.more = time.Now(), swept.More
	s.found = s.found || swept.Jobs+swept.IDs > 0
	if !s.more {
		s.pause = sweepIdle
		if s.found {
			s.pause = sweepEvery
		}
		s.found = false
	}
	return nil
}
