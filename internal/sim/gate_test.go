package sim

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
	"github.com/ringback/ringback/store"
	"github.com/ringback/ringback/store/storetest"
)

// A climate is what share of the calls of a process meets which fault.
type climate struct{ before, lost, twice, late float64 }

// longest bounds how late a call or its reply comes: longer than timeouts and leases.
const longest = 25 * time.Second

// gate is the store as a process sees it: with faults, and witnessed by the ledger. It embeds nothing, so that no
// method gets by.
type gate struct {
	next store.Store
	p    *process
}

// gateShard is a shard of a gate.
type gateShard struct {
	next   store.Shard
	p      *process
	number int
}

func (g gate) Shards() []store.Shard {
	return storetest.WrapShards(g.next, func(n int, next store.Shard) store.Shard { return gateShard{next, g.p, n} })
}

func unavailable(reason string) error {
	return &store.UnavailableError{Reason: "injected fault: " + reason}
}

// fault is what happens to one call.
type fault struct {
	before, lost, twice bool
	// dies and died: the process dies before, or after, the call takes effect.
	dies, died bool
	// early and late are the delays before and after the call takes effect.
	early, late time.Duration
	// again is when the call is made once more; zero: not.
	again time.Duration
}

// takesTime reports whether a repeat of the call at once does not make it good.
func (f fault) takesTime() bool { return f.dies || f.died || f.early > 0 || f.late > 0 || f.again > 0 }

func (c climate) draw(r *rand.Rand) (f fault) {
	delay := func() time.Duration { // mostly short
		return time.Duration(float64(longest) * r.Float64() * r.Float64() * r.Float64()).Truncate(time.Millisecond)
	}
	switch x := r.Float64(); {
	case x < c.before:
		f.before = true
	case x < c.before+c.lost:
		f.lost = true
	case x < c.before+c.lost+c.twice:
		f.twice = true
	case x < c.before+c.lost+c.twice+c.late:
		switch r.IntN(3) {
		case 0:
			f.early = delay()
		case 1:
			f.late = delay()
		default:
			f.again = max(time.Millisecond, delay())
		}
	}
	return f
}

// call makes a call of a process, with the faults that the seed has for it at this instant.
func call[T any](
	ctx context.Context, p *process, shard int, method string, do func(context.Context) (T, error),
) (T, error) {
	var none T
	if err := p.enter(ctx, shard); err != nil {
		return none, err
	}
	f := p.draw(shard, method)
	p.meet(f, shard, method)
	if f.takesTime() {
		p.disturb(true)
	}
	locked := func(ctx context.Context, isLate bool) (T, error) {
		p.w.lock <- struct{}{}
		defer func() { <-p.w.lock }()
		p.w.ledger.isLate = isLate
		return do(ctx)
	}
	// lateCall makes the call when its caller no longer waits for it, as a network does that holds it up.
	lateCall := func(after time.Duration) {
		p.w.late.Go(func() {
			time.Sleep(after)
			p.disturb(true)
			_, _ = locked(context.WithoutCancel(ctx), true)
		})
	}
	sent := time.Now()
	if err := p.wait(ctx, f.early); err != nil {
		if p.life.Err() == nil {
			lateCall(f.early - time.Since(sent))
		}
		return none, err
	}
	if f.before || f.dies {
		return none, unavailable(method + " not sent")
	}
	value, err := locked(ctx, false)
	if f.twice {
		value, err = locked(ctx, false)
	}
	if f.again > 0 {
		lateCall(f.again)
	}
	if f.died {
		p.kill()
	}
	if err := p.wait(ctx, f.late); err != nil {
		return none, err
	}
	if f.lost {
		return none, unavailable(method + " lost its reply")
	}
	if err := p.enter(ctx, shard); err != nil { // it died or slept meanwhile
		return none, err
	}
	return value, err
}

// meet tells of the fault of a call, and notes it.
func (p *process) meet(f fault, shard int, method string) {
	if f == (fault{}) {
		return
	}
	p.disturb(false)
	p.w.story.add("%s.%s on shard %d: %+v", p.name, method, shard, f)
	if f.dies {
		p.kill()
	}
}

