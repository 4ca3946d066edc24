package multistore

import (
	"context"
	"slices"
	"time"

	"github.com/ringback/ringback/dispatcher"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/livetail"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/sign"
	"github.com/ringback/ringback/store"
)

// The methods of a Dispatcher, each for the Dispatcher of its namespace.

// Register registers jobs, each on the store of its namespace.
func (s *Service) Register(ctx context.Context, jobs []job.New) []store.RoutedResult {
	var results []store.RoutedResult
	for len(results) < len(jobs) {
		part := jobs[len(results):]
		n := 1
		for n < len(part) && part[n].Namespace == part[0].Namespace {
			n++
		}
		var registered []store.RoutedResult
		if d, err := s.of(ctx, part[0].Namespace); err == nil {
			registered = d.Register(ctx, part[:n])
		} else {
			registered = slices.Repeat([]store.RoutedResult{{Err: err}}, n)
		}
		if n == len(jobs) { // the usual case: all are of one namespace
			return registered
		}
		results = append(results, registered...)
	}
	return results
}

// Get reads a job.
func (s *Service) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	return with(ctx, s, ref.Namespace, func(d *dispatcher.Dispatcher) (job.Job, error) { return d.Get(ctx, ref) })
}

// WaitForEnd waits for the end of a job.
func (s *Service) WaitForEnd(ctx context.Context, last job.Job, limit time.Duration) (job.Job, error) {
	return with(ctx, s, last.Namespace,
		func(d *dispatcher.Dispatcher) (job.Job, error) { return d.WaitForEnd(ctx, last, limit) })
}

// Explain explains a job.
func (s *Service) Explain(ctx context.Context, j *job.Job) *job.Explanation {
	d, err := s.of(ctx, j.Namespace)
	if err != nil {
		return nil
	}
	return d.Explain(ctx, j)
}

// List lists jobs.
func (s *Service) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	return with(ctx, s, filter.Namespace,
		func(d *dispatcher.Dispatcher) (store.Page, error) { return d.List(ctx, filter) })
}

// Listen listens to the attempts and changes of the filter's namespace.
func (s *Service) Listen(ctx context.Context, filter livetail.Filter) (*livetail.Listener, error) {
	return with(ctx, s, filter.Namespace,
		func(d *dispatcher.Dispatcher) (*livetail.Listener, error) { return d.Listen(ctx, filter) })
}

// Lease leases jobs of a pulled topic.
func (s *Service) Lease(ctx context.Context, request store.LeaseRequest) ([]store.LeasedJob, error) {
	return with(ctx, s, request.Namespace,
		func(d *dispatcher.Dispatcher) ([]store.LeasedJob, error) { return d.Lease(ctx, request) })
}

// SettleLeases ends or extends leases, and leases jobs as next asks.
func (s *Service) SettleLeases(
	ctx context.Context, namespace string, reports []store.LeaseReport, next *store.LeaseRequest,
) ([]error, []store.LeasedJob, error) {
	d, err := s.of(ctx, namespace)
	if err != nil {
		return nil, nil, err
	}
	return d.SettleLeases(ctx, namespace, reports, next)
}

// ReleaseLeases makes leased jobs due again that their client has not received.
func (s *Service) ReleaseLeases(ctx context.Context, namespace string, leased []store.LeasedJob) {
	if d, err := s.of(ctx, namespace); err == nil { // else their leases expire
		d.ReleaseLeases(ctx, namespace, leased)
	}
}

// Edit changes a job.
func (s *Service) Edit(ctx context.Context, ref job.Ref, edit job.Edit) (job.Job, error) {
	return with(ctx, s, ref.Namespace,
		func(d *dispatcher.Dispatcher) (job.Job, error) { return d.Edit(ctx, ref, edit) })
}

// RunNow makes a scheduled job due now.
func (s *Service) RunNow(ctx context.Context, ref job.Ref, version int64, actor string) (job.Job, error) {
	return with(ctx, s, ref.Namespace, func(d *dispatcher.Dispatcher) (job.Job, error) {
		return d.RunNow(ctx, ref, version, actor)
	})
}

// Revive revives a job.
func (s *Service) Revive(ctx context.Context, revival store.Revival) (job.Job, error) {
	return with(ctx, s, revival.Ref.Namespace,
		func(d *dispatcher.Dispatcher) (job.Job, error) { return d.Revive(ctx, revival) })
}

// Cancel cancels a job.
func (s *Service) Cancel(ctx context.Context, ref job.Ref, cancellation store.Cancellation) (job.Job, error) {
	return with(ctx, s, ref.Namespace,
		func(d *dispatcher.Dispatcher) (job.Job, error) { return d.Cancel(ctx, ref, cancellation) })
}

// Topic reads a topic's policy.
func (s *Service) Topic(ctx context.Context, namespace, name string) (store.Topic, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.Topic, error) { return d.Topic(ctx, namespace, name) })
}

