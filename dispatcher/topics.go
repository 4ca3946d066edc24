package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Effective returns a policy with every default filled in. It is the same in all namespaces.
func (d *Dispatcher) Effective(_ context.Context, _ string, p policy.Topic) policy.Topic {
	return p.WithDefaults(d.opts.Defaults)
}

// Topic returns a topic's stored policy. A topic with jobs only has an empty policy and revision 0. Error:
// store.ErrNotFound.
func (d *Dispatcher) Topic(ctx context.Context, namespace, name string) (store.Topic, error) {
	return d.sealer.VisibleTopic(d.storedTopic(ctx, namespace, name))
}

// storedTopic is Topic with headers as they are stored.
func (d *Dispatcher) storedTopic(ctx context.Context, namespace, name string) (store.Topic, error) {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return store.Topic{}, err
	}
	if t := set.Get(namespace, name); t != nil {
		return t.Stored, nil
	}
	stats, err := d.store.TopicStats(ctx,
		store.StatsFilter{Namespace: namespace, Topics: []string{name}, NamesOnly: true})
	if err != nil {
		return store.Topic{}, err
	}
	for _, s := range stats {
		if s.Topic == name && s.Registered > 0 {
			return store.Topic{Namespace: namespace, Name: name}, nil
		}
	}
	return store.Topic{}, store.ErrNotFound
}

// putTopic checks the changed fields and writes the policy, unless it is a dry run.
func (d *Dispatcher) putTopic(
	ctx context.Context, t store.Topic, was policy.Topic, updated policy.Update, dry bool,
) (store.Topic, error) {
	if t.Name == job.CallbackTopic && !t.Policy.Deliver.Pushes() {
		return store.Topic{}, invalid("/deliver", "must be push: callbacks are requests to their URLs")
	}
	if err := d.checkTopic(t.Policy, was); err != nil {
		return store.Topic{}, err
	}
	if err := d.sealer.SealTopic(&t, was); err != nil {
		return store.Topic{}, err
	}
	release, err := d.quotas.ReserveSettings(ctx, t.Namespace, usageOfTopic(t.Policy).Sub(usageOfTopic(was)))
	if err != nil || dry {
		release(store.ErrDryRun)
		return t, err
	}
	t.Updated = cmp.Or(updated, t.Updated)
	put, err := d.store.PutTopic(ctx, t)
	release(err)
	if err != nil {
		return store.Topic{}, err
	}
	d.publishPause(job.Queue{Namespace: t.Namespace, Topic: t.Name}, was.Paused, put.Policy.Paused, updated.By)
	// Later registrations see it at once; attempts see it by the revision that claims return.
	if _, err := d.policies.Reload(ctx); err != nil {
		d.log.Warn("reloading topic policies failed, using cached ones", "err", err)
	}
	return put, nil
}

// ChangeTopic applies change to a topic's policy, and creates the topic if necessary. Errors: that of change,
// *job.InvalidError, store.ErrContended, *store.RevisionError when the policy does not meet its condition,
// and store.ErrUnreadable: the change would lose the other fields.
func (d *Dispatcher) ChangeTopic(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
) (store.Topic, error) {
	return d.changeTopic(ctx, namespace, name, opts, change, false)
}

// ReplaceTopic is ChangeTopic for a change that sets all fields. It also replaces a policy that is not readable.
func (d *Dispatcher) ReplaceTopic(
	ctx context.Context, namespace, name string, opts store.ChangeOptions, change func(*policy.Topic) error,
) (store.Topic, error) {
	return d.changeTopic(ctx, namespace, name, opts, change, true)
}

func (d *Dispatcher) changeTopic(
	ctx context.Context, namespace, name string, opts store.ChangeOptions,
	change func(*policy.Topic) error, replace bool,
) (store.Topic, error) {
	return d.sealer.VisibleTopic(retryOnConflict(ctx, func() (store.Topic, error) {
		t, err := d.storedTopic(ctx, namespace, name)
		if errors.Is(err, store.ErrNotFound) {
			t, err = store.Topic{Namespace: namespace, Name: name}, nil
		}
		if err == nil {
			err = store.CheckCondition(opts.IfRevision, t.Revision)
		}
		if err == nil && t.Unreadable && !replace {
			err = fmt.Errorf("change topic %s: %w", name, store.ErrUnreadable)
		}
		if err != nil {
			return store.Topic{}, err
		}
		was := t.Policy
		err = change(&t.Policy)
		dry := errors.Is(err, store.ErrDryRun)
		switch {
		case errors.Is(err, errNoChange):
			return t, nil
		case err != nil && !dry:
			return store.Topic{}, err
		}
		if t.Revision == 0 && !dry {
			t.Revision = store.MustNotExist
		}
		return d.putTopic(ctx, t, was, opts.Updated, dry)
	}))
}

