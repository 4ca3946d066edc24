package carrier

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/ringback/ringback/store"
)

// home brings outbox entries to their own queues. An entry is removed by the next Carry; when the process dies in
// between, the second insertion finds the first by its fixed id.
//
// Queues are on any shard, and a shard that is away or silent must hold up neither this shard's moves nor what goes to
// the others. So each shard is served by itself, and waited for a moment only. What is for one that does not answer stays
// in the outbox and is passed over, but for one entry of it, which is tried again and again, beside the moves: when it
// arrives, the outbox is read anew from its beginning.
type home struct {
	*shard

	named []store.NewJob   // stand in their queues; the next round says so
	skip  int              // of the outbox's oldest entries: those read and not named yet
	read  time.Time        // when the reading began that skip comes from
	away  map[int]*absence // shards that did not take what was brought
	all   sync.WaitGroup   // insertions under way, at most one a shard
	done  chan brought     // of those
}

// An absence is a shard's.
type absence struct {
	probe store.NewJob // what is tried again; none while the first insertion has not ended
	at    time.Time    // when; zero while an insertion is under way
	again store.Backoff
}

// brought is what came of bringing entries to one shard.
type brought struct {
	shard int
	home  []store.NewJob // stand in their queues, or never will
	left  []store.NewJob // could not be brought: the shard is away
	err   error          // why
}

const (
	// homeWait is how long moves wait for insertions, all together.
	homeWait = 100 * time.Millisecond
	// homeAnew is after how long the outbox is read from its beginning while entries are passed over, whatever is known
	// of their shards: another carrier may have brought some of them home.
	homeAnew = time.Minute
)

func newHome(s *shard) *home {
	return &home{shard: s, away: make(map[int]*absence), done: make(chan brought, len(s.shards))}
}

// take gives the round that names the entries which stand in their queues, once.
func (h *home) take(ctx context.Context) store.CarryOptions {
	for len(h.done) > 0 {
		h.note(ctx, <-h.done)
	}
	for n, a := range h.away {
		if !a.at.IsZero() && !time.Now().Before(a.at) {
			a.at = time.Time{}
			h.send(ctx, n, []store.NewJob{a.probe}, 0)
		}
	}
	if h.skip > 0 && time.Since(h.read) > homeAnew {
		h.skip = 0
	}
	if h.skip == 0 {
		h.read = time.Now()
	}
	round := store.CarryOptions{SkipOutbox: h.skip}
	for _, e := range h.named {
		round.Relayed = append(round.Relayed, e.Ref())
	}
	h.named = nil
	return round
}

// wait is how long the sleep may be so that what is away is tried again in time. An insertion that ends wakes the shard.
func (h *home) wait() time.Duration {
	wait := look
	for _, a := range h.away {
		if !a.at.IsZero() {
			wait = min(wait, max(time.Millisecond, time.Until(a.at)))
		}
	}
	return wait
}

// bring inserts what a round handed out, and tells whether the next round should come at once.
func (h *home) bring(ctx context.Context, carried store.CarryResult) bool {
	h.skip += carried.OutboxRead
	parts := make(map[int][]store.NewJob)
	for _, e := range carried.Outbox {
		if n := h.store.ShardOf(e.Queue); h.away[n] == nil {
			parts[n] = append(parts[n], e)
		}
	}
	if len(parts) == 0 {
		return len(h.named) > 0
	}
	for n, part := range parts {
		h.away[n] = new(absence) // until it is known
		h.send(ctx, n, part, homeWait/2)
	}
	patience := time.NewTimer(homeWait)
	defer patience.Stop()
	for waiting := len(parts); waiting > 0; {
		select {
		case b := <-h.done:
			if parts[b.shard] != nil {
				waiting--
				if b.left == nil {
					delete(h.away, b.shard) // it never was: nothing of it was passed over
				}
			}
			h.note(ctx, b)
		case <-patience.C:
			waiting = 0
		case <-ctx.Done():
			waiting = 0
		}
	}
	return len(h.named) > 0
}

// send begins to insert entries of one shard. The end of what lasts longer than awaited wakes the carrier.
func (h *home) send(ctx context.Context, n int, entries []store.NewJob, awaited time.Duration) {
	began := time.Now()
	h.all.Go(func() {
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
func (h *home) insert(ctx context.Context, n int, entries []store.NewJob) brought {
	b := brought{shard: n}
	for i, result := range h.store.Insert(ctx, entries) {
		e := entries[i]
		switch {
		case errors.Is(result.Err, store.ErrUnavailable), result.Err != nil && ctx.Err() != nil,
			errors.Is(result.Err, context.DeadlineExceeded):
			b.left, b.err = append(b.left, e), result.Err
			continue
		case result.Err != nil:
			h.log.Error("a job born in the outbox was dropped", "job", e.ID, "origin", e.Origin, "err", result.Err)
		case result.Outcome == store.Conflict:
			h.log.Error("a job born in the outbox has the id of another one", "job", e.ID, "origin", e.Origin)
		}
		b.home = append(b.home, e)
	}
	return b
}

// note takes in what came of an insertion.
func (h *home) note(ctx context.Context, b brought) {
	h.named = append(h.named, b.home...)
	h.skip = max(0, h.skip-len(b.home))
	a := h.away[b.shard]
	switch {
	case b.left != nil:
		level := a.again.Level()
		a.probe, a.at = b.left[0], time.Now().Add(a.again.Next())
		h.log.Log(ctx, level, "jobs born in the outbox could not be brought to their queues yet", "shard", b.shard, "err", b.err)
	case a != nil:
		delete(h.away, b.shard)
		h.skip = 0 // entries for it were passed over
	}
}
