package pull

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/pool"
	"github.com/ringback/ringback/store"
)

// Settle ends or extends the leases of a namespace's clients, up to store.MaxBatch of them, and returns an error for
// each: nil, store.ErrLeaseLost, store.ErrCancelRequested, or why its shard is unavailable. Leases of one shard are
// settled in order, extensions last. Then it leases jobs as next asks, if it is not nil, as Lease does, but none of a
// topic that is not pulled any more.
//
// Settle returns an error only if it has settled nothing: one of next, after that, means no jobs. A repeat of the same
// reports within store.TokenTTL returns what the first call did, from any process. Extensions are made again. Without
// reports it is Lease.
func (p *Puller) Settle(
	ctx context.Context, reports []store.LeaseReport, next *store.LeaseRequest,
) ([]error, []store.LeasedJob, error) {
	if len(reports) == 0 && next != nil {
		leased, err := p.Lease(ctx, *next)
		return nil, leased, err
	}
	if err := p.opts.Policies.Update(ctx); err != nil {
		return nil, nil, fmt.Errorf("read topic policies: %w", err)
	}
	key, err := p.key.Get(ctx)
	if err != nil {
		return nil, nil, err
	}
	var c *client
	if next != nil && p.checkPulled(ctx, next) == nil {
		if entered, err := p.enter(next, key, true); err == nil {
			c = entered
			defer p.leave(c)
		}
	}
	items, errs := p.settlements(ctx, reports, key)
	leased := p.settleAll(ctx, reports, items, errs, c)
	unsettled := slices.IndexFunc(errs, func(err error) bool { return !isSettled(err) })
	switch {
	case unsettled >= 0 && !slices.ContainsFunc(errs, isSettled):
		p.Release(ctx, leased)
		return nil, nil, fmt.Errorf("settle leases: %w", errs[unsettled])
	case unsettled >= 0 || c == nil || len(leased) > 0:
		return errs, leased, nil // with an unavailable shard at once, since the client should repeat the request soon
	}
	leased, err = p.await(ctx, c)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("no jobs could be leased after a settlement, the client gets none", "topic", next.Topic, "err", err)
	}
	return errs, leased, nil
}

// isSettled reports whether the store has answered a settlement.
func isSettled(err error) bool {
	return err == nil || errors.Is(err, store.ErrLeaseLost) || errors.Is(err, store.ErrCancelRequested)
}

// settleAll settles, all shards at once, and claims for a client (nil: none) at the same time, in the same call if the
// claim is of one of these shards. It sets the error of each item.
func (p *Puller) settleAll(
	ctx context.Context, reports []store.LeaseReport, items []settled, errs []error, c *client,
) []store.LeasedJob {
	byShard := make([][]int, len(p.shards)) // indexes of items
	for i := range items {
		n := store.ShardOf(len(p.shards), items[i].Queue)
		byShard[n] = append(byShard[n], i)
	}
	var next *nextClaim
	if c != nil {
		if from := p.pickSettled(c, items, byShard); from != nil {
			if g, err := p.takeStarts(ctx, c.topic, c.most); err == nil && g.n > 0 {
				next = &nextClaim{client: c, from: from, grant: g}
			} else {
				p.unpick(c.topic, from)
			}
		}
	}
	var calls sync.WaitGroup
	for n, indexes := range byShard {
		of := next
		if of != nil && of.from.shard != n {
			of = nil
		}
		if len(indexes) > 0 || of != nil {
			calls.Go(func() { p.settleShard(ctx, n, indexes, reports, items, errs, of) })
		}
	}
	calls.Wait()
	for i := range items {
		p.observe(ctx, &items[i], errs[i])
	}
	if next == nil {
		return nil
	}
	return p.unlessLate(ctx, next.grant, next.leased)
}

// nextClaim is a claim that is made with settlements.
type nextClaim struct {
	client *client
	from   *picked
	grant  grant
	leased []store.LeasedJob
}

// settleShard settles what is of one shard, and sets the errors of its items. The reports that end attempts go in one
// call, whose token is made of them, so that a repeat is answered as the first call. Extensions go in another one: the
// same text asks for more time each time. next (nil: none) is made with the first call, or by itself.
func (p *Puller) settleShard(
	ctx context.Context, n int, indexes []int, reports []store.LeaseReport, items []settled, errs []error,
	next *nextClaim,
) {
	indexes = slices.DeleteFunc(indexes, func(i int) bool { return errors.Is(errs[i], store.ErrLeaseLost) })
	extends := func(i int) bool { return items[i].Extend > 0 }
	ends := slices.DeleteFunc(slices.Clone(indexes), extends)
	extensions := slices.DeleteFunc(indexes, func(i int) bool { return !extends(i) })
	if unread := slices.IndexFunc(ends, func(i int) bool { return errs[i] != nil }); unread >= 0 {
		for _, i := range ends { // all, since a repeat must have the same token
			errs[i] = errs[ends[unread]]
		}
		ends = nil
	}
	if len(ends) > 0 {
		p.settlePart(ctx, n, tokenOf(reports, ends), ends, items, errs, next)
		next = nil
	}
	if len(extensions) > 0 {
		p.settlePart(ctx, n, p.opts.Owner.NewToken(), extensions, items, errs, next)
	} else if next != nil {
		// an error means no jobs, and was logged
		next.leased, _ = p.claimGranted(ctx, next.client, next.from, next.grant)
	}
}

