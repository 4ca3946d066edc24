package dispatcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/ringback/ringback/dispatcher/secrets"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// Lane returns a lane's settings; revision 0: none.
func (d *Dispatcher) Lane(ctx context.Context, q job.Queue) (store.Lane, error) {
	return d.sealer.VisibleLane(d.storedLane(ctx, q))
}

// storedLane is Lane with headers as they are stored.
func (d *Dispatcher) storedLane(ctx context.Context, q job.Queue) (store.Lane, error) {
	lanes, err := d.store.GetLanes(ctx, []job.Queue{q})
	if err != nil {
		return store.Lane{}, err
	}
	return lanes[0], nil
}

// ListLanes returns the lanes of a topic that have settings, in order of name, after a name. With the type of an event
// it returns those that subscribe to it.
func (d *Dispatcher) ListLanes(
	ctx context.Context, namespace, topic, eventType, after string, limit int,
) ([]store.Lane, error) {
	if eventType == "" {
		return d.sealer.VisibleLanes(d.store.ListLanes(ctx, namespace, topic, after, limit))
	}
	names, err := d.events.Subscriptions.Find(ctx, namespace, topic,
		func(s *policy.Subscription) bool { return s.MatchesType(eventType) })
	if err != nil {
		return nil, err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name <= after })
	queues := make([]job.Queue, min(limit, len(names)))
	for i := range queues {
		queues[i] = job.Queue{Namespace: namespace, Topic: topic, Lane: names[i]}
	}
	return d.sealer.VisibleLanes(d.store.GetLanes(ctx, queues))
}

// ChangeLane applies change to a lane's settings. Errors as for ChangeTopic.
func (d *Dispatcher) ChangeLane(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
) (store.Lane, error) {
	return d.changeLane(ctx, q, opts, change, false)
}

// ReplaceLane is ChangeLane for a change that sets or removes all settings. It also replaces settings that are not
// readable.
func (d *Dispatcher) ReplaceLane(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error,
) (store.Lane, error) {
	return d.changeLane(ctx, q, opts, change, true)
}

func (d *Dispatcher) changeLane(
	ctx context.Context, q job.Queue, opts store.ChangeOptions, change func(*policy.Lane) error, replace bool,
) (store.Lane, error) {
	return d.sealer.VisibleLane(retryOnConflict(ctx, func() (store.Lane, error) {
		lane, err := d.storedLane(ctx, q)
		if err == nil {
			err = store.CheckCondition(opts.IfRevision, lane.Revision)
		}
		if err == nil && lane.Unreadable && !replace {
			err = fmt.Errorf("change lane %s: %w", q.Lane, store.ErrUnreadable)
		}
		if err != nil {
			return store.Lane{}, err
		}
		before := lane.Settings
		err = change(&lane.Settings)
		dry := errors.Is(err, store.ErrDryRun)
		switch {
		case errors.Is(err, errNoChange):
			return lane, nil
		case err != nil && !dry:
			return store.Lane{}, err
		}
		if lane.Settings.URL != "" && lane.Settings.URL != before.URL {
			if err := d.checkURL("/url", lane.Settings.URL); err != nil {
				return store.Lane{}, err
			}
		}
		if d.sealer.NeedsSeal(lane.Settings.Headers) {
			if d.sealer.CannotSealHeaders(before.Headers) {
				return store.Lane{}, secrets.ErrCannotSeal
			}
			target, err := d.laneTarget(ctx, q, lane.Settings.URL)
			if err != nil {
				return store.Lane{}, err
			}
			lane.Settings.Headers = d.sealer.SealHeaders(lane.Settings.Headers, job.Origin(target))
		}
		size := usageOfLane(lane.Settings).Sub(usageOfLane(before))
		release, err := d.quotas.ReserveSettings(ctx, q.Namespace, size)
		if err != nil || dry {
			release(store.ErrDryRun)
			return lane, err
		}
		if lane.Revision == 0 {
			if lane.Settings.IsZero() {
				return lane, nil
			}
			if err := d.declare(ctx, q, opts.Updated); err != nil {
				release(err)
				return store.Lane{}, err
			}
			lane.Revision = store.MustNotExist
		}
		lane.Updated = cmp.Or(opts.Updated, lane.Updated)
		put, err := d.store.PutLane(ctx, lane)
		release(err)
		if err != nil {
			return store.Lane{}, fmt.Errorf("put lane %s: %w", q.Lane, err)
		}
		if !reflect.DeepEqual(before.Subscription, lane.Settings.Subscription) {
			d.events.Subscriptions.Reload(ctx, d.store.ShardOf(q))
		}
		d.publishPause(q, before.Paused, lane.Settings.Paused, opts.Updated.By)
		return put, nil
	}))
}

// declare stores a lane's topic unless it is stored, so that iterations over topics find the lane.
func (d *Dispatcher) declare(ctx context.Context, q job.Queue, updated policy.Update) error {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return err
	}
	if set.Get(q.Namespace, q.Topic) != nil {
		return nil
	}
	_, err = d.ChangeTopic(ctx, q.Namespace, q.Topic, store.ChangeOptions{Updated: updated},
		func(*policy.Topic) error { return nil })
	return err
}

// target returns a job's effective URL: its own, else its lane's, else its topic's.
func (d *Dispatcher) target(ctx context.Context, q job.Queue, own string) (string, error) {
	if own != "" {
		return own, nil
	}
	lane, err := d.storedLane(ctx, q)
	if err != nil {
		return "", err
	}
	return d.laneTarget(ctx, q, lane.Settings.URL)
}

// laneTarget returns the URL for jobs of a lane without one: the lane's, else its topic's.
func (d *Dispatcher) laneTarget(ctx context.Context, q job.Queue, own string) (string, error) {
	if own != "" {
		return own, nil
	}
	topic, _, err := d.newLookup().Find(ctx, q.Namespace, q.Topic)
	if err != nil {
		return "", fmt.Errorf("look up topic %s: %w", q.Topic, err)
	}
	return topic.Policy.URL, nil
}
