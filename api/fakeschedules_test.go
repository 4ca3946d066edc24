package api

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// fakeSchedules has schedules in memory.
type fakeSchedules struct {
	scheduled map[string]store.Schedule
	refuse    error // of PutSchedule, after the change
}

func (f *fake) PutSchedule(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	s, err := f.Schedule(ctx, namespace, name)
	if errors.Is(err, store.ErrNotFound) {
		s, err = store.Schedule{Namespace: namespace, Name: name, CreatedAt: epoch}, nil
	}
	if err == nil {
		err = change(&s)
	}
	if errors.Is(err, store.ErrDryRun) && f.refuse == nil {
		return s, nil
	}
	if err == nil {
		err = store.CheckCondition(opts.IfRevision, s.Revision)
	}
	if err = errors.Join(err, f.refuse); err != nil {
		return store.Schedule{}, err
	}
	s.Revision++
	f.actor = opts.Updated.By
	f.scheduled[name] = s
	return s, nil
}

func (f *fake) ChangeSchedule(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*store.Schedule) error,
) (store.Schedule, error) {
	if _, err := f.Schedule(ctx, namespace, name); err != nil {
		return store.Schedule{}, err
	}
	return f.PutSchedule(ctx, namespace, name, opts, change)
}

func (f *fake) Schedule(_ context.Context, _, name string) (store.Schedule, error) {
	s, ok := f.scheduled[name]
	if !ok && f.err == nil {
		return s, store.ErrNotFound
	}
	return s, f.err
}

func (f *fake) ListSchedules(_ context.Context, _, after string, limit int) ([]store.Schedule, error) {
	var all []store.Schedule
	for _, s := range f.scheduled {
		if s.Name > after {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(a, b store.Schedule) int { return strings.Compare(a.Name, b.Name) })
	return all[:min(len(all), limit)], f.err
}

func (f *fake) DeleteSchedule(
	ctx context.Context, namespace, name string, ifRevision int64, check func(*store.Schedule) error,
) error {
	s, err := f.Schedule(ctx, namespace, name)
	if err == nil {
		err = check(&s)
	}
	if err == nil {
		err = store.CheckCondition(ifRevision, s.Revision)
	}
	if err == nil {
		delete(f.scheduled, name)
	}
	return err
}

func (f *fake) RunSchedule(
	ctx context.Context, namespace, name, actor string, check func(*store.Schedule) error,
) (store.RoutedResult, error) {
	s, err := f.Schedule(ctx, namespace, name)
	if err == nil {
		err = check(&s)
	}
	if err != nil {
		return store.RoutedResult{}, err
	}
	n := job.New{Spec: s.Job}
	n.Namespace, n.CreatedBy = namespace, actor
	result := f.Register(ctx, []job.New{n})[0]
	return result, result.Err
}
