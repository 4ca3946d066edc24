package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/transfer"
	"github.com/ringback/ringback/store"
)

// checkImports refuses a main store in which an import is not complete.
func checkImports(ctx context.Context, n namedStore, main store.Settings) error {
	if err := transfer.CheckImports(ctx, main); err != nil {
		return fmt.Errorf("open the store %s: %w", n, err)
	}
	return nil
}

// importsEvery is the interval at which a process looks whether an import has begun.
const importsEvery = 5 * time.Second

// watchImports returns an error when an import has begun in a main store: its locks may have been free for a moment. It
// returns nil when ctx ends.
func watchImports(ctx context.Context, n namedStore, main store.Settings) error {
	tick := time.NewTicker(importsEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := checkImports(ctx, n, main); errors.As(err, new(*transfer.UnfinishedImportError)) {
			return err
		}
	}
}

// AcceptImports ends the imports into stores that were interrupted, so that what they have stored is delivered. It
// returns their number.
func AcceptImports(ctx context.Context, o TransferOptions) (_ int, err error) {
	t, closeAll, err := o.openStores(ctx, true)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	return transfer.AcceptImports(ctx, t)
}
