package pool

import (
	"context"
	"errors"
	"time"

	"github.com/ringback/ringback/store"
)

// trip settles what ended and claims for the room there is; false when there is nothing to do.
func (d *desk) trip(claiming, ctx, work context.Context) bool {
	items, request, more := d.prepare()
	d.askPermits(claiming)
	if len(items) == 0 && len(request.Queues) == 0 {
		return more
	}
	token := store.NewToken()
	at, errs, claimed, err := d.insist(ctx, token, items, request)
	switch {
	case err == nil:
		d.report(items, errs)
		d.start(ctx, work, request, claimed, at)
	case ctx.Err() != nil:
		d.giveUp(items, request)
	default:
		d.p.log.Error("a trip failed for what is in the store", "shard", d.shard, "err", err)
		d.apart(ctx, work, token, items, request)
	}
	return true
}

// asked is when a call was made: the first time, which may be the one that took effect, and the time that was answered.
type asked struct{ first, last time.Time }

// insist settles and claims again and again while the store is away, under the same token: the call may have taken effect, and
// nothing else of this shard goes on before it is known. An error is another fault of the store's, or ctx ended.
func (d *desk) insist(ctx context.Context, token store.Token, items []settled, request store.ClaimRequest) (at asked, errs []error, claimed store.ClaimResult, err error) {
	at.first = time.Now()
	err = d.persist(ctx, "settle and claim", func(ctx context.Context) error {
		at.last = time.Now()
		errs, claimed, err = d.call(ctx, token, items, request)
		d.lagged(time.Since(at.last))
		return err
	})
	return at, errs, claimed, err
}

// persist makes a call again and again while the store is away. An error is another fault of the store's, or ctx ended. what
// names the call in the log.
func (d *desk) persist(ctx context.Context, what string, call func(context.Context) error) error {
	var pause store.Backoff
	for {
		err := bounded(ctx, call)
		if err == nil || ctx.Err() != nil || !away(err) {
			return err
		}
		d.p.log.Log(ctx, pause.Level(), "store unavailable, retrying", "call", what, "shard", d.shard, "err", err)
		if !pause.Wait(ctx) {
			return err
		}
	}
}

// tripTimeout bounds one call to the store.
const tripTimeout = 10 * time.Second

// bounded makes one call with the longest time that one may take.
func bounded(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	return call(ctx)
}

// away reports whether an error says that the store is, rather than something about what is in it.
func away(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}

// apart makes a trip that failed for another reason than the store's absence once more, in parts, so that one job or queue
// that cannot be read stops no other: the settlements first, under the same token, then a claim a queue. A queue that cannot
// be claimed from is claimed from when the carrier rings for it anew.
func (d *desk) apart(ctx, work context.Context, token store.Token, items []settled, request store.ClaimRequest) {
	if left := d.settle(ctx, token, items); ctx.Err() != nil {
		d.giveUp(left, request)
		return
	}
	for _, w := range request.Queues {
		one := request
		one.Queues, one.Max, one.MaxBytes = []store.QueueClaim{w}, w.Max, d.reserveAgain()
		at, _, claimed, err := d.insist(ctx, store.NewToken(), nil, one)
		if err != nil {
			d.p.log.Error("a queue could not be claimed from", "queue", w.Queue.String(), "err", err)
			claimed = store.ClaimResult{} // nothing came: what was reserved is free again
		}
		d.start(ctx, work, one, claimed, at)
	}
}

// settle makes settlements, one by one where that fails for another reason than the store's absence. A job that cannot be
// settled comes back when its lease lapses. It answers those for which ctx ended first.
func (d *desk) settle(ctx context.Context, token store.Token, items []settled) (left []settled) {
	if len(items) == 0 {
		return nil
	}
	_, errs, _, err := d.insist(ctx, token, items, store.ClaimRequest{})
	switch {
	case err == nil:
		d.report(items, errs)
	case ctx.Err() != nil:
		return items
	case len(items) == 1:
		d.report(items, []error{err})
	default:
		for i := range items {
			left = append(left, d.settle(ctx, store.NewToken(), items[i:i+1])...)
		}
	}
	return left
}

// mostLag bounds what slow trips add to a lease.
const mostLag = 30 * time.Second

// lagged notes how long a trip took: leases last longer where the store is slow, or their jobs could never be attempted.
func (d *desk) lagged(took time.Duration) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.lag = max(took, d.lag-d.lag/8)
}

// call sends the trip. Outcomes are recorded even while the process stops, so the context is the flush's.
func (d *desk) call(ctx context.Context, token store.Token, items []settled, request store.ClaimRequest) ([]error, store.ClaimResult, error) {
	if len(items) == 0 {
		claimed, err := d.p.opts.Store.Claim(ctx, d.shard, token, request)
		return nil, claimed, err
	}
	settlements := make([]store.Settlement, len(items))
	for i := range items {
		settlements[i] = items[i].Settlement
	}
	next := &request
	if len(request.Queues) == 0 {
		next = nil
	}
	return d.p.opts.Store.Settle(ctx, d.shard, token, settlements, next)
}

// report logs settlements that were refused.
func (d *desk) report(items []settled, errs []error) {
	for i, err := range errs {
		if err == nil {
			continue
		}
		if items[i].Lane.Cooldown > 0 {
			d.unhold(items[i].lane)
		}
		d.p.log.Warn("the attempt's outcome was not recorded", "job", items[i].Ref.ID, "topic", items[i].Queue.Topic,
			"lane", items[i].Queue.Lane, "err", err)
	}
}

// giveUp lets go of a trip that could not be made before the end: its jobs come back when their leases lapse.
func (d *desk) giveUp(items []settled, request store.ClaimRequest) {
	d.p.mu.Lock()
	defer d.p.mu.Unlock()
	d.p.inFlight += len(items) - request.Max // counted as not settled
	d.unreserve()
	for _, w := range request.Queues {
		l := d.p.lanes[w.Queue]
		l.give(w.Max)
		l.asking = false
	}
}
