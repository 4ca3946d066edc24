package app

import (
	"errors"
	"fmt"
)

// teardowns undo what was acquired, the last first.
type teardowns []teardown

// A teardown undoes one acquisition.
type teardown struct {
	name string
	undo func() error
}

// add registers a teardown, right after what it undoes was acquired.
func (t *teardowns) add(name string, undo func() error) { *t = append(*t, teardown{name, undo}) }

// run undoes everything once, in reverse, and joins what goes wrong: one that fails keeps none of the others from
// running.
func (t *teardowns) run() error {
	var errs []error
	for i := len(*t) - 1; i >= 0; i-- {
		if err := (*t)[i].undo(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", (*t)[i].name, err))
		}
	}
	*t = nil
	return errors.Join(errs...)
}