// tokenOf returns the token of a settlement of some reports, the same for the same reports. Nobody can guess it who
// does not know the leases.
func tokenOf(reports []store.LeaseReport, indexes []int) store.Token {
	h := sha256.New()
	text := make([]byte, 0, 512)
	for _, i := range indexes {
		r := &reports[i]
		text = append(text[:0], byte(r.Result))
		after := int64(-1)
		if r.After != nil {
			after = int64(*r.After)
		}
		status := int64(r.Status)
		if r.NonRetryable {
			status = -status
		}
		text = binary.AppendVarint(binary.AppendVarint(text, after), status)
		l := &r.Lease
		for _, s := range [...]string{l.Queue.Namespace, l.Queue.Topic, l.Queue.Lane, l.ID, string(l.Token), r.Error} {
			text = append(binary.AppendUvarint(text, uint64(len(s))), s...)
		}
		text = binary.AppendUvarint(text, uint64(len(r.Response)))
		_, _ = h.Write(text) // it never fails
		_, _ = h.Write(r.Response)
	}
	return store.SharedToken(h.Sum(nil))
}

// settlePart settles items of a shard in one call, and makes the next claim (nil: none) with it.
func (p *Puller) settlePart(
	ctx context.Context, n int, token store.Token, indexes []int, items []settled, errs []error, next *nextClaim,
) {
	part := make([]store.Settlement, len(indexes))
	for k, i := range indexes {
		part[k] = items[i].Settlement
	}
	put := func(k int, err error) { errs[indexes[k]] = err }
	if next == nil {
		p.settleOn(ctx, n, token, part, put)
		return
	}
	request := p.claimRequest(next.client, next.from, next.grant)
	began, settledErrs, claimed, err := p.exchange(ctx, n, token, part, &request)
	switch {
	case err == nil:
		for k, err := range settledErrs {
			put(k, err)
		}
		next.leased = p.receive(ctx, next.client, next.from, next.grant, claimed, began)
		return
	case store.IsUnavailable(err):
		for k := range part {
			put(k, err)
		}
	default:
		p.settleOn(ctx, n, token, part, put)
	}
	p.claimed(next.client.topic, next.from, store.ClaimResult{})
}

// pickSettled returns queues to claim from while items are settled, of the shard with the most of them or another; nil:
// none.
func (p *Puller) pickSettled(c *client, items []settled, byShard [][]int) *picked {
	best := 0
	for n, indexes := range byShard {
		if len(indexes) > len(byShard[best]) {
			best = n
		}
	}
	if len(byShard[best]) == 0 {
		return nil
	}
	queues := make([]job.Queue, len(byShard[best]))
	for k, i := range byShard[best] {
		queues[k] = items[i].Queue
	}
	return p.pick(c, best, queues)
}

// settleOn settles on one shard, one by one after a rejection. put takes the error of each item.
func (p *Puller) settleOn(
	ctx context.Context, n int, token store.Token, items []store.Settlement, put func(k int, err error),
) {
	p.exchanges[n].Settle(context.WithoutCancel(ctx), token, items, func(k int, err error) {
		if err != nil && !isSettled(err) && !store.IsUnavailable(err) {
			p.log.Error("settlement of a lease rejected, its job is due again when the lease "+
				"expires", "job", items[k].Ref.ID, "topic", items[k].Queue.Topic, "err", err)
			err = store.ErrLeaseLost
		}
		put(k, err)
	})
}

// settleQuietly settles what no client waits for.
func (p *Puller) settleQuietly(ctx context.Context, n int, items []store.Settlement) {
	var failed error
	p.settleOn(ctx, n, p.opts.Owner.NewToken(), items, func(_ int, err error) {
		if !isSettled(err) {
			failed = err
		}
	})
	if failed != nil {
		p.log.Warn("leased jobs could not be put back, they are due again when their leases expire", "shard", n, "jobs",
			len(items), "err", failed)
	}
}

// observe reports an attempt that was settled.
func (p *Puller) observe(ctx context.Context, item *settled, err error) {
	if err != nil && !errors.Is(err, store.ErrCancelRequested) {
		p.log.Debug("lease lost, result not recorded", "job", item.Ref.ID, "topic", item.Queue.Topic, "err", err)
		return
	}
	if item.result != nil {
		p.recorder.Ended(ctx, pool.AttemptEvent{
			Namespace: item.Queue.Namespace, Topic: item.Queue.Topic, Verdict: item.Verdict,
			Result: item.result, Late: item.lease.Late, Job: item.job, Record: item.Attempt,
		}, item.span)
	}
}