// ChangeTopic changes a topic's policy.
func (s *Service) ChangeTopic(
	ctx context.Context, namespace, name string, ifRevision int64, change func(*policy.Topic) error,
) (store.Topic, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.Topic, error) {
		return d.ChangeTopic(ctx, namespace, name, ifRevision, change)
	})
}

// ReplaceTopic replaces a topic's policy.
func (s *Service) ReplaceTopic(
	ctx context.Context, namespace, name string, ifRevision int64, change func(*policy.Topic) error,
) (store.Topic, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.Topic, error) {
		return d.ReplaceTopic(ctx, namespace, name, ifRevision, change)
	})
}

// Topics lists topics.
func (s *Service) Topics(ctx context.Context, namespace, after string, limit int) ([]store.Topic, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) ([]store.Topic, error) {
		return d.Topics(ctx, namespace, after, limit)
	})
}

// DeleteTopic removes a topic.
func (s *Service) DeleteTopic(ctx context.Context, deletion store.TopicDeletion) (store.TopicDeleted, error) {
	return with(ctx, s, deletion.Namespace, func(d *dispatcher.Dispatcher) (store.TopicDeleted, error) {
		return d.DeleteTopic(ctx, deletion)
	})
}

// Effective completes a policy. The retention of ended jobs depends on the store; without it the main store's applies.
func (s *Service) Effective(ctx context.Context, namespace string, p policy.Topic) policy.Topic {
	d, err := s.of(ctx, namespace)
	if err != nil {
		d = s.main()
	}
	return d.Effective(ctx, namespace, p)
}

// Lane reads a lane's settings.
func (s *Service) Lane(ctx context.Context, q job.Queue) (store.Lane, error) {
	return with(ctx, s, q.Namespace, func(d *dispatcher.Dispatcher) (store.Lane, error) { return d.Lane(ctx, q) })
}

// ListLanes lists lanes with settings.
func (s *Service) ListLanes(ctx context.Context, namespace, topic, after string, limit int) ([]store.Lane, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) ([]store.Lane, error) {
		return d.ListLanes(ctx, namespace, topic, after, limit)
	})
}

// ChangeLane changes a lane's settings.
func (s *Service) ChangeLane(
	ctx context.Context, q job.Queue, ifRevision int64, change func(*policy.Lane) error,
) (store.Lane, error) {
	return with(ctx, s, q.Namespace, func(d *dispatcher.Dispatcher) (store.Lane, error) {
		return d.ChangeLane(ctx, q, ifRevision, change)
	})
}

// ReplaceLane replaces a lane's settings.
func (s *Service) ReplaceLane(
	ctx context.Context, q job.Queue, ifRevision int64, change func(*policy.Lane) error,
) (store.Lane, error) {
	return with(ctx, s, q.Namespace, func(d *dispatcher.Dispatcher) (store.Lane, error) {
		return d.ReplaceLane(ctx, q, ifRevision, change)
	})
}

// AddSecret adds a secret.
func (s *Service) AddSecret(
	ctx context.Context, owner job.Queue, secret sign.Secret, ifRevision int64,
) (policy.Secret, error) {
	return with(ctx, s, owner.Namespace, func(d *dispatcher.Dispatcher) (policy.Secret, error) {
		return d.AddSecret(ctx, owner, secret, ifRevision)
	})
}

// Secrets lists secrets.
func (s *Service) Secrets(ctx context.Context, owner job.Queue) ([]policy.Secret, error) {
	return with(ctx, s, owner.Namespace,
		func(d *dispatcher.Dispatcher) ([]policy.Secret, error) { return d.Secrets(ctx, owner) })
}

// RemoveSecret removes a secret.
func (s *Service) RemoveSecret(ctx context.Context, owner job.Queue, id string, ifRevision int64) error {
	d, err := s.of(ctx, owner.Namespace)
	if err != nil {
		return err
	}
	return d.RemoveSecret(ctx, owner, id, ifRevision)
}

// PublicKeys lists public keys.
func (s *Service) PublicKeys(ctx context.Context, owner job.Queue) ([]store.PublicKey, error) {
	return with(ctx, s, owner.Namespace,
		func(d *dispatcher.Dispatcher) ([]store.PublicKey, error) { return d.PublicKeys(ctx, owner) })
}

// Groups counts jobs by some of their fields.
func (s *Service) Groups(ctx context.Context, filter store.Filter, by store.GroupBy) (store.Groups, error) {
	return with(ctx, s, filter.Namespace,
		func(d *dispatcher.Dispatcher) (store.Groups, error) { return d.Groups(ctx, filter, by) })
}

