package dispatcher

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// usageOfTopic returns what a policy uses without its pause, which no quota refuses.
func usageOfTopic(p policy.Topic) store.Usage {
	p.Paused, p.Pause = false, policy.Pause{}
	return usageOfSettings(p)
}

// usageOfLane returns what the settings of a lane use without their pause, which no quota refuses.
func usageOfLane(l policy.Lane) store.Usage {
	l.Paused, l.Pause = false, policy.Pause{}
	return usageOfSettings(l)
}

// usageOfSettings returns what settings use that are marshalled as they are stored. Without any field they use nothing.
func usageOfSettings(settings any) store.Usage {
	text, _ := json.Marshal(settings) // the store writes them after that, and says what is wrong
	if string(text) == "{}" {
		return store.Usage{}
	}
	return store.Usage{Jobs: 1, Bytes: int64(len(text))}
}

// ReserveSettings reserves room for a change of settings by size in the quota of their namespace. release must follow,
// with the error of the change. Only its first call counts. Error: *job.QuotaError.
func (q *namespaceQuotas) ReserveSettings(
	ctx context.Context, namespace string, size store.Usage,
) (release func(error), err error) {
	release = func(error) {}
	if size.Jobs <= 0 && size.Bytes <= 0 {
		return release, nil
	}
	quota, err := q.of(ctx, namespace)
	if err != nil || quota.Settings == 0 && quota.SettingsBytes == 0 {
		return release, err
	}
	u := q.usageOfSettings(namespace)
	limits := store.Usage{Jobs: quota.Settings, Bytes: quota.SettingsBytes}
	room, err := u.reserve(ctx, limits, []store.Usage{size}, false, time.Now())
	if err != nil {
		return release, err
	}
	if room.short == "" {
		return func(failed error) {
			reserved, written := room.size, room.size
			if failed != nil {
				written = store.Usage{}
			}
			room.size = store.Usage{}
			u.release(reserved, written, store.Usage{})
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

// countSettings counts the topics with a policy, the lanes with settings and the schedules of a namespace, but not
// those that are only paused, and the bytes of all. It makes a call for each topic and shard, to all shards at once.
func (d *Dispatcher) countSettings(ctx context.Context, namespace string) (sum store.Usage, err error) {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return sum, err
	}
	var topics []string
	for name, t := range set.Values {
		if name.Namespace == namespace {
			topics = append(topics, name.Name)
			sum = sum.Add(store.Usage{Jobs: usageOfTopic(t.Stored.Policy).Jobs, Bytes: t.Size})
		}
	}
	lanes := make([]store.Usage, len(d.store.Shards()))
	err = d.store.ForEachShard(func(n int, shard store.Shard) error {
		for _, topic := range topics {
			key := store.LaneKey(job.Queue{Namespace: namespace, Topic: topic})
			if err := eachDocument(ctx, shard, key, func(doc store.Document) {
				lane, _ := doc.Lane() // an unreadable one is a pause
				size := store.Usage{Jobs: usageOfLane(lane.Settings).Jobs, Bytes: int64(len(doc.Value))}
				lanes[n] = lanes[n].Add(size)
			}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return sum, err
	}
	for _, size := range lanes {
		sum = sum.Add(size)
	}
	schedules := store.DocumentKey{Kind: store.KindSchedule, Namespace: namespace}
	return sum, eachDocument(ctx, d.opts.Store, schedules, func(doc store.Document) {
		sum = sum.Add(store.Usage{Jobs: 1, Bytes: int64(len(doc.Value))})
	})
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

// NamespaceUsage returns what a namespace uses of what its quota bounds, by counts that registrations and changes of
// settings share.
func (d *Dispatcher) NamespaceUsage(ctx context.Context, namespace string) (job.NamespaceUsage, error) {
	jobs, err := d.quotas.usageOfJobs(namespace).latest(ctx)
	if err != nil {
		return job.NamespaceUsage{}, err
	}
	settings, err := d.quotas.usageOfSettings(namespace).latest(ctx)
	return job.NamespaceUsage{
		Pending: jobs.Jobs, Bytes: jobs.Bytes, KeptBytes: jobs.KeptBytes,
		Settings: settings.Jobs, SettingsBytes: settings.Bytes,
	}, err
}
