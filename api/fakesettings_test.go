package api

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

func (f *fake) ChangeTopic(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
) (store.Topic, error) {
	if f.err != nil || f.busy {
		return store.Topic{}, cmp.Or(f.err, store.ErrContended)
	}
	t, err := f.Topic(ctx, namespace, name)
	if errors.Is(err, store.ErrNotFound) {
		t, err = store.Topic{Namespace: namespace, Name: name}, nil
	}
	if err == nil {
		err = store.CheckCondition(opts.IfRevision, t.Revision)
	}
	if err == nil {
		err = change(&t.Policy)
	}
	if errors.Is(err, store.ErrDryRun) && f.bad == nil {
		return t, nil
	}
	if err == nil {
		err = f.bad
	}
	if err != nil {
		return store.Topic{}, err
	}
	t.Revision++
	f.actor = opts.Updated.By
	f.topics[name] = t
	return t, nil
}

func (f *fake) DeleteTopic(ctx context.Context, d store.TopicDeletion) (store.TopicDeleted, error) {
	f.deletions = append(f.deletions, d)
	t, err := f.Topic(ctx, d.Namespace, d.Name)
	if err == nil {
		err = store.CheckCondition(d.IfRevision, t.Revision)
	}
	if err == nil && f.busy {
		err = store.ErrContended
	}
	if err == nil {
		err = f.bad
	}
	if err == nil {
		delete(f.topics, d.Name)
	}
	return f.deleted, err
}

// ReplaceTopic is ChangeTopic but for settings that are not readable.
func (f *fake) ReplaceTopic(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
) (store.Topic, error) {
	if errors.Is(f.bad, store.ErrUnreadable) {
		f.bad = nil
	}
	return f.ChangeTopic(ctx, namespace, name, opts, change)
}

// ReplaceLane is ChangeLane but for settings that are not readable.
func (f *fake) ReplaceLane(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
) (store.Lane, error) {
	if errors.Is(f.bad, store.ErrUnreadable) {
		f.bad = nil
	}
	return f.ChangeLane(ctx, q, opts, change)
}

func (f *fake) Lane(_ context.Context, q job.Queue) (store.Lane, error) {
	l := f.own[q.Topic+"/"+q.Lane]
	l.Queue = q
	return l, f.err
}

func (f *fake) ListLanes(_ context.Context, _, topic, eventType, after string, limit int) ([]store.Lane, error) {
	f.eventType = eventType
	var all []store.Lane
	for _, name := range sortedKeys(f.own) {
		t, lane, _ := strings.Cut(name, "/")
		if t == topic && lane > after && len(all) < limit {
			l := f.own[name]
			l.Queue = job.Queue{Topic: t, Lane: lane}
			all = append(all, l)
		}
	}
	return all, f.err
}

func (f *fake) ChangeLane(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
) (store.Lane, error) {
	if f.busy {
		return store.Lane{}, store.ErrContended
	}
	l, err := f.Lane(ctx, q)
	if err == nil {
		err = store.CheckCondition(opts.IfRevision, l.Revision)
	}
	if err == nil {
		err = change(&l.Settings)
	}
	if errors.Is(err, store.ErrDryRun) && f.bad == nil {
		return l, nil
	}
	if err == nil {
		err = f.bad
	}
	if err != nil {
		return store.Lane{}, err
	}
	f.actor = opts.Updated.By
	if l.Settings.IsZero() {
		delete(f.own, q.Topic+"/"+q.Lane)
		return store.Lane{Queue: q}, nil
	}
	l.Revision++
	f.own[q.Topic+"/"+q.Lane] = l
	return l, nil
}

// AddSecret stores a secret and returns only its public part, as a service does.
func (f *fake) AddSecret(
	ctx context.Context, o job.Queue, secret sign.Secret, opts store.ChangeOptions,
) (policy.Secret, error) {
	f.text[secret.ID()] = secret.Text()
	added := policy.Secret{ID: secret.ID(), CreatedAt: epoch, Value: policy.Sealed(secret.Text())}
	return added, f.changeSecrets(ctx, o, opts, func(all []policy.Secret) ([]policy.Secret, error) {
		return append([]policy.Secret{added}, all...), nil
	})
}

func (f *fake) RemoveSecret(ctx context.Context, o job.Queue, id string, opts store.ChangeOptions) error {
	return f.changeSecrets(ctx, o, opts, func(all []policy.Secret) ([]policy.Secret, error) {
		rest := slices.DeleteFunc(slices.Clone(all), func(s policy.Secret) bool { return s.ID == id })
		if len(rest) == len(all) {
			return nil, store.ErrNotFound
		}
		return rest, nil
	})
}

