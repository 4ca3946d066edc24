// This part of the package refuses what exceeds a quota of its namespace: registrations for its unfinished jobs, their
// bytes, the bytes of the ended jobs that it keeps, or its rate, and settings for their number or bytes.
//
// A process counts what a namespace uses about once a second while it registers, and adds its own registrations in
// between. The same goes for settings.

package dispatcher

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/units"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/router"
)

const (
	// quotaRetryAfter is when to retry a registration that exceeds a quota of unfinished jobs.
	quotaRetryAfter = 5 * time.Second
	// quotaTopic is the reserved name under which the store counts the registrations of a namespace with a rate.
	quotaTopic = "_quota"
)

// namespaceQuotas admit registrations under the quotas of their namespaces. They are safe for concurrent use.
type namespaceQuotas struct {
	store *router.Router
	of    func(ctx context.Context, namespace string) (job.Quota, error)

	countSettings func(ctx context.Context, namespace string) (store.Usage, error)

	mu       sync.Mutex
	usages   map[string]*usage // of namespaces by jobs
	settings map[string]*usage // of namespaces by settings, which count as jobs
}

// newQuotas returns Quotas of the namespaces of a store. of returns that of a namespace, from a cache. countSettings
// counts its settings.
func newQuotas(
	s *router.Router, of func(ctx context.Context, namespace string) (job.Quota, error),
	countSettings func(ctx context.Context, namespace string) (store.Usage, error),
) *namespaceQuotas {
	return &namespaceQuotas{
		store: s, of: of, countSettings: countSettings,
		usages: make(map[string]*usage), settings: make(map[string]*usage),
	}
}

// usageOfJobs returns the usage of a namespace by jobs.
func (q *namespaceQuotas) usageOfJobs(namespace string) *usage {
	return q.usageOf(q.usages, namespace, q.store.Usage)
}

// usageOfSettings returns the usage of a namespace by settings.
func (q *namespaceQuotas) usageOfSettings(namespace string) *usage {
	return q.usageOf(q.settings, namespace, q.countSettings)
}

// usageOf returns the usage of a namespace among usages, which count counts.
func (q *namespaceQuotas) usageOf(
	usages map[string]*usage, namespace string, count func(ctx context.Context, namespace string) (store.Usage, error),
) *usage {
	q.mu.Lock()
	defer q.mu.Unlock()
	u := usages[namespace]
	if u == nil {
		u = &usage{count: func(ctx context.Context) (store.Usage, error) { return count(ctx, namespace) }}
		usages[namespace] = u
	}
	return u
}

// A reservation is the room in a namespace's quota of unfinished jobs that the registrations of one request hold while
// they are in flight.
type reservation struct {
	namespace string
	usage     *usage
	reserved  store.Usage
	bytes     bool // are reserved, too
}

// Release ends a reservation with the results of the insertions that it was for.
func (r *reservation) Release(jobs []store.NewJob, results []store.RoutedResult) {
	var registered, unknown store.Usage
	for i := range jobs {
		switch {
		case jobs[i].Namespace != r.namespace:
		case results[i].Err != nil:
			unknown = unknown.Add(sizeOf(&jobs[i], r.bytes))
		case results[i].Outcome == store.Created:
			registered = registered.Add(sizeOf(&jobs[i], r.bytes))
		}
	}
	r.usage.release(r.reserved, registered, unknown)
}

// sizeOf returns what a job uses at most, with its bytes or without.
func sizeOf(n *store.NewJob, bytes bool) store.Usage {
	size := store.Usage{Jobs: 1}
	if bytes {
		size.Bytes = store.JobBytes(&n.Spec)
	}
	return size
}

// Reserve reserves room for jobs in the quotas of their namespaces. It returns the reservations, to be released after
// the jobs were inserted, and an error by index for each job that must not be inserted. Jobs with a known id are never
// refused: the store answers them as repeats.
func (q *namespaceQuotas) Reserve(
	ctx context.Context, jobs []store.NewJob,
) (reservations []*reservation, over map[int]error) {
	var first, n int
	for ; first < len(jobs); first += n {
		for n = 1; first+n < len(jobs) && jobs[first+n].Namespace == jobs[first].Namespace; {
			n++
		}
		quota, err := q.of(ctx, jobs[first].Namespace)
		if err == nil && quota == (job.Quota{}) {
			continue
		}
		a := admission{q: q, quota: quota, jobs: jobs[first : first+n], refuse: func(i int, err error) {
			if over == nil {
				over = make(map[int]error)
			}
			over[first+i] = err
		}}
		if err == nil {
			err = a.run(ctx)
		}
		if a.held.usage != nil {
			reservations = addReservation(reservations, &a.held)
		}
		if err != nil {
			for i := range a.jobs {
				a.refuse(i, err)
			}
		}
	}
	return reservations, over
}

