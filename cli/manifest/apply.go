package manifest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/ringback/ringback/client"
	"github.com/ringback/ringback/console/words"
)

// Apply makes the changes of a plan, and calls done after each. A resource that has changed since it was read is not
// written. After an error the changes that were not made are found again by the next plan. What the server refuses to
// remove does not keep the others.
func (p *Plan) Apply(ctx context.Context, call Server, done func(c *Change)) error {
	var mu sync.Mutex
	made := 0
	var kept []error
	for _, some := range p.phases() {
		err := forEach(ctx, len(some), func(ctx context.Context, i int) error {
			err := some[i].make(context.WithoutCancel(ctx), call) // what is begun is ended
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				made++
				done(some[i])
			case some[i].Action == Remove && (errors.Is(err, client.ErrConflict) || errors.Is(err, client.ErrRevision)):
				kept = append(kept, err)
				return nil
			}
			return err
		})
		if err != nil {
			return &ApplyError{Made: made, Of: len(p.Changes), Err: errors.Join(append(kept, err)...)}
		}
	}
	if len(kept) > 0 {
		slices.SortFunc(kept, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
		return &ApplyError{Made: made, Of: len(p.Changes), Err: errors.Join(kept...)}
	}
	return nil
}

// phases returns the changes of each kind in order: first what is written, then what is removed.
func (p *Plan) phases() (phases [][]*Change) {
	add := func(kind Kind, remove bool) {
		phases = append(phases, slices.DeleteFunc(slices.Clone(p.Changes), func(c *Change) bool {
			return c.Kind != kind || (c.Action == Remove) != remove
		}))
	}
	for _, kind := range kinds {
		add(kind, false)
	}
	for _, kind := range slices.Backward(kinds) {
		add(kind, true)
	}
	return phases
}

// make makes a change, if the resource has not changed since it was read.
func (c *Change) make(ctx context.Context, call Server) error {
	header := http.Header{"If-Match": {`"` + c.revision + `"`}}
	if c.revision == "" {
		header = http.Header{"If-None-Match": {"*"}}
	}
	method := http.MethodPut
	if c.Action == Remove {
		method = http.MethodDelete
	}
	_, err := call(ctx, client.Request{Method: method, Path: c.path(), Header: header, Body: c.body})
	switch {
	case err == nil, c.Action == Remove && errors.Is(err, client.ErrNotFound):
		return nil
	case errors.Is(err, client.ErrRevision):
		return &changeError{c, errors.Join(errors.New("it has changed since it was compared: apply the files "+
			"again"), err)}
	}
	if c.res != nil {
		if faults, other := c.faults(err); other == nil {
			return &changeError{c, errors.Join(errors.New(strings.Join(faults, "\n")), err)}
		}
	}
	return &changeError{c, err}
}

// A changeError is the error of a change that was not made.
type changeError struct {
	change *Change
	err    error
}

func (e *changeError) Unwrap() error { return e.err }

// Error returns the change and the first line of its error.
func (e *changeError) Error() string {
	text, _, _ := strings.Cut(e.err.Error(), "\n")
	return fmt.Sprintf("%s %s: %s", e.change.Action, e.change.ID, text)
}

// An ApplyError is the error of a plan that was not carried out to its end.
type ApplyError struct {
	Made, Of int
	Err      error
}

func (e *ApplyError) Unwrap() error { return e.Err }

// Error returns the error, how much is done, and what to do.
func (e *ApplyError) Error() string {
	return fmt.Sprintf("%s\n%d of %s made: a repeat goes on with the others", e.Err, e.Made,
		words.CountVerb(int64(e.Of), "change", "was", "were"))
}
