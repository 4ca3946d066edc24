package pool

import (
	"context"

	"github.com/ringback/ringback/store"
)

// listen waits for the shard's bell until ctx ends. While the process is full it does not listen: tokens are left for
// others.
func (d *desk) listen(ctx context.Context) {
	var pause store.Backoff
	for {
		if !d.p.awaitRoom(ctx) {
			return
		}
		rung, err := d.p.opts.Store.Await(ctx, d.shard, store.Watch{
			Group: store.GroupPush,
			Wake:  d.p.opts.Leading(d.shard),
		})
		if rung.Wake {
			d.p.opts.OnWake(d.shard)
		}
		if len(rung.Queues) > 0 {
			d.heat(rung.Queues)
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			d.p.log.Warn("the store's bell could not be heard", "shard", d.shard, "err", err)
			if !pause.Wait(ctx) {
				return
			}
		default:
			pause.Reset()
		}
	}
}

// awaitRoom blocks while the process is full; false when ctx ended.
func (p *Pool) awaitRoom(ctx context.Context) bool {
	for {
		p.mu.Lock()
		full := p.inFlight >= p.opts.Workers || p.bytes >= p.opts.MaxBytes
		room := p.room
		p.mu.Unlock()
		if !full {
			return ctx.Err() == nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}
