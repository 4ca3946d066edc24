package metrics

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
)

// timedStore is a store.Store that times and counts calls. It embeds nothing, so that the compiler finds a new method
// of the contract.
type timedStore struct {
	next   store.Store
	shards []store.Shard
	m      *storeMetrics
}

// timedShard is a shard of a timedStore.
type timedShard struct {
	next store.Shard
	m    *storeMetrics
}

// Store returns s with its calls timed and counted under the name of the store.
func (m *Metrics) Store(name string, s store.Store) store.Store {
	if l, ok := s.(logSizer); ok {
		m.gauges.watchLog(name, l)
	}
	named := m.ofStore(name)
	wrapped := timedStore{next: s, m: named}
	for _, shard := range s.Shards() {
		wrapped.shards = append(wrapped.shards, timedShard{next: shard, m: named})
	}
	return wrapped
}

// timed times a call.
func timed[T any](ctx context.Context, m *storeMetrics, method string, call func() (T, error)) (_ T, err error) {
	defer m.observeCall(ctx, method, time.Now(), &err)
	return call()
}

func (s timedStore) Shards() []store.Shard { return s.shards }

func (s timedShard) Insert(
	ctx context.Context, token store.Token, entries []store.NewJob,
) ([]store.InsertResult, error) {
	results, err := timed(ctx, s.m, "insert", func() ([]store.InsertResult, error) {
		return s.next.Insert(ctx, token, entries)
	})
	s.m.countInserts(entries, results, err)
	return results, err
}

func (s timedShard) Lead(ctx context.Context) (store.Leadership, error) {
	leadership, err := timed(ctx, s.m, "lead", func() (store.Leadership, error) { return s.next.Lead(ctx) })
	if err != nil {
		return nil, err
	}
	return timedLead{next: leadership, m: s.m}, nil
}

func (s timedShard) Carry(ctx context.Context, token store.Token, round store.CarryOptions) (store.CarryResult, error) {
	if l, ok := round.Lead.(timedLead); ok {
		round.Lead = l.next
	}
	carried, err := timed(ctx, s.m, "carry",
		func() (store.CarryResult, error) { return s.next.Carry(ctx, token, round) })
	if err == nil {
		s.m.series.moved.Add(float64(carried.Moved))
		s.m.series.leaseExpired.Add(float64(carried.ExpiredLeases))
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

// Wait is not timed: it blocks until a wake-up.
func (s timedShard) Wait(ctx context.Context, watch store.WaitOptions) ([]job.Queue, error) {
	queues, err := s.next.Wait(ctx, watch)
	if err != nil {
		s.m.countWaitFailure(ctx, err)
	}
	return queues, err
}

// WaitAgenda is not timed, either.
func (s timedShard) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	moved, err := s.next.WaitAgenda(ctx, timeout)
	if err != nil {
		s.m.countWaitFailure(ctx, err)
	}
	return moved, err
}

func (s timedShard) Notify(ctx context.Context, queues []job.Queue) (err error) {
	defer s.m.observeCall(ctx, "notify", time.Now(), &err)
	return s.next.Notify(ctx, queues)
}

func (s timedShard) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	return timed(ctx, s.m, "claim_expired",
		func() ([]store.ClaimedJob, error) { return s.next.ClaimExpired(ctx, token, request) })
}

func (s timedShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	return timed(ctx, s.m, "claim", func() (store.ClaimResult, error) { return s.next.Claim(ctx, token, request) })
}

func (s timedShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) (errs []error, claimed store.ClaimResult, err error) {
	defer s.m.observeCall(ctx, "settle", time.Now(), &err)
	errs, claimed, err = s.next.Settle(ctx, token, items, next)
	s.m.countSettlements(items, errs)
	return errs, claimed, err
}

func (s timedShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	return timed(ctx, s.m, "cancel", func() (job.Job, error) { return s.next.Cancel(ctx, token, ref, cancellation) })
}

func (s timedShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	return timed(ctx, s.m, "replace", func() (job.Job, error) { return s.next.Replace(ctx, token, ref, replacement) })
}

func (s timedShard) Revive(
	ctx context.Context, token store.Token, items []store.Revival,
) ([]store.ReviveResult, error) {
	return timed(ctx, s.m, "revive", func() ([]store.ReviveResult, error) { return s.next.Revive(ctx, token, items) })
}

func (s timedShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	return timed(ctx, s.m, "purge", func() ([]error, error) { return s.next.Purge(ctx, token, items) })
}

func (s timedShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	return timed(ctx, s.m, "get_records", func() ([]store.Record, error) { return s.next.GetRecords(ctx, refs) })
}

func (s timedShard) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) ([]store.Outcome, error) {
	return timed(ctx, s.m, "put_records",
		func() ([]store.Outcome, error) { return s.next.PutRecords(ctx, token, records) })
}

func (s timedShard) ScanLanes(ctx context.Context, cursor string) (docs []store.Document, next string, err error) {
	defer s.m.observeCall(ctx, "scan_lanes", time.Now(), &err)
	return s.next.ScanLanes(ctx, cursor)
}

func (s timedShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	return timed(ctx, s.m, "get", func() (job.Job, error) { return s.next.Get(ctx, ref) })
}

func (s timedShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	return timed(ctx, s.m, "known", func() ([]store.IDStatus, error) { return s.next.Known(ctx, refs) })
}

func (s timedShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	return timed(ctx, s.m, "list", func() (store.Page, error) { return s.next.List(ctx, filter) })
}

