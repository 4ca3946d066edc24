package pool

import (
	"context"

	"github.com/ringback/ringback/store"
)

// listen waits for the shard's bell until ctx ends, whether or not there is room: what is due later may be of a topic that
// has some, and what cannot be served is handed back. Only when very many lanes stand in line, tokens are left where
// they are for a while.
func (d *desk) listen(ctx context.Context) {
	var pause store.Backoff
	for {
		if d.p.crowded() {
			pause.Reset()
			if !pause.Wait(ctx) {
				return
			}
			continue
		}
		rung, again, err := d.await(ctx)
		if rung.AgendaMoved {
			d.p.opts.OnWake(d.shard)
		}
		if len(rung.Queues) > 0 {
			d.heat(rung.Queues)
		}
		switch {
		case ctx.Err() != nil:
			return
		case again:
		case err != nil:
			d.p.log.Log(ctx, pause.Level(), "the store's bell could not be heard", "shard", d.shard, "err", err)
			if !pause.Wait(ctx) {
				return
			}
		default:
			pause.Reset()
		}
	}
}

// await waits for the bell once. again says that Listen ended it.
func (d *desk) await(ctx context.Context) (rung store.Wakeup, again bool, err error) {
	ctx, hush := context.WithCancel(ctx)
	defer hush()
	d.p.mu.Lock()
	d.hush = hush
	d.p.mu.Unlock()
	// Whether this process leads is asked after hush is in place: a change from here on is told by Listen.
	rung, err = d.p.opts.Store.Wait(ctx, d.shard, store.WaitOptions{Group: store.GroupPush, Agenda: d.p.opts.Leading(d.shard)})
	return rung, ctx.Err() != nil, err
}

// Listen makes the shard's listener ask anew whether this process leads, which it does otherwise only when the bell has
// rung or some seconds have passed.
func (p *Pool) Listen(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if hush := p.desks[shard].hush; hush != nil {
		hush()
	}
}

// maxBusyLanes bounds the lanes that are in line or in flight.
const maxBusyLanes = 65_536

// crowded reports whether no more lanes are to be taken on.
func (p *Pool) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lanes)-p.idle.order.Len() > maxBusyLanes
}
