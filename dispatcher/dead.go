package dispatcher

import (
	"context"
	"slices"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// Dead reads one page of dead letters: of a topic, or (an empty one) of all topics, in order of name.
func (d *Dispatcher) Dead(ctx context.Context, filter store.Filter) (store.Page, error) {
	filter.State = job.Dead
	if filter.Topic != "" {
		return d.store.List(ctx, filter)
	}
	after, inner := "", ""
	if filter.Cursor != "" {
		var ok bool
		if after, inner, ok = strings.Cut(filter.Cursor, "/"); !ok || !job.IsTopic(after) {
			return store.Page{}, store.ErrCursor
		}
	}
	if inner != "" { // in the middle of a topic the names of the others do not matter
		filter.Topic, filter.Cursor = after, inner
		page, err := d.store.List(ctx, filter)
		if err != nil {
			return store.Page{}, err
		}
		if page.Cursor != "" {
			page.Cursor = after + "/" + page.Cursor
			return page, nil
		}
		if len(page.Jobs) > 0 {
			page.Cursor, err = d.deadAfter(ctx, filter.Namespace, after)
			return page, err
		}
	}
	names, err := d.deadTopics(ctx, filter.Namespace)
	if err != nil {
		return store.Page{}, err
	}
	at, found := slices.BinarySearch(names, after)
	if found && inner != "" {
		at++
	}
	filter.Cursor = ""
	for ; at < len(names); at++ {
		filter.Topic = names[at]
		page, err := d.store.List(ctx, filter)
		switch {
		case err != nil:
			return store.Page{}, err
		case page.Cursor != "":
			page.Cursor = names[at] + "/" + page.Cursor
			return page, nil
		case len(page.Jobs) > 0 && at+1 < len(names):
			page.Cursor = names[at+1] + "/"
			return page, nil
		case len(page.Jobs) > 0:
			return page, nil
		}
	}
	return store.Page{}, nil
}

// deadAfter is the cursor that goes on with the topic after a name; empty when there is none.
func (d *Dispatcher) deadAfter(ctx context.Context, namespace, name string) (string, error) {
	names, err := d.deadTopics(ctx, namespace)
	if err != nil {
		return "", err
	}
	at, found := slices.BinarySearch(names, name)
	if found {
		at++
	}
	if at == len(names) {
		return "", nil
	}
	return names[at] + "/", nil
}

// deadTopics are the names of the topics in which jobs have died, in order.
func (d *Dispatcher) deadTopics(ctx context.Context, namespace string) (names []string, err error) {
	stats, err := d.store.Stats(ctx, namespace, "")
	if err != nil {
		return nil, err
	}
	for _, s := range stats {
		if s.Dead > 0 && s.Namespace == namespace {
			names = append(names, s.Topic)
		}
	}
	return names, nil
}
