package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/store"
)

// Settings are changed by read, modify and write under the revision that was read. After a conflict the change is
// retried.
const (
	maxConflicts  = 10
	conflictPause = 2 * time.Millisecond
)

// errNoChange ends a change that has no effect.
var errNoChange = errors.New("it stays as it was")

// retryOnConflict calls do until it does not fail with store.ErrVersion, at most maxConflicts times.
func retryOnConflict[T any](ctx context.Context, do func() (T, error)) (done T, err error) {
	for try := 1; ; try++ {
		done, err = do()
		if !errors.Is(err, store.ErrVersion) {
			return done, err
		}
		if try == maxConflicts {
			return done, store.ErrContended
		}
		timer := time.NewTimer(conflictPause + rand.N(conflictPause*time.Duration(try)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return done, context.Cause(ctx)
		}
	}
}
