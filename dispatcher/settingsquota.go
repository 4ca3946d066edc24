package dispatcher

import (
	"context"
	"encoding/json"
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// A settingsChange is a change of settings, without pauses: a full quota refuses none.
type settingsChange struct {
	namespace     string
	isNew         bool
	before, after any // marshalled as they are stored
}

// changeOfTopic is a change of a topic's policy.
func changeOfTopic(t store.Topic, before policy.Topic) settingsChange {
	isNew := t.Revision <= 0 && !t.Policy.Paused
	before.Paused, before.Pause = false, policy.Pause{}
	t.Policy.Paused, t.Policy.Pause = false, policy.Pause{}
	return settingsChange{t.Namespace, isNew, before, t.Policy}
}

// changeOfLane is a change of a lane's settings.
func changeOfLane(l store.Lane, before policy.Lane) settingsChange {
	before.Paused, before.Pause = false, policy.Pause{}
	l.Settings.Paused, l.Settings.Pause = false, policy.Pause{}
	return settingsChange{l.Queue.Namespace, l.Revision <= 0 && !l.Settings.IsZero(), before, l.Settings}
}

// size returns what the change adds to the use of its namespace.
func (c *settingsChange) size() (size store.Usage) {
	if c.isNew {
		size.Jobs, size.Bytes = 1, sizeOfJSON(c.after)
		return size
	}
	size.Bytes = sizeOfJSON(c.after) - sizeOfJSON(c.before)
	return size
}

func sizeOfJSON(settings any) int64 {
	text, _ := json.Marshal(settings) // the store writes them after that, and says what is wrong
	return int64(len(text))
}

// ReserveSettings reserves room for a change in the quota of settings of its namespace. release must follow, with the
// error of the change. Error: *job.QuotaError.
func (q *namespaceQuotas) ReserveSettings(ctx context.Context, c settingsChange) (release func(error), err error) {
	release = func(error) {}
	quota, err := q.of(ctx, c.namespace)
	if err != nil || quota.Settings == 0 && quota.SettingsBytes == 0 {
		return release, err
	}
	size := c.size()
	if size.Jobs == 0 && size.Bytes <= 0 {
		return release, nil
	}
	u := q.usageOf(q.settings, c.namespace, q.countSettings)
	limits := store.Usage{Jobs: quota.Settings, Bytes: quota.SettingsBytes}
	room, err := u.reserve(ctx, limits, []store.Usage{size}, false)
	if err != nil {
		return release, err
	}
	if room.short == "" {
		return func(failed error) {
			written := room.size
			if failed != nil {
				written = store.Usage{}
			}
			u.release(room.size, written, store.Usage{})
		}, nil
	}
	e := &job.QuotaError{
		Quota: "settings", Limit: strconv.FormatInt(quota.Settings, 10), Used: strconv.FormatInt(room.used.Jobs, 10),
		Remedy: "remove topics, lanes or schedules that are not used",
	}
	if room.short == quotaBytes {
		e.Quota, e.Limit = "settings_bytes", units.FormatSize(quota.SettingsBytes)
		e.Used = units.FormatSize(room.used.Bytes)
	}
	return release, e
}

// countSettings counts the topics with a policy, the lanes with settings and the schedules of a namespace.
func (d *Dispatcher) countSettings(ctx context.Context, namespace string) (sum store.Usage, err error) {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return sum, err
	}
	add := func(doc store.Document) { sum = sum.Add(store.Usage{Jobs: 1, Bytes: int64(len(doc.Value))}) }
	for name, t := range set.Values {
		if name.Namespace != namespace {
			continue
		}
		sum = sum.Add(store.Usage{Jobs: 1, Bytes: t.Size})
		for _, shard := range d.store.Shards() {
			lanes := store.LaneKey(job.Queue{Namespace: namespace, Topic: name.Name})
			if err := eachDocument(ctx, shard, lanes, add); err != nil {
				return sum, err
			}
		}
	}
	return sum, eachDocument(ctx, d.opts.Store, store.DocumentKey{Kind: store.KindSchedule, Namespace: namespace}, add)
}

// eachDocument calls do with each document of the kind and namespace of a key, and of lanes those of its topic.
func eachDocument(
	ctx context.Context, s store.Settings, after store.DocumentKey, do func(store.Document),
) error {
	for {
		docs, _, err := s.ListDocuments(ctx, after, store.MaxBatch)
		if err != nil {
			return err
		}
		for _, doc := range docs {
			if doc.Key.Namespace != after.Namespace {
				return nil
			}
			do(doc)
			after = doc.Key
		}
		if len(docs) < store.MaxBatch {
			return nil
		}
	}
}

// NamespaceUsage counts what a namespace uses of what its quota bounds.
func (d *Dispatcher) NamespaceUsage(ctx context.Context, namespace string) (job.NamespaceUsage, error) {
	jobs, err := d.store.Usage(ctx, namespace)
	if err != nil {
		return job.NamespaceUsage{}, err
	}
	settings, err := d.countSettings(ctx, namespace)
	return job.NamespaceUsage{
		Pending: jobs.Jobs, Bytes: jobs.Bytes, KeptBytes: jobs.KeptBytes,
		Settings: settings.Jobs, SettingsBytes: settings.Bytes,
	}, err
}
