package dispatcher

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/store"
)

// A change of settings is made of what is stored, and written only over that: when another change came between, it is
// made again, after a pause.
const (
	maxConflicts  = 10
	conflictPause = 2 * time.Millisecond
)

// errNoChange ends a change that would change nothing.
var errNoChange = errors.New("it stays as it was")

// retryOnConflict makes a change. While it fails with store.ErrVersion, another came between: then once more.
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