// GroupIDs counts jobs that ids name.
func (s *Service) GroupIDs(
	ctx context.Context, namespace string, ids []string, states []job.State, by store.GroupBy,
) (store.Groups, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.Groups, error) {
		return d.GroupIDs(ctx, namespace, ids, states, by)
	})
}

// PutSchedule creates or replaces a schedule.
func (s *Service) PutSchedule(
	ctx context.Context, namespace, name string, ifRevision int64, change func(*store.Schedule) error,
) (store.Schedule, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.Schedule, error) {
		return d.PutSchedule(ctx, namespace, name, ifRevision, change)
	})
}

// ChangeSchedule changes a schedule.
func (s *Service) ChangeSchedule(
	ctx context.Context, namespace, name string, ifRevision int64, change func(*store.Schedule) error,
) (store.Schedule, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.Schedule, error) {
		return d.ChangeSchedule(ctx, namespace, name, ifRevision, change)
	})
}

// Schedule reads a schedule.
func (s *Service) Schedule(ctx context.Context, namespace, name string) (store.Schedule, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.Schedule, error) { return d.Schedule(ctx, namespace, name) })
}

// ListSchedules lists schedules.
func (s *Service) ListSchedules(ctx context.Context, namespace, after string, limit int) ([]store.Schedule, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) ([]store.Schedule, error) {
		return d.ListSchedules(ctx, namespace, after, limit)
	})
}

// DeleteSchedule removes a schedule.
func (s *Service) DeleteSchedule(
	ctx context.Context, namespace, name string, ifRevision int64, check func(*store.Schedule) error,
) error {
	_, err := with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (struct{}, error) {
		return struct{}{}, d.DeleteSchedule(ctx, namespace, name, ifRevision, check)
	})
	return err
}

// RunSchedule registers a job of a schedule.
func (s *Service) RunSchedule(
	ctx context.Context, namespace, name, actor string, check func(*store.Schedule) error,
) (store.RoutedResult, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) (store.RoutedResult, error) {
		return d.RunSchedule(ctx, namespace, name, actor, check)
	})
}

// StartWork starts bulk work.
func (s *Service) StartWork(ctx context.Context, namespace string, order store.WorkOrder) (store.Work, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.Work, error) { return d.StartWork(ctx, namespace, order) })
}

// Work reads bulk work.
func (s *Service) Work(ctx context.Context, namespace, id string) (store.Work, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.Work, error) { return d.Work(ctx, namespace, id) })
}

// StopWork ends bulk work.
func (s *Service) StopWork(ctx context.Context, namespace, id, actor string) (store.Work, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.Work, error) { return d.StopWork(ctx, namespace, id, actor) })
}

// ListWork lists bulk work.
func (s *Service) ListWork(
	ctx context.Context, filter store.Filter, shown func(*store.Work) bool,
) ([]store.Work, store.Page, error) {
	d, err := s.of(ctx, filter.Namespace)
	if err != nil {
		return nil, store.Page{}, err
	}
	return d.ListWork(ctx, filter, shown)
}

// TopicStats counts the jobs of topics.
func (s *Service) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	return with(ctx, s, filter.Namespace,
		func(d *dispatcher.Dispatcher) ([]store.TopicStats, error) { return d.TopicStats(ctx, filter) })
}

// Totals counts the jobs of a namespace.
func (s *Service) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	return with(ctx, s, namespace,
		func(d *dispatcher.Dispatcher) (store.TopicStats, error) { return d.Totals(ctx, namespace) })
}

// LaneStats counts the jobs of lanes.
func (s *Service) LaneStats(ctx context.Context, namespace, topic, after string, limit int) ([]store.LaneStats, error) {
	return with(ctx, s, namespace, func(d *dispatcher.Dispatcher) ([]store.LaneStats, error) {
		return d.LaneStats(ctx, namespace, topic, after, limit)
	})
}

// HeldLanes finds lanes that hold jobs back.
func (s *Service) HeldLanes(ctx context.Context, filter store.HeldFilter) (store.HeldLanes, error) {
	return with(ctx, s, filter.Namespace,
		func(d *dispatcher.Dispatcher) (store.HeldLanes, error) { return d.HeldLanes(ctx, filter) })
}

// LaneCounts counts the jobs of a lane.
func (s *Service) LaneCounts(ctx context.Context, q job.Queue) (store.LaneStats, error) {
	return with(ctx, s, q.Namespace,
		func(d *dispatcher.Dispatcher) (store.LaneStats, error) { return d.LaneCounts(ctx, q) })
}

// DeleteNamespace removes a namespace. It overrides that of the Registry, which does not look at the namespace's store.
func (s *Service) DeleteNamespace(ctx context.Context, deletion store.NamespaceDeletion) (store.TopicDeleted, error) {
	d, err := s.of(ctx, deletion.Name)
	if err != nil {
		return store.TopicDeleted{}, err
	}
	return d.DeleteNamespace(ctx, deletion)
}
