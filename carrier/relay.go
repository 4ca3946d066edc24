package carrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

// outboxRelay inserts outbox entries into their target queues. The next Carry deletes them from the outbox. If the process
// dies in between, the second insertion finds the first by its fixed id.
//
// Targets are on any shard, and an unavailable shard must delay neither this shard's rounds nor entries for other shards. So
// entries are inserted per shard, and a round waits for them only briefly. Entries for an unavailable shard stay in the
// outbox and are skipped. One of them is retried in the background; once it is inserted, the outbox is read from its start.
type outboxRelay struct {
	*shard

	relayed  []store.NewJob       // inserted; the next round deletes them from the outbox
	skip     int                  // entries at the start of the outbox that were read and not deleted yet
	readFrom time.Time            // when the outbox was last read from its start
	outages  map[int]*shardOutage // by shard
	inserts  sync.WaitGroup       // insertions in progress, at most one per shard
	done     chan insertResult    // of those
}

// shardOutage is the state of a target shard whose insertion failed or has not ended.
type shardOutage struct {
	probe   store.NewJob // the entry to retry; empty until the first insertion has ended
	retryAt time.Time    // zero while an insertion is in progress
	backoff store.Backoff
}

// insertResult is the result of inserting entries into one shard.
type insertResult struct {
	shard   int
	stored  []store.NewJob // inserted, or dropped
	pending []store.NewJob // not inserted: the shard is unavailable
	err     error          // why
}

const (
	// relayTimeout is how long a round waits for insertions.
	relayTimeout = 100 * time.Millisecond
	// rescanOutboxEvery is how often the outbox is read from its start while entries are skipped: another carrier may have
	// relayed some of them.
	rescanOutboxEvery = time.Minute
)

func newOutboxRelay(s *shard) *outboxRelay {
	return &outboxRelay{shard: s, outages: make(map[int]*shardOutage), done: make(chan insertResult, len(s.shards))}
}

// options returns the options of the next Carry, with the entries that were inserted since the last.
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
	options := store.CarryOptions{SkipOutbox: h.skip}
	for _, e := range h.relayed {
		options.Relayed = append(options.Relayed, e.Ref())
	}
	h.relayed = nil
	return options
}

// wait returns the longest sleep that keeps retries on time. The end of an insertion wakes the carrier.
func (h *outboxRelay) wait() time.Duration {
	wait := maxSleep
	for _, a := range h.outages {
		if !a.retryAt.IsZero() {
			wait = min(wait, max(time.Millisecond, time.Until(a.retryAt)))
		}
	}
	return wait
}

// relay inserts the entries of a round, and reports whether the next round should follow at once.
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
		h.outages[n] = new(shardOutage) // until the insertion has ended
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
					delete(h.outages, b.shard) // it was available: no entry of it was skipped
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

// startInsert inserts entries of one shard in the background. An insertion that takes longer than awaited wakes the carrier.
func (h *outboxRelay) startInsert(ctx context.Context, n int, entries []store.NewJob, awaited time.Duration) {
	began := time.Now()
	h.inserts.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		h.done <- h.insert(ctx, n, entries)
		if time.Since(began) >= awaited {
			h.wakeUp()
		}
	})
}

// insert inserts entries of one shard. Entries stay pending if the shard is unavailable. An entry that is rejected for another
// reason is logged and dropped.
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
			h.log.Error("outbox entry rejected, dropping it", "job", e.ID, "origin", e.Origin, "err", result.Err)
		case result.Outcome == store.Conflict:
			h.log.Error("outbox entry has the id of another job, dropping it", "job", e.ID, "origin", e.Origin)
		}
		b.stored = append(b.stored, e)
	}
	return b
}

// record applies the result of an insertion.
func (h *outboxRelay) record(ctx context.Context, b insertResult) {
	h.relayed = append(h.relayed, b.stored...)
	h.skip = max(0, h.skip-len(b.stored))
	a := h.outages[b.shard]
	switch {
	case b.pending != nil:
		level := a.backoff.Level()
		a.probe, a.retryAt = b.pending[0], time.Now().Add(a.backoff.Next())
		h.log.Log(ctx, level, "outbox relay: target shard unavailable, will retry", "shard", b.shard, "err", b.err)
	case a != nil:
		delete(h.outages, b.shard)
		h.skip = 0 // entries for it were skipped
	}
}
