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
	changeTries = 10
	changePause = 2 * time.Millisecond
)

// errAsItWas ends a change that would change nothing.
var errAsItWas = errors.New("it stays as it was")

// again makes a change. While it fails with store.ErrVersion, another came between: then once more.
func again[T any](ctx context.Context, do func() (T, error)) (done T, err error) {
	for try := 1; ; try++ {
		done, err = do()
		if !errors.Is(err, store.ErrVersion) {
			return done, err
		}
		if try == changeTries {
			return done, store.ErrContended
		}
		timer := time.NewTimer(changePause + rand.N(changePause*time.Duration(try)))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return done, context.Cause(ctx)
		}
	}
}