func (f *fake) changeSecrets(
	ctx context.Context, o job.Queue, opts store.ChangeOptions, change func([]policy.Secret) ([]policy.Secret, error),
) error {
	var err error
	if o.Lane != "" {
		_, err = f.ChangeLane(ctx, o, opts, func(l *policy.Lane) (err error) {
			l.Secrets, err = change(l.Secrets)
			return err
		})
		return err
	}
	_, err = f.ChangeTopic(ctx, o.Namespace, o.Topic, opts, func(t *policy.Topic) (err error) {
		t.Secrets, err = change(t.Secrets)
		return err
	})
	return err
}

func (f *fake) Secrets(ctx context.Context, o job.Queue) ([]policy.Secret, error) {
	if o.Lane != "" {
		l, err := f.Lane(ctx, o)
		return l.Settings.Secrets, err
	}
	t, err := f.Topic(ctx, o.Namespace, o.Topic)
	return t.Policy.Secrets, err
}

func (f *fake) PublicKeys(ctx context.Context, o job.Queue) ([]store.PublicKey, error) {
	all, err := f.Secrets(ctx, o)
	var keys []store.PublicKey
	for _, s := range all {
		secret, bad := sign.ParseSecret(string(s.Value))
		if bad == nil && secret.Asymmetric() {
			keys = append(keys, store.PublicKey{ID: s.ID, CreatedAt: s.CreatedAt, Key: secret.PublicKey()})
		}
	}
	return keys, err
}

func (f *fake) Groups(_ context.Context, filter store.Filter, by store.GroupBy) (store.Groups, error) {
	f.filter, f.by = filter, by
	return f.groups, f.err
}

func (f *fake) GroupIDs(
	_ context.Context, _ string, ids []string, states []job.State, by store.GroupBy,
) (store.Groups, error) {
	f.counted, f.filter.States, f.by = ids, states, by
	return f.groups, f.err
}

func (f *fake) GroupReplay(
	_ context.Context, _ string, order store.WorkOrder, by store.GroupBy,
) (store.Groups, error) {
	f.order, f.by = order, by
	return f.groups, f.err
}

func (f *fake) StartWork(_ context.Context, _ string, order store.WorkOrder) (store.Work, error) {
	f.order = order
	f.work.WorkOrder = order
	return f.work, errors.Join(f.err, f.bad)
}

func (f *fake) Work(_ context.Context, _, id string) (store.Work, error) {
	if id != f.work.ID {
		return store.Work{}, store.ErrNotFound
	}
	return f.work, f.err
}

func (f *fake) StopWork(ctx context.Context, namespace, id, _ string) (store.Work, error) {
	f.work.State = store.WorkStopped
	return f.Work(ctx, namespace, id)
}

func (f *fake) ListWork(
	_ context.Context, filter store.Filter, shown func(*store.Work) bool,
) ([]store.Work, store.Page, error) {
	f.filter = filter
	if !shown(&f.work) {
		return nil, f.page, f.err
	}
	return []store.Work{f.work}, f.page, f.err
}

func (f *fake) SendEvents(_ context.Context, _, actor string, all []store.EventSpec) []store.SentEvent {
	f.events = append(f.events, all...)
	results := make([]store.SentEvent, len(all))
	for i, e := range all {
		if results[i].Err = f.err; f.err != nil {
			continue
		}
		results[i].Event = f.event
		results[i].Event.Type, results[i].Event.Topic, results[i].Event.CreatedBy = e.Type, e.Job.Topic, actor
		if e.ID != "" {
			results[i].Event.ID = e.ID
		}
	}
	return results
}

func (f *fake) PreviewEvent(_ context.Context, _, _ string, e store.EventSpec) (store.Event, error) {
	f.events = append(f.events, e)
	return f.event, f.err
}

func (f *fake) Event(_ context.Context, _, id string) (store.Event, error) {
	if id != f.event.ID {
		return store.Event{}, store.ErrNotFound
	}
	return f.event, f.err
}

func (f *fake) WaitForEvent(ctx context.Context, namespace, id string, limit time.Duration) (store.Event, error) {
	f.waits = append(f.waits, limit)
	return f.Event(ctx, namespace, id)
}

func (f *fake) TestLane(_ context.Context, q job.Queue, eventType, _ string) store.RoutedResult {
	f.eventType = eventType
	return f.insert(job.New{Spec: job.Spec{ID: job.EventJobID("test-1", q.Topic, q.Lane), Queue: q}})
}

func (f *fake) ListEvents(
	_ context.Context, filter store.Filter, shown func(*store.Event) bool,
) ([]store.Event, store.Page, error) {
	f.filter = filter
	if !shown(&f.event) {
		return nil, f.page, f.err
	}
	return []store.Event{f.event}, f.page, f.err
}
