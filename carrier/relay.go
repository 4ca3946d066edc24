package carrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

// outboxRelay brings outbox entries to their own queues. An entry is removed by the next Carry; when the process dies in
// between, the second insertion finds the first by its fixed id.
//
// Queues are on any shard, and a shard that is away or silent must hold up neither this shard's moves nor what goes to
// the others. So each shard is served by itself, and waited for a moment only. What is for one that does not answer stays
// in the outbox and is passed over, but for one entry of it, which is tried again and again, beside the moves: when it
// arrives, the outbox is read anew from its beginning.
type outboxRelay struct {
	*shard

	relayed  []store.NewJob       // stand in their queues; the next round says so
	skip     int                  // of the outbox's oldest entries: those read and not named yet
	readFrom time.Time            // when the reading began that skip comes from
	outages  map[int]*shardOutage // shards that did not take what was brought
	inserts  sync.WaitGroup       // insertions under way, at most one a shard
	done     chan insertResult    // of those
}

// An shardOutage is a shard's.
type shardOutage struct {
	probe   store.NewJob // what is tried again; none while the first insertion has not ended
	retryAt time.Time    // when; zero while an insertion is under way
	backoff store.Backoff
}

// insertResult is what came of bringing entries to one shard.
type insertResult struct {
	shard   int
	stored  []store.NewJob // stand in their queues, or never will
	pending []store.NewJob // could not be brought: the shard is away
	err     error          // why
}

const (
	// relayTimeout is how long moves wait for insertions, all together.
	relayTimeout = 100 * time.Millisecond
	// rescanOutboxEvery is after how long the outbox is read from its beginning while entries are passed over, whatever is known
	// of their shards: another carrier may have brought some of them home.
	rescanOutboxEvery = time.Minute
)

func newOutboxRelay(s *shard) *outboxRelay {
	return &outboxRelay{shard: s, outages: make(map[int]*shardOutage), done: make(chan insertResult, len(s.shards))}
}

// options gives the round that names the entries which stand in their queues, once.
func (h *outboxRelay) options(ctx context.Context) store.CarryOptions {
	for len(h.done) > 0 {
		h.record(ctx, <-h.done)
	}
	for n, a := range h.outages {
		if !a.retryAt.IsZero() && !time.Now().Before(a.retryAt) {
			a.retryAt = time.Time{}
			h.startInsert(ctx, n, []store.NewJob{a.probe}, 0)
		}
	}
	if h.skip > 0 && time.Since(h.readFrom) > rescanOutboxEvery {
		h.skip = 0
	}
	if h.skip == 0 {
		h.readFrom = time.Now()
	}
	round := store.CarryOptions{SkipOutbox: h.skip}
	for _, e := range h.relayed {
		round.Relayed = append(round.Relayed, e.Ref())
	}
	h.relayed = nil
	return round
}

// wait is how long the sleep may be so that what is away is tried again in time. An insertion that ends wakes the shard.
func (h *outboxRelay) wait() time.Duration {
	wait := maxSleep
	for _, a := range h.outages {
		if !a.retryAt.IsZero() {
			wait = min(wait, max(time.Millisecond, time.Until(a.retryAt)))
		}
	}
	return wait
}

// relay inserts what a round handed out, and tells whether the next round should come at once.
func (h *outboxRelay) relay(ctx context.Context, carried store.CarryResult) bool {
	h.skip += carried.OutboxRead
	parts := make(map[int][]store.NewJob)
	for _, e := range carried.Outbox {
		if n := h.store.ShardOf(e.Queue); h.outages[n] == nil {
			parts[n] = append(parts[n], e)
		}
	}
	if len(parts) == 0 {
		return len(h.relayed) > 0
	}
	for n, part := range parts {
		h.outages[n] = new(shardOutage) // until it is known
		h.startInsert(ctx, n, part, relayTimeout/2)
	}
	patience := time.NewTimer(relayTimeout)
	defer patience.Stop()
	for waiting := len(parts); waiting > 0; {
		select {
		case b := <-h.done:
			if parts[b.shard] != nil {
				waiting--
				if b.pending == nil {
					delete(h.outages, b.shard) // it never was: nothing of it was passed over
				}
			}
			h.record(ctx, b)
		case <-patience.C:
			waiting = 0
		case <-ctx.Done():
			waiting = 0
		}
	}
	return len(h.relayed) > 0
}

// startInsert begins to insert entries of one shard. The end of what lasts longer than awaited wakes the carrier.
func (h *outboxRelay) startInsert(ctx context.Context, n int, entries []store.NewJob, awaited time.Duration) {
	began := time.Now()
	h.inserts.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		h.done <- h.insert(ctx, n, entries)
		if time.Since(began) >= awaited {
			h.Wake(h.n)
		}
	})
}

// insert inserts entries of one shard. Where that is away they are left; where an insertion is refused for another reason
// the entry is dropped, with a log line that names it.
func (h *outboxRelay) insert(ctx context.Context, n int, entries []store.NewJob) insertResult {
	b := insertResult{shard: n}
	for i, result := range h.store.Insert(ctx, entries) {
		e := entries[i]
		switch {
		case errors.Is(result.Err, store.ErrUnavailable), result.Err != nil && ctx.Err() != nil,
			errors.Is(result.Err, context.DeadlineExceeded):
			b.pending, b.err = append(b.pending, e), result.Err
			continue
		case result.Err != nil:
			h.log.Error("a job born in the outbox was dropped", "job", e.ID, "origin", e.Origin, "err", result.Err)
		case result.Outcome == store.Conflict:
			h.log.Error("a job born in the outbox has the id of another one", "job", e.ID, "origin", e.Origin)
		}
		b.stored = append(b.stored, e)
	}
	return b
}

// record takes in what came of an insertion.
func (h *outboxRelay) record(ctx context.Context, b insertResult) {
	h.relayed = append(h.relayed, b.stored...)
	h.skip = max(0, h.skip-len(b.stored))
	a := h.outages[b.shard]
	switch {
	case b.pending != nil:
		level := a.backoff.Level()
		a.probe, a.retryAt = b.pending[0], time.Now().Add(a.backoff.Next())
		h.log.Log(ctx, level, "jobs born in the outbox could not be brought to their queues yet", "shard", b.shard, "err", b.err)
	case a != nil:
		delete(h.outages, b.shard)
		h.skip = 0 // entries for it were passed over
	}
}