// addReservation adds a reservation to those of other namespaces.
func addReservation(all []*reservation, r *reservation) []*reservation {
	for _, other := range all {
		if other.usage == r.usage {
			other.reserved = other.reserved.Add(r.reserved)
			return all
		}
	}
	return append(all, r)
}

// An admission admits jobs of one namespace under its quota.
type admission struct {
	q      *namespaceQuotas
	quota  job.Quota
	jobs   []store.NewJob
	refuse func(i int, err error)

	held   reservation
	wanted []int // the jobs to admit, by index, once known ids are left out
	looked bool  // wanted is set
}

// run refuses the jobs that exceed the quota. After an error none of the jobs may be inserted.
func (a *admission) run(ctx context.Context) error {
	if a.quota.Pending > 0 || a.quota.Bytes > 0 || a.quota.KeptBytes > 0 {
		if err := a.reserve(ctx); err != nil {
			return err
		}
	}
	if a.quota.Rate.Limited() {
		return a.askRate(ctx)
	}
	return nil
}

// reserve reserves room for all jobs, or else for those with unknown ids, as many as there is room for.
func (a *admission) reserve(ctx context.Context) error {
	u := a.q.usageOfJobs(a.jobs[0].Namespace)
	limits := store.Usage{Jobs: a.quota.Pending, Bytes: a.quota.Bytes, KeptBytes: a.quota.KeptBytes}
	bytes := a.quota.Bytes > 0
	sizes := make([]store.Usage, len(a.jobs))
	for i := range a.jobs {
		sizes[i] = sizeOf(&a.jobs[i], bytes)
	}
	room, err := u.reserve(ctx, limits, sizes, true, time.Time{})
	if err != nil {
		return err
	}
	if room.jobs < len(a.jobs) {
		if err := a.leaveOutKnown(ctx); err != nil {
			return err
		}
		for k, i := range a.wanted {
			sizes[k] = sizes[i]
		}
		if room, err = u.reserve(ctx, limits, sizes[:len(a.wanted)], false, time.Time{}); err != nil {
			return err
		}
		for _, i := range a.wanted[room.jobs:] {
			a.refuse(i, a.over(room))
		}
		a.wanted = a.wanted[:room.jobs]
	}
	a.held = reservation{namespace: a.jobs[0].Namespace, usage: u, reserved: room.size, bytes: bytes}
	return nil
}

// over returns the error of a job for which there is no room.
func (a *admission) over(r room) error {
	e := &job.QuotaError{Quota: r.short, RetryAfter: quotaRetryAfter}
	switch r.short {
	case quotaPending:
		e.Limit = strconv.FormatInt(a.quota.Pending, 10)
	case quotaBytes:
		e.Limit = units.FormatSize(a.quota.Bytes)
	default:
		e.Limit, e.Used = units.FormatSize(a.quota.KeptBytes), units.FormatSize(r.used.KeptBytes)
		e.Remedy = "purge ended jobs, or lower keep_delivered and keep_dead of the topics that keep most"
	}
	return e
}

// askRate counts the jobs as registrations. Of those beyond the rate it refuses those with unknown ids. The room that
// they have reserved is given back with the rest.
func (a *admission) askRate(ctx context.Context) error {
	wanted := len(a.jobs)
	if a.looked {
		wanted = len(a.wanted)
	}
	if wanted == 0 {
		return nil
	}
	namespace := a.jobs[0].Namespace
	shard := a.q.store.Shards()[a.q.store.ShardOfTopic(namespace, quotaTopic)]
	granted, err := shard.Permit(ctx, store.NewToken(), []store.PermitRequest{
		{Namespace: namespace, Topic: quotaTopic, Rate: a.quota.Rate, Starts: wanted},
	})
	if err != nil {
		return fmt.Errorf("count registrations: %w", err)
	}
	if granted[0].Starts >= wanted {
		return nil
	}
	if err := a.leaveOutKnown(ctx); err != nil {
		return err
	}
	over := &job.QuotaError{Quota: "rate", Limit: units.FormatRate(a.quota.Rate), RetryAfter: granted[0].Next}
	for _, i := range a.wanted[min(granted[0].Starts, len(a.wanted)):] {
		a.refuse(i, over)
	}
	return nil
}

// leaveOutKnown sets wanted to the jobs whose ids are not known.
func (a *admission) leaveOutKnown(ctx context.Context) error {
	if a.looked {
		return nil
	}
	var refs []job.Ref
	for i := range a.jobs {
		if a.jobs[i].Fingerprint != nil { // else the server has generated the id
			refs = append(refs, a.jobs[i].Ref())
		}
	}
	known, err := a.q.store.KnownOnAny(ctx, refs)
	if err != nil {
		return err
	}
	a.looked, a.wanted = true, make([]int, 0, len(a.jobs))
	for i := range a.jobs {
		if a.jobs[i].Fingerprint != nil {
			isKnown := known[0]
			if known = known[1:]; isKnown {
				continue
			}
		}
		a.wanted = append(a.wanted, i)
	}
	return nil
}
