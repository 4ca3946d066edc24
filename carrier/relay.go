package carrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

// outboxRelay inserts outbox entries into their target queues. The next Carry deletes them from the outbox. If the
// process dies in between, the second insertion finds the first by its fixed id.
//
// Targets are on any shard, and an unavailable shard must delay neither this shard's rounds nor entries for other
// shards. So entries are inserted per shard, and a round waits for them only briefly. Entries for an unavailable shard
// stay in the outbox and are skipped. One of them is retried in the background; once it is inserted, the outbox is read
// from its start.
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
	// rescanOutboxEvery is how often the outbox is read from its start while entries are skipped: another carrier may
	// have relayed some of them.
	rescanOutboxEvery = time.Minute
)

func newOutboxRelay(s *shard) *outboxRelay {
	return &outboxRelay{shard: s, outages: make(map[int]*shardOutage), done: make(chan insertResult, len(s.shards))}
}

// options returns the options of the next Carry, with the entries that were inserted since the last.
func (r *outboxRelay) options(ctx context.Context) store.CarryOptions {
	for len(r.done) > 0 {
		r.record(ctx, <-r.done)
	}
	for n, outage := range r.outages {
		if !outage.retryAt.IsZero() && !time.Now().Before(outage.retryAt) {
			outage.retryAt = time.Time{}
			r.startInsert(ctx, n, []store.NewJob{outage.probe}, 0)
		}
	}
	if r.skip > 0 && time.Since(r.readFrom) > rescanOutboxEvery {
		r.skip = 0
	}
	if r.skip == 0 {
		r.readFrom = time.Now()
	}
	options := store.CarryOptions{SkipOutbox: r.skip}
	for _, e := range r.relayed {
		options.Relayed = append(options.Relayed, e.Ref())
	}
	r.relayed = nil
	return options
}

// wait returns the longest sleep that keeps retries on time. The end of an insertion wakes the carrier.
func (r *outboxRelay) wait() time.Duration {
	wait := maxSleep
	for _, outage := range r.outages {
		if !outage.retryAt.IsZero() {
			wait = min(wait, max(time.Millisecond, time.Until(outage.retryAt)))
		}
	}
	return wait
}

// relay inserts the entries of a round, and reports whether the next round should follow at once.
func (r *outboxRelay) relay(ctx context.Context, carried store.CarryResult) bool {
	r.skip += carried.OutboxRead
	parts := make(map[int][]store.NewJob)
	for _, e := range carried.Outbox {
		if n := r.store.ShardOf(e.Queue); r.outages[n] == nil {
			parts[n] = append(parts[n], e)
		}
	}
	if len(parts) == 0 {
		return len(r.relayed) > 0
	}
	for n, part := range parts {
		r.outages[n] = new(shardOutage) // until the insertion has ended
		r.startInsert(ctx, n, part, relayTimeout/2)
	}
	patience := time.NewTimer(relayTimeout)
	defer patience.Stop()
	for waiting := len(parts); waiting > 0; {
		select {
		case inserted := <-r.done:
			if parts[inserted.shard] != nil {
				waiting--
				if inserted.pending == nil {
					delete(r.outages, inserted.shard) // it was available: no entry of it was skipped
				}
			}
			r.record(ctx, inserted)
		case <-patience.C:
			waiting = 0
		case <-ctx.Done():
			waiting = 0
		}
	}
	return len(r.relayed) > 0
}

// startInsert inserts entries of one shard in the background. An insertion that takes longer than awaited wakes the
// carrier.
func (r *outboxRelay) startInsert(ctx context.Context, n int, entries []store.NewJob, awaited time.Duration) {
	began := time.Now()
	r.inserts.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, store.CallTimeout)
		defer cancel()
		r.done <- r.insert(ctx, n, entries)
		if time.Since(began) >= awaited {
			r.wakeUp()
		}
	})
}

// insert inserts entries of one shard. Entries stay pending if the shard is unavailable. An entry that is rejected for
// another reason is logged and dropped.
func (r *outboxRelay) insert(ctx context.Context, n int, entries []store.NewJob) insertResult {
	inserted := insertResult{shard: n}
	for i, result := range r.store.Insert(ctx, entries) {
		e := entries[i]
		switch {
		case errors.Is(result.Err, store.ErrUnavailable), result.Err != nil && ctx.Err() != nil,
			errors.Is(result.Err, context.DeadlineExceeded):
			inserted.pending, inserted.err = append(inserted.pending, e), result.Err
			continue
		case result.Err != nil:
			r.log.Error("outbox entry rejected, dropping it", "job", e.ID, "origin", e.Origin, "err", result.Err)
		case result.Outcome == store.Conflict:
			r.log.Error("outbox entry has the id of another job, dropping it", "job", e.ID, "origin", e.Origin)
		}
		inserted.stored = append(inserted.stored, e)
	}
	return inserted
}

// record applies the result of an insertion.
func (r *outboxRelay) record(ctx context.Context, inserted insertResult) {
	r.relayed = append(r.relayed, inserted.stored...)
	r.skip = max(0, r.skip-len(inserted.stored))
	outage := r.outages[inserted.shard]
	switch {
	case inserted.pending != nil:
		level := outage.backoff.Level()
		outage.probe, outage.retryAt = inserted.pending[0], time.Now().Add(outage.backoff.Next())
		r.log.Log(ctx, level, "outbox relay: target shard unavailable, will "+
			"retry", "shard", inserted.shard, "err", inserted.err)
	case outage != nil:
		delete(r.outages, inserted.shard)
		r.skip = 0 // entries for it were skipped
	}
}