// blocking makes a call that may take long by itself. It is not made again: what it has returned, it does not return
// once more. No attempt waits for it.
func blocking[T any](
	ctx context.Context, p *process, shard int, method string, do func(context.Context) (T, error),
) (T, error) {
	var none T
	if err := p.enter(ctx, shard); err != nil {
		return none, err
	}
	f := p.draw(shard, method)
	f.twice, f.again = false, 0
	p.meet(f, shard, method)
	if err := p.wait(ctx, f.early); err != nil {
		return none, err
	}
	if f.before || f.dies {
		return none, unavailable(method + " not sent")
	}
	callCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.life, cancel)()
	value, err := do(callCtx)
	if f.died {
		p.kill()
	}
	if gone := p.wait(ctx, f.late); gone != nil {
		return none, gone
	}
	if f.lost {
		return none, unavailable(method + " lost its reply")
	}
	if gone := p.enter(ctx, shard); gone != nil {
		return none, gone
	}
	return value, err
}

// pair adapts functions with two values.
type pair[A, B any] struct {
	a A
	b B
}

// call2 is call for two values.
func call2[A, B any](
	ctx context.Context, p *process, shard int, method string, do func(context.Context) (A, B, error),
) (A, B, error) {
	both, err := call(ctx, p, shard, method, func(ctx context.Context) (both pair[A, B], err error) {
		both.a, both.b, err = do(ctx)
		return both, err
	})
	return both.a, both.b, err
}

// do0 adapts a function without a value.
func do0(f func(context.Context) error) func(context.Context) (struct{}, error) {
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) }
}

func (s gateShard) ledger() *ledger { return s.p.w.ledger }

func (s gateShard) Insert(ctx context.Context, token store.Token, jobs []store.NewJob) ([]store.InsertResult, error) {
	return call(ctx, s.p, s.number, "Insert", func(ctx context.Context) ([]store.InsertResult, error) {
		results, err := s.next.Insert(ctx, token, jobs)
		s.ledger().inserted(token, jobs, results)
		return results, err
	})
}

func (s gateShard) Claim(
	ctx context.Context, token store.Token, request store.ClaimRequest,
) (store.ClaimResult, error) {
	return call(ctx, s.p, s.number, "Claim", func(ctx context.Context) (store.ClaimResult, error) {
		result, err := s.next.Claim(ctx, token, request)
		if err == nil {
			s.ledger().claimed(s.p, token, &request, result.Jobs)
		}
		return result, err
	})
}

func (s gateShard) ClaimExpired(
	ctx context.Context, token store.Token, request store.ClaimExpiredRequest,
) ([]store.ClaimedJob, error) {
	return call(ctx, s.p, s.number, "ClaimExpired", func(ctx context.Context) ([]store.ClaimedJob, error) {
		jobs, err := s.next.ClaimExpired(ctx, token, request)
		if err == nil {
			s.ledger().claimed(s.p, token, nil, jobs)
		}
		return jobs, err
	})
}

func (s gateShard) Settle(
	ctx context.Context, token store.Token, items []store.Settlement, next *store.ClaimRequest,
) ([]error, store.ClaimResult, error) {
	do := func(ctx context.Context) ([]error, store.ClaimResult, error) {
		errs, claimed, err := s.next.Settle(ctx, token, items, next)
		if err == nil {
			s.ledger().settle(s.p, token, items, errs)
			if next != nil {
				s.ledger().claimed(s.p, cmp.Or(next.Token, token), next, claimed.Jobs)
			}
		}
		return errs, claimed, err
	}
	return call2(ctx, s.p, s.number, "Settle", do)
}

func (s gateShard) Permit(ctx context.Context, token store.Token, asks []store.PermitRequest) ([]store.Permit, error) {
	return call(ctx, s.p, s.number, "Permit", func(ctx context.Context) ([]store.Permit, error) {
		permits, err := s.next.Permit(ctx, token, asks)
		if err == nil {
			s.ledger().repeats("Permit", token, permits)
		}
		return permits, err
	})
}

func (s gateShard) Wait(ctx context.Context, options store.WaitOptions) ([]job.Queue, error) {
	return blocking(ctx, s.p, s.number, "Wait", func(ctx context.Context) ([]job.Queue, error) {
		return s.next.Wait(ctx, options)
	})
}

