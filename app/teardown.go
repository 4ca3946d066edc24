package app

import (
	"errors"
	"fmt"
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
	for i := len(*t) - 1; i >= 0; i-- {
		if err := (*t)[i].undo(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", (*t)[i].name, err))
		}
	}
	*t = nil
	return errors.Join(errs...)
}