func (s timedShard) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	return timed(ctx, s.m, "topic_stats", func() ([]store.TopicStats, error) { return s.next.TopicStats(ctx, filter) })
}

func (s timedShard) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	return timed(ctx, s.m, "totals", func() (store.TopicStats, error) { return s.next.Totals(ctx, namespace) })
}

func (s timedShard) Usage(ctx context.Context, namespace string) (store.Usage, error) {
	return timed(ctx, s.m, "usage", func() (store.Usage, error) { return s.next.Usage(ctx, namespace) })
}

func (s timedShard) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	return timed(ctx, s.m, "lane_stats", func() ([]store.LaneStats, error) {
		return s.next.LaneStats(ctx, namespace, topic, after, limit)
	})
}

func (s timedShard) QueueState(ctx context.Context, queue job.Queue) (store.QueueState, error) {
	return timed(ctx, s.m, "queue_state", func() (store.QueueState, error) { return s.next.QueueState(ctx, queue) })
}

func (s timedShard) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (store.TopicState, error) {
	return timed(ctx, s.m, "topic_state", func() (store.TopicState, error) {
		return s.next.TopicState(ctx, namespace, topic, rate)
	})
}

func (s timedShard) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	return timed(ctx, s.m, "read_history", func() ([]store.History, error) {
		return s.next.ReadHistory(ctx, namespace, topics)
	})
}

func (s timedShard) ListHealth(ctx context.Context, f store.HealthFilter) ([]store.LaneHealth, error) {
	return timed(ctx, s.m, "list_health", func() ([]store.LaneHealth, error) { return s.next.ListHealth(ctx, f) })
}

func (s timedShard) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	swept, err := timed(ctx, s.m, "sweep", func() (store.SweepResult, error) { return s.next.Sweep(ctx, token, limit) })
	if err == nil {
		s.m.series.sweptJobs.Add(float64(swept.Jobs))
		s.m.series.sweptIDs.Add(float64(swept.IDs))
	}
	return swept, err
}

func (s timedShard) Repair(ctx context.Context) (store.RepairResult, error) {
	result, err := timed(ctx, s.m, "repair", func() (store.RepairResult, error) { return s.next.Repair(ctx) })
	for kind, n := range result.Repairs {
		s.m.repairs.WithLabelValues(string(kind)).Add(float64(n))
	}
	return result, err
}

func (s timedStore) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return timed(ctx, s.m, "put_topic",
		func() (store.Document, error) { return s.next.PutDocument(ctx, token, doc, limits) })
}

func (s timedStore) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return timed(ctx, s.m, "get_topics", func() ([]store.Document, error) { return s.next.GetDocuments(ctx, keys) })
}

func (s timedStore) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) (docs []store.Document, revision int64, err error) {
	defer s.m.observeCall(ctx, "topics", time.Now(), &err)
	return s.next.ListDocuments(ctx, after, limit)
}

func (s timedStore) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return timed(ctx, s.m, "list_changes",
		func() (store.Changes, error) { return s.next.ListChanges(ctx, kind, since) })
}

func (s timedShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return timed(ctx, s.m, "put_lane",
		func() (store.Document, error) { return s.next.PutDocument(ctx, token, doc, limits) })
}

func (s timedShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return timed(ctx, s.m, "get_lanes", func() ([]store.Document, error) { return s.next.GetDocuments(ctx, keys) })
}

func (s timedShard) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) (docs []store.Document, revision int64, err error) {
	defer s.m.observeCall(ctx, "list_lanes", time.Now(), &err)
	return s.next.ListDocuments(ctx, after, limit)
}

func (s timedShard) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return timed(ctx, s.m, "list_lane_changes",
		func() (store.Changes, error) { return s.next.ListChanges(ctx, kind, since) })
}

func (s timedShard) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	return timed(ctx, s.m, "permit", func() ([]store.Permit, error) { return s.next.Permit(ctx, token, asks) })
}

func (s timedShard) Alarm(ctx context.Context, token store.Token, state store.Alarm) (bool, error) {
	return timed(ctx, s.m, "alarm", func() (bool, error) { return s.next.Alarm(ctx, token, state) })
}

func (s timedStore) AppendTail(ctx context.Context, message []byte) ([][]byte, error) {
	return timed(ctx, s.m, "append_tail", func() ([][]byte, error) { return s.next.AppendTail(ctx, message) })
}

func (s timedStore) ReadTail(
	ctx context.Context, reader []byte, after int64,
) (messages [][]byte, position int64, err error) {
	defer s.m.observeCall(ctx, "read_tail", time.Now(), &err)
	return s.next.ReadTail(ctx, reader, after)
}

func (s timedStore) LeaveTail(ctx context.Context, reader []byte) (err error) {
	defer s.m.observeCall(ctx, "leave_tail", time.Now(), &err)
	return s.next.LeaveTail(ctx, reader)
}

func (s timedStore) Ping(ctx context.Context) (err error) {
	defer s.m.observeCall(ctx, "ping", time.Now(), &err)
	return s.next.Ping(ctx)
}

func (s timedStore) Close() error { return s.next.Close() }

// timedLead is a store.Leadership that times calls.
type timedLead struct {
	next store.Leadership
	m    *storeMetrics
}

func (l timedLead) Extend(ctx context.Context) (err error) {
	defer l.m.observeCall(ctx, "extend", time.Now(), &err)
	return l.next.Extend(ctx)
}

func (l timedLead) Release(ctx context.Context) (err error) {
	defer l.m.observeCall(ctx, "release", time.Now(), &err)
	return l.next.Release(ctx)
}
