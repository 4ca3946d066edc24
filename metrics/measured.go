package metrics

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// measured is a store whose calls are timed, and what passes through it counted. It embeds nothing, so that a method
// that the contract gains cannot be forgotten here.
type measured struct {
	next store.Store
	m    *Metrics
}

// Store measures s. What it gives behaves as s does.
func (m *Metrics) Store(s store.Store) store.Store { return measured{next: s, m: m} }

// timed makes a call and times it.
func timed[T any](ctx context.Context, s measured, what method, call func() (T, error)) (T, error) {
	began := time.Now()
	answer, err := call()
	s.m.called(ctx, what, began, err)
	return answer, err
}

func (s measured) Shards() int { return s.next.Shards() }

func (s measured) Insert(ctx context.Context, shard int, token store.Token, entries []store.NewJob) ([]store.InsertResult, error) {
	results, err := timed(ctx, s, insert, func() ([]store.InsertResult, error) {
		return s.next.Insert(ctx, shard, token, entries)
	})
	s.m.insertedAll(entries, results, err)
	return results, err
}

func (s measured) Lead(ctx context.Context, shard int) (store.Leadership, error) {
	held, err := timed(ctx, s, lead, func() (store.Leadership, error) { return s.next.Lead(ctx, shard) })
	if err != nil {
		return nil, err
	}
	return measuredLead{next: held, m: s.m}, nil
}

func (s measured) Carry(ctx context.Context, shard int, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	carried, err := timed(ctx, s, carry, func() (store.CarryResult, error) { return s.next.Carry(ctx, shard, token, round) })
	if err == nil {
		s.m.series.moved.Add(float64(carried.Moved))
		s.m.series.lapsed.Add(float64(carried.ExpiredLeases))
		s.m.series.outbox.Add(float64(len(carried.Outbox)))
		switch {
		case carried.ClockStep > 0:
			s.m.series.clockAhead.Inc()
		case carried.ClockStep < 0:
			s.m.series.clockBack.Inc()
		}
	}
	return carried, err
}

// Wait is not timed: it waits for something to happen.
func (s measured) Wait(ctx context.Context, shard int, watch store.WaitOptions) (store.Wakeup, error) {
	rung, err := s.next.Wait(ctx, shard, watch)
	if err != nil {
		s.m.bellFailed(ctx, err)
	}
	return rung, err
}

func (s measured) Notify(ctx context.Context, shard int, queues []job.Queue) error {
	began := time.Now()
	err := s.next.Notify(ctx, shard, queues)
	s.m.called(ctx, notify, began, err)
	return err
}

func (s measured) ClaimExpired(ctx context.Context, shard int, token store.Token, request store.ClaimExpiredRequest) ([]store.ClaimedJob, error) {
	return timed(ctx, s, claimExpired, func() ([]store.ClaimedJob, error) { return s.next.ClaimExpired(ctx, shard, token, request) })
}

func (s measured) Claim(ctx context.Context, shard int, token store.Token, request store.ClaimRequest) (store.ClaimResult, error) {
	return timed(ctx, s, claim, func() (store.ClaimResult, error) { return s.next.Claim(ctx, shard, token, request) })
}

func (s measured) Settle(
	ctx context.Context, shard int, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	began := time.Now()
	errs, claimed, err := s.next.Settle(ctx, shard, token, items, next)
	s.m.called(ctx, settle, began, err)
	s.m.settledAll(items, errs)
	return errs, claimed, err
}

func (s measured) Cancel(ctx context.Context, shard int, token store.Token, ref job.Ref) (job.Job, error) {
	return timed(ctx, s, cancel, func() (job.Job, error) { return s.next.Cancel(ctx, shard, token, ref) })
}

func (s measured) Edit(ctx context.Context, shard int, token store.Token, ref job.Ref, change store.Edit) (job.Job, error) {
	return timed(ctx, s, edit, func() (job.Job, error) { return s.next.Edit(ctx, shard, token, ref, change) })
}

func (s measured) Revive(ctx context.Context, shard int, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	return timed(ctx, s, revive, func() ([]store.ReviveResult, error) { return s.next.Revive(ctx, shard, token, items) })
}

func (s measured) Purge(ctx context.Context, shard int, token store.Token, refs []job.Ref) ([]error, error) {
	return timed(ctx, s, purge, func() ([]error, error) { return s.next.Purge(ctx, shard, token, refs) })
}

func (s measured) Get(ctx context.Context, shard int, ref job.Ref) (job.Job, error) {
	return timed(ctx, s, get, func() (job.Job, error) { return s.next.Get(ctx, shard, ref) })
}