func (s gateShard) WaitAgenda(ctx context.Context, timeout time.Duration) (bool, error) {
	return blocking(ctx, s.p, s.number, "WaitAgenda", func(ctx context.Context) (bool, error) {
		return s.next.WaitAgenda(ctx, timeout)
	})
}

func (s gateShard) Notify(ctx context.Context, queues []job.Queue) error {
	_, err := call(
		ctx, s.p, s.number, "Notify", do0(func(ctx context.Context) error { return s.next.Notify(ctx, queues) }),
	)
	return err
}

func (s gateShard) Get(ctx context.Context, ref job.Ref) (job.Job, error) {
	return call(ctx, s.p, s.number, "Get", func(ctx context.Context) (job.Job, error) { return s.next.Get(ctx, ref) })
}

func (s gateShard) Known(ctx context.Context, refs []job.Ref) ([]store.IDStatus, error) {
	return call(ctx, s.p, s.number, "Known", func(ctx context.Context) ([]store.IDStatus, error) {
		return s.next.Known(ctx, refs)
	})
}

func (s gateShard) List(ctx context.Context, filter store.Filter) (store.Page, error) {
	return call(ctx, s.p, s.number, "List", func(ctx context.Context) (store.Page, error) {
		return s.next.List(ctx, filter)
	})
}

func (s gateShard) Replace(
	ctx context.Context, token store.Token, ref job.Ref, replacement store.Replacement,
) (job.Job, error) {
	return call(ctx, s.p, s.number, "Replace", func(ctx context.Context) (job.Job, error) {
		j, err := s.next.Replace(ctx, token, ref, replacement)
		if err == nil {
			s.ledger().replaced(token, ref, replacement, j)
		}
		return j, err
	})
}

func (s gateShard) Cancel(
	ctx context.Context, token store.Token, ref job.Ref, cancellation store.Cancellation,
) (job.Job, error) {
	return call(ctx, s.p, s.number, "Cancel", func(ctx context.Context) (job.Job, error) {
		j, err := s.next.Cancel(ctx, token, ref, cancellation)
		if err == nil {
			s.ledger().cancelled(token, ref, cancellation, j)
		}
		return j, err
	})
}

func (s gateShard) Revive(ctx context.Context, token store.Token, items []store.Revival) ([]store.ReviveResult, error) {
	return call(ctx, s.p, s.number, "Revive", func(ctx context.Context) ([]store.ReviveResult, error) {
		results, err := s.next.Revive(ctx, token, items)
		s.ledger().revived(token, items, results)
		return results, err
	})
}

func (s gateShard) Purge(ctx context.Context, token store.Token, items []store.Removal) ([]error, error) {
	return call(ctx, s.p, s.number, "Purge", func(ctx context.Context) ([]error, error) {
		errs, err := s.next.Purge(ctx, token, items)
		s.ledger().purged(token, items, errs)
		return errs, err
	})
}

// gateLeadership is a carrier lock that a process holds.
type gateLeadership struct {
	next store.Leadership
	s    gateShard
}

func (s gateShard) Lead(ctx context.Context) (store.Leadership, error) {
	lead, err := call(ctx, s.p, s.number, "Lead", func(ctx context.Context) (store.Leadership, error) {
		lead, err := s.next.Lead(ctx)
		if err != nil {
			return nil, err
		}
		return gateLeadership{lead, s}, nil
	})
	if err != nil && !errors.Is(err, store.ErrNotLeader) {
		s.p.carrying[s.number].failed()
	}
	return lead, err
}

func (l gateLeadership) Extend(ctx context.Context) error {
	_, err := call(
		ctx, l.s.p, l.s.number, "Extend", do0(func(ctx context.Context) error { return l.next.Extend(ctx) }),
	)
	if err != nil {
		l.s.p.carrying[l.s.number].failed()
	}
	return err
}

func (l gateLeadership) Release(ctx context.Context) error {
	_, err := call(
		ctx, l.s.p, l.s.number, "Release", do0(func(ctx context.Context) error { return l.next.Release(ctx) }),
	)
	return err
}