// checkTopic checks the changed URLs of a policy with the guard. Unchanged URLs are not checked, so that they do not
// block other changes.
func (d *Dispatcher) checkTopic(t, was policy.Topic) error {
	before := documents.URLs(was)
	for i, u := range documents.URLs(t) {
		if u.URL == "" || u == before[i] {
			continue
		}
		if err := d.checkURL(u.Field, u.URL); err != nil {
			return err
		}
	}
	return nil
}

// Topics returns the topics with a stored policy or with jobs, in order of name, at most limit (1 to store.MaxBatch),
// after a name.
func (d *Dispatcher) Topics(ctx context.Context, namespace, after string, limit int) ([]store.Topic, error) {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return nil, err
	}
	stats, err := d.store.TopicStats(ctx,
		store.StatsFilter{Namespace: namespace, After: after, Limit: limit, NamesOnly: true})
	if err != nil {
		return nil, err
	}
	var topics []store.Topic
	for name, t := range set.Values {
		if name.Namespace == namespace && name.Name > after {
			topics = append(topics, t.Stored)
		}
	}
	for _, s := range stats {
		if set.Get(namespace, s.Topic) == nil && s.Namespace == namespace {
			topics = append(topics, store.Topic{Namespace: namespace, Name: s.Topic})
		}
	}
	slices.SortFunc(topics, func(a, b store.Topic) int { return cmp.Compare(a.Name, b.Name) })
	return d.sealer.VisibleTopics(topics[:min(len(topics), limit)]), nil
}

// TopicStats returns the counts of topics, in order of name.
func (d *Dispatcher) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	all, err := d.store.TopicStats(ctx, filter)
	if err != nil || len(all) == 0 || filter.NamesOnly || store.IsInternal(all[0].Topic) && len(all) == 1 {
		return all, err
	}
	of := store.HealthFilter{Namespace: filter.Namespace}
	if len(filter.Topics) == 1 {
		of.Topic = filter.Topics[0]
	}
	failing, err := d.countFailing(ctx, of)
	for i := range all {
		all[i].LanesFailing = failing[all[i].Topic]
	}
	return all, err
}

// countFailing counts the lanes whose receiver fails, by topic.
func (d *Dispatcher) countFailing(ctx context.Context, filter store.HealthFilter) (map[string]int64, error) {
	filter.FailingAt, filter.Limit = time.Now(), store.MaxBatch
	lanes, err := d.store.ListHealth(ctx, filter)
	counts := make(map[string]int64)
	for _, l := range lanes {
		counts[l.Queue.Topic]++
	}
	return counts, err
}

// Totals returns the counts of all topics of a namespace, including removed ones.
func (d *Dispatcher) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	totals, err := d.store.Totals(ctx, namespace)
	if err != nil {
		return totals, err
	}
	failing, err := d.countFailing(ctx, store.HealthFilter{Namespace: namespace})
	for topic, n := range failing {
		if !store.IsInternal(topic) {
			totals.LanesFailing += n
		}
	}
	return totals, err
}

// History returns what became of the attempts of topics lately: see store.Counts.ReadHistory.
func (d *Dispatcher) History(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	all, err := d.store.ReadHistory(ctx, namespace, topics)
	for i := range all {
		all[i] = all[i].Recent(time.Now())
	}
	return all, err
}

// WorstLanes returns the lanes of a topic of which the most attempts failed, those that fail first.
func (d *Dispatcher) WorstLanes(
	ctx context.Context, namespace, topic string, limit int,
) (worst []store.WorstLane, err error) {
	now := time.Now()
	for _, failingAt := range []time.Time{now, {}} { // those that fail first
		if len(worst) == limit {
			break
		}
		all, err := d.store.ListHealth(ctx, store.HealthFilter{
			Namespace: namespace, Topic: topic, FailingAt: failingAt, Limit: store.MaxBatch,
		})
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(all, func(a, b store.LaneHealth) int {
			return cmp.Compare(b.Health.Failed, a.Health.Failed)
		})
		for _, l := range all {
			r := store.NewReceiver(l.Health, now)
			if r.Health != nil && len(worst) < limit && (!failingAt.IsZero() || !l.Health.Failing(now)) {
				worst = append(worst, store.WorstLane{Lane: l.Queue.Lane, Receiver: r})
			}
		}
	}
	if len(worst) == 0 {
		return nil, nil
	}
	names := make([]string, len(worst))
	for i := range worst {
		names[i] = store.LaneHistory(job.Queue{Topic: topic, Lane: worst[i].Lane})
	}
	all, err := d.History(ctx, namespace, names)
	for i := range all {
		worst[i].History = all[i]
	}
	return worst, err
}

// LaneStats returns the unfinished jobs per lane of a topic, in order of name, after a name.
func (d *Dispatcher) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	return d.store.LaneStats(ctx, namespace, topic, after, limit)
}

// LaneCounts returns the unfinished jobs of a lane; none for an unknown one.
func (d *Dispatcher) LaneCounts(ctx context.Context, q job.Queue) (store.LaneStats, error) {
	state, err := d.store.QueueState(ctx, q)
	return state.LaneStats, err
}