func (s measured) Known(ctx context.Context, shard int, refs []job.Ref) ([]bool, error) {
	return timed(ctx, s, known, func() ([]bool, error) { return s.next.Known(ctx, shard, refs) })
}

func (s measured) List(ctx context.Context, shard int, filter store.Filter) (store.Page, error) {
	return timed(ctx, s, list, func() (store.Page, error) { return s.next.List(ctx, shard, filter) })
}

func (s measured) TopicStats(ctx context.Context, shard int, filter store.StatsFilter) ([]store.TopicStats, error) {
	return timed(ctx, s, topicStats, func() ([]store.TopicStats, error) { return s.next.TopicStats(ctx, shard, filter) })
}

func (s measured) Totals(ctx context.Context, shard int, namespace string) (store.TopicStats, error) {
	return timed(ctx, s, totals, func() (store.TopicStats, error) { return s.next.Totals(ctx, shard, namespace) })
}

func (s measured) LaneStats(
	ctx context.Context, shard int, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	return timed(ctx, s, laneStats, func() ([]store.LaneStats, error) {
		return s.next.LaneStats(ctx, shard, namespace, topic, after, limit)
	})
}

func (s measured) Sweep(ctx context.Context, shard int, token store.Token, limit int) (store.SweepResult, error) {
	swept, err := timed(ctx, s, sweep, func() (store.SweepResult, error) { return s.next.Sweep(ctx, shard, token, limit) })
	if err == nil {
		s.m.series.sweptJobs.Add(float64(swept.Jobs))
		s.m.series.sweptIDs.Add(float64(swept.IDs))
	}
	return swept, err
}

func (s measured) Repair(ctx context.Context, shard int) (store.RepairResult, error) {
	result, err := timed(ctx, s, repair, func() (store.RepairResult, error) { return s.next.Repair(ctx, shard) })
	for kind, n := range result.Repairs {
		s.m.repairs.WithLabelValues(string(kind)).Add(float64(n))
	}
	return result, err
}

func (s measured) PutTopic(ctx context.Context, put store.Topic) (store.Topic, error) {
	return timed(ctx, s, putTopic, func() (store.Topic, error) { return s.next.PutTopic(ctx, put) })
}

func (s measured) Topics(ctx context.Context) ([]store.Topic, int64, error) {
	began := time.Now()
	all, revision, err := s.next.Topics(ctx)
	s.m.called(ctx, topicsRead, began, err)
	return all, revision, err
}

func (s measured) PutLane(ctx context.Context, shard int, token store.Token, lane store.Lane) (store.Lane, error) {
	return timed(ctx, s, putLane, func() (store.Lane, error) { return s.next.PutLane(ctx, shard, token, lane) })
}

func (s measured) GetLanes(ctx context.Context, shard int, queues []job.Queue) ([]store.Lane, error) {
	return timed(ctx, s, getLanes, func() ([]store.Lane, error) { return s.next.GetLanes(ctx, shard, queues) })
}

func (s measured) ListLanes(
	ctx context.Context, shard int, namespace, topic, after string, limit int,
) ([]store.Lane, error) {
	return timed(ctx, s, listLanes, func() ([]store.Lane, error) {
		return s.next.ListLanes(ctx, shard, namespace, topic, after, limit)
	})
}

func (s measured) Permit(ctx context.Context, shard int, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	return timed(ctx, s, permit, func() ([]store.Permit, error) { return s.next.Permit(ctx, shard, token, asks) })
}

func (s measured) Alarm(ctx context.Context, shard int, token store.Token, told store.Alarm) (bool, error) {
	return timed(ctx, s, alarm, func() (bool, error) { return s.next.Alarm(ctx, shard, token, told) })
}

func (s measured) Ping(ctx context.Context) error {
	began := time.Now()
	err := s.next.Ping(ctx)
	s.m.called(ctx, ping, began, err)
	return err
}

func (s measured) Close() error { return s.next.Close() }

// measuredLead is a carrier lock whose calls are timed.
type measuredLead struct {
	next store.Leadership
	m    *Metrics
}

func (l measuredLead) Extend(ctx context.Context) error {
	began := time.Now()
	err := l.next.Extend(ctx)
	l.m.called(ctx, extend, began, err)
	return err
}

func (l measuredLead) Release(ctx context.Context) error {
	began := time.Now()
	err := l.next.Release(ctx)
	l.m.called(ctx, release, began, err)
	return err
}