func (s gateShard) Carry(
	ctx context.Context, token store.Token, options store.CarryOptions,
) (store.CarryResult, error) {
	if l, ok := options.Lead.(gateLeadership); ok {
		options.Lead = l.next
	}
	carried, err := call(ctx, s.p, s.number, "Carry", func(ctx context.Context) (store.CarryResult, error) {
		c, err := s.next.Carry(ctx, token, options)
		if err == nil {
			refs := make([]job.Ref, len(c.Outbox))
			for i := range c.Outbox {
				refs[i] = c.Outbox[i].Ref()
			}
			s.ledger().hasCarried()
			s.ledger().repeats("Carry", token, c.Moved, c.ExpiredLeases, refs, c.OutboxRead, c.Next, c.Now)
		}
		return c, err
	})
	if err != nil {
		s.p.carrying[s.number].failed()
	} else if c := s.p.carrying[s.number]; c.keepsLeases() && carried.ExpiredLeases > 0 {
		s.ledger().breach("%s: %d leases expired within %v after a fault",
			s.p.name, carried.ExpiredLeases, store.LeaseMargin)
	}
	return carried, err
}

func (s gateShard) Sweep(ctx context.Context, token store.Token, limit int) (store.SweepResult, error) {
	return call(ctx, s.p, s.number, "Sweep", func(ctx context.Context) (store.SweepResult, error) {
		return s.next.Sweep(ctx, token, limit)
	})
}

func (s gateShard) Repair(ctx context.Context) (store.RepairResult, error) {
	return call(ctx, s.p, s.number, "Repair", func(ctx context.Context) (store.RepairResult, error) {
		return s.next.Repair(ctx)
	})
}

func (s gateShard) Alarm(ctx context.Context, token store.Token, alarm store.Alarm) (bool, error) {
	return call(ctx, s.p, s.number, "Alarm", func(ctx context.Context) (bool, error) {
		changed, err := s.next.Alarm(ctx, token, alarm)
		if err == nil {
			s.ledger().alarmed(token, alarm, changed)
		}
		return changed, err
	})
}

func (s gateShard) TopicStats(ctx context.Context, filter store.StatsFilter) ([]store.TopicStats, error) {
	return call(ctx, s.p, s.number, "TopicStats", func(ctx context.Context) ([]store.TopicStats, error) {
		return s.next.TopicStats(ctx, filter)
	})
}

func (s gateShard) Totals(ctx context.Context, namespace string) (store.TopicStats, error) {
	return call(ctx, s.p, s.number, "Totals", func(ctx context.Context) (store.TopicStats, error) {
		return s.next.Totals(ctx, namespace)
	})
}

func (s gateShard) Usage(ctx context.Context, namespace string) (store.Usage, error) {
	return call(ctx, s.p, s.number, "Usage", func(ctx context.Context) (store.Usage, error) {
		return s.next.Usage(ctx, namespace)
	})
}

func (s gateShard) LaneStats(
	ctx context.Context, namespace, topic, after string, limit int,
) ([]store.LaneStats, error) {
	return call(ctx, s.p, s.number, "LaneStats", func(ctx context.Context) ([]store.LaneStats, error) {
		return s.next.LaneStats(ctx, namespace, topic, after, limit)
	})
}

func (s gateShard) QueueState(ctx context.Context, queue job.Queue) (store.QueueState, error) {
	return call(ctx, s.p, s.number, "QueueState", func(ctx context.Context) (store.QueueState, error) {
		return s.next.QueueState(ctx, queue)
	})
}

func (s gateShard) TopicState(
	ctx context.Context, namespace, topic string, rate policy.Rate,
) (store.TopicState, error) {
	return call(ctx, s.p, s.number, "TopicState", func(ctx context.Context) (store.TopicState, error) {
		return s.next.TopicState(ctx, namespace, topic, rate)
	})
}

func (s gateShard) ReadHistory(ctx context.Context, namespace string, topics []string) ([]store.History, error) {
	return call(ctx, s.p, s.number, "ReadHistory", func(ctx context.Context) ([]store.History, error) {
		return s.next.ReadHistory(ctx, namespace, topics)
	})
}

func (s gateShard) ListHealth(ctx context.Context, f store.HealthFilter) ([]store.LaneHealth, error) {
	return call(ctx, s.p, s.number, "ListHealth", func(ctx context.Context) ([]store.LaneHealth, error) {
		return s.next.ListHealth(ctx, f)
	})
}

