package dispatcher

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
)

const (
	// usageMaxAge is the age from which the unfinished jobs of a namespace are counted again. In between, a process adds its
	// own registrations, so a namespace exceeds its quota by at most what other processes register in this time.
	usageMaxAge = time.Second
	// pendingRetryAfter is when to retry a registration that exceeds the quota of unfinished jobs.
	pendingRetryAfter = 5 * time.Second
	// quotaTopic is the reserved name under which the store counts the registrations of a namespace with a rate.
	quotaTopic = "_quota"
)

// usages are the usages of namespaces with a quota of unfinished jobs.
type usages struct {
	mu sync.Mutex
	of map[string]*usage
}

// A usage is how many unfinished jobs a namespace has.
type usage struct {
	mu        sync.Mutex
	countedAt time.Time
	unfinished,
	added int64 // registrations of this process since then
}

// overQuota returns an error for each job that exceeds the quota of its namespace, by index; nil: there is none.
func (d *Dispatcher) overQuota(ctx context.Context, jobs []job.New) map[int]error {
	var errs map[int]error
	for first := 0; first < len(jobs); {
		namespace := cmp.Or(jobs[first].Namespace, job.DefaultNamespace)
		n := 1
		for first+n < len(jobs) && cmp.Or(jobs[first+n].Namespace, job.DefaultNamespace) == namespace {
			n++
		}
		admitted, err := d.admitted(ctx, namespace, n)
		for i := first + admitted; i < first+n; i++ {
			if errs == nil {
				errs = make(map[int]error)
			}
			errs[i] = err
		}
		first += n
	}
	return errs
}

// admitted returns how many of n jobs the quota of their namespace admits, and the error of the others.
func (d *Dispatcher) admitted(ctx context.Context, namespace string, n int) (int, error) {
	quota, err := d.QuotaOf(ctx, namespace)
	if err != nil || quota == (job.Quota{}) {
		if err != nil {
			n = 0
		}
		return n, err
	}
	var over error
	if quota.Pending > 0 {
		room, err := d.room(ctx, namespace, quota.Pending)
		if err != nil {
			return 0, err
		}
		if room < int64(n) {
			n = int(room)
			over = &job.QuotaError{Quota: "pending", Limit: strconv.FormatInt(quota.Pending, 10), RetryAfter: pendingRetryAfter}
		}
	}
	if quota.Rate.Limited() && n > 0 {
		shard := d.store.Shards()[d.store.ShardOfTopic(namespace, quotaTopic)]
		granted, err := shard.Permit(ctx, store.NewToken(), []store.PermitRequest{
			{Namespace: namespace, Topic: quotaTopic, Rate: quota.Rate, Starts: n},
		})
		if err != nil {
			return 0, fmt.Errorf("count registrations: %w", err)
		}
		if granted[0].Starts < n {
			n = granted[0].Starts
			over = &job.QuotaError{Quota: "rate", Limit: units.FormatRate(quota.Rate), RetryAfter: granted[0].Next}
		}
	}
	if quota.Pending > 0 {
		d.usages.add(namespace, int64(n))
	}
	return n, over
}

// room returns how many more unfinished jobs a namespace may have.
func (d *Dispatcher) room(ctx context.Context, namespace string, most int64) (int64, error) {
	u := d.usages.get(namespace)
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.countedAt.IsZero() || time.Since(u.countedAt) > usageMaxAge {
		now := time.Now()
		t, err := d.store.Totals(ctx, namespace)
		if err != nil {
			return 0, fmt.Errorf("count unfinished jobs: %w", err)
		}
		u.countedAt, u.unfinished, u.added = now, t.Scheduled+t.Ready+t.Running, 0
	}
	return max(most-u.unfinished-u.added, 0), nil
}

// get returns the usage of a namespace.
func (s *usages) get(namespace string) *usage {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[string]*usage)
	}
	u := s.of[namespace]
	if u == nil {
		u = new(usage)
		s.of[namespace] = u
	}
	return u
}

// add counts registrations.
func (s *usages) add(namespace string, n int64) {
	u := s.get(namespace)
	u.mu.Lock()
	defer u.mu.Unlock()
	u.added += n
}
