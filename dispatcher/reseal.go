package dispatcher

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/dispatcher/documents"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// resealAll reseals all secrets once after the start. If the store becomes unavailable, the rest is resealed at the
// next start.
func (d *Dispatcher) resealAll(ctx context.Context) {
	if !d.opts.Seal.Encrypts() {
		return
	}
	began := time.Now()
	count, err := d.reseal(ctx)
	switch {
	case err != nil && ctx.Err() == nil:
		d.log.Warn("resealing secrets under the current key failed; the next start "+
			"retries", "sealed", count, "err", err)
	case err == nil:
		d.log.Info("resealed secrets under the current key", "sealed", count, "took", time.Since(began))
	}
}

// reseal seals the secrets of all topics, lanes and schedules under the current key, so that older keys can be removed.
// Secrets that cannot be opened are kept and reported in the error.
// count is the number of topics, lanes and schedules written.
func (d *Dispatcher) reseal(ctx context.Context) (count int, err error) {
	set, err := d.policies.Reload(ctx)
	if err != nil {
		return 0, err
	}
	var failed error
	for name, t := range set.Values {
		for _, walk := range []func() (int, error){
			func() (int, error) { return d.resealTopic(ctx, name, t.Stored.Policy) },
			func() (int, error) { return d.resealLanes(ctx, name) },
		} {
			n, err := walk()
			if count += n; err == nil {
				continue
			}
			if failed = err; errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
				return count, failed
			}
		}
	}
	n, err := d.resealSchedules(ctx)
	if err != nil {
		failed = err
	}
	count += n
	return count, failed // one of the errors: an error of one topic does not stop the others
}

func (d *Dispatcher) resealTopic(ctx context.Context, name documents.Name, p policy.Topic) (count int, err error) {
	owner := job.Queue{Namespace: name.Namespace, Topic: name.Name}
	if !d.sealer.IsTopicStale(p) {
		return 0, nil
	}
	_, err = d.ChangeTopic(ctx, name.Namespace, name.Name, store.ChangeOptions{}, func(p *policy.Topic) error {
		if count = 0; !d.sealer.ResealTopic(owner, p) {
			return errNoChange
		}
		count = 1
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("reseal the secrets of %s/%s: %w", name.Namespace, name.Name, err)
	}
	return count, nil
}

// resealLanes reseals a topic's lanes page by page. An error of one does not stop the others while the store is
// available.
func (d *Dispatcher) resealLanes(ctx context.Context, name documents.Name) (count int, failed error) {
	for after := ""; ; {
		lanes, err := d.store.ListLanes(ctx, name.Namespace, name.Name, after, store.MaxBatch)
		if err != nil {
			return count, err
		}
		for _, l := range lanes {
			after = l.Queue.Lane
			if !d.sealer.IsLaneStale(l.Settings) {
				continue
			}
			wrote := 0
			if _, err := d.ChangeLane(ctx, l.Queue, store.ChangeOptions{}, func(s *policy.Lane) error {
				if wrote = 0; !d.sealer.ResealLane(l.Queue, s) {
					return errNoChange
				}
				wrote = 1
				return nil
			}); err != nil {
				failed = fmt.Errorf("reseal the secrets of %s: %w", l.Queue, err)
				if errors.Is(err, store.ErrUnavailable) || ctx.Err() != nil {
					return count, failed
				}
				continue
			}
			count += wrote
		}
		if len(lanes) < store.MaxBatch {
			return count, failed
		}
	}
}