func (s gateShard) GetRecords(ctx context.Context, refs []job.Ref) ([]store.Record, error) {
	return call(ctx, s.p, s.number, "GetRecords", func(ctx context.Context) ([]store.Record, error) {
		return s.next.GetRecords(ctx, refs)
	})
}

func (s gateShard) PutRecords(
	ctx context.Context, token store.Token, records []store.Record,
) ([]store.Outcome, error) {
	return call(ctx, s.p, s.number, "PutRecords", func(ctx context.Context) ([]store.Outcome, error) {
		return s.next.PutRecords(ctx, token, records)
	})
}

func (s gateShard) ScanLanes(ctx context.Context, cursor string) ([]store.Document, string, error) {
	do := func(ctx context.Context) ([]store.Document, string, error) { return s.next.ScanLanes(ctx, cursor) }
	return call2(ctx, s.p, s.number, "ScanLanes", do)
}

func (s gateShard) ListDocuments(
	ctx context.Context, after store.DocumentKey, limit int,
) ([]store.Document, int64, error) {
	do := func(ctx context.Context) ([]store.Document, int64, error) {
		return s.next.ListDocuments(ctx, after, limit)
	}
	return call2(ctx, s.p, s.number, "ListLanes", do)
}

func (s gateShard) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return call(ctx, s.p, s.number, "ListLaneChanges", func(ctx context.Context) (store.Changes, error) {
		return s.next.ListChanges(ctx, kind, since)
	})
}

func (s gateShard) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return call(ctx, s.p, s.number, "PutLane", func(ctx context.Context) (store.Document, error) {
		put, err := s.next.PutDocument(ctx, token, doc, limits)
		if err == nil {
			s.ledger().put(token, doc, put.Revision)
		}
		return put, err
	})
}

func (s gateShard) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return call(ctx, s.p, s.number, "GetLanes", func(ctx context.Context) ([]store.Document, error) {
		return s.next.GetDocuments(ctx, keys)
	})
}

func (g gate) PutDocument(
	ctx context.Context, token store.Token, doc store.Document, limits policy.Limits,
) (store.Document, error) {
	return call(ctx, g.p, documents, "PutDocument", func(ctx context.Context) (store.Document, error) {
		put, err := g.next.PutDocument(ctx, token, doc, limits)
		if err == nil {
			g.p.w.ledger.put(token, doc, put.Revision)
		}
		return put, err
	})
}

func (g gate) GetDocuments(ctx context.Context, keys []store.DocumentKey) ([]store.Document, error) {
	return call(ctx, g.p, documents, "GetDocuments", func(ctx context.Context) ([]store.Document, error) {
		return g.next.GetDocuments(ctx, keys)
	})
}

func (g gate) ListDocuments(ctx context.Context, after store.DocumentKey, limit int) ([]store.Document, int64, error) {
	do := func(ctx context.Context) ([]store.Document, int64, error) {
		return g.next.ListDocuments(ctx, after, limit)
	}
	return call2(ctx, g.p, documents, "ListDocuments", do)
}

func (g gate) ListChanges(ctx context.Context, kind string, since int64) (store.Changes, error) {
	return call(ctx, g.p, documents, "ListChanges", func(ctx context.Context) (store.Changes, error) {
		return g.next.ListChanges(ctx, kind, since)
	})
}

func (g gate) Ping(ctx context.Context) error {
	_, err := call(ctx, g.p, documents, "Ping", do0(g.next.Ping))
	return err
}

func (g gate) AppendTail(ctx context.Context, message []byte) ([][]byte, error) {
	return call(ctx, g.p, documents, "AppendTail", func(ctx context.Context) ([][]byte, error) {
		return g.next.AppendTail(ctx, message)
	})
}

func (g gate) ReadTail(ctx context.Context, reader []byte, after int64) ([][]byte, int64, error) {
	do := func(ctx context.Context) ([][]byte, int64, error) { return g.next.ReadTail(ctx, reader, after) }
	return call2(ctx, g.p, documents, "ReadTail", do)
}

func (g gate) LeaveTail(ctx context.Context, reader []byte) error {
	_, err := call(
		ctx, g.p, documents, "LeaveTail", do0(func(ctx context.Context) error { return g.next.LeaveTail(ctx, reader) }),
	)
	return err
}

// Close leaves the store open for the other processes.
func (g gate) Close() error { return nil }
