package app

import (
	"errors"
	"fmt"
	"slices"
)

// teardownStack undoes acquisitions in reverse order.
type teardownStack []teardown

// teardown undoes one acquisition.
type teardown struct {
	name string
	undo func() error
}

// add registers a teardown. Call it right after the acquisition.
func (t *teardownStack) add(name string, undo func() error) { *t = append(*t, teardown{name, undo}) }

// run runs all teardowns once, in reverse order, also after one has failed, and joins their errors.
func (t *teardownStack) run() error {
	var errs []error
	for _, r := range slices.Backward(*t) {
		if err := r.undo(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", r.name, err))
		}
	}
	*t = nil
	return errors.Join(errs...)
}
