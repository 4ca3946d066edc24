package pool

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// handBack rings for other processes what is hot here and cannot be served: 10 ms after it stood in line in vain, then
// at intervals that double to 250 ms, a bounded number each time.
type handBack struct {
	*alarm

	d     *desk
	wait  time.Duration
	away  store.Backoff // while the store does not take what is handed back
	until time.Time     // nothing is handed back before
}

const (
	handBackFirst = 10 * time.Millisecond
	handBackMost  = 250 * time.Millisecond
	handBackMany  = 128
)

func newHandBack(d *desk) *handBack { return &handBack{alarm: newAlarm(), d: d} }

// arm sets the alarm, or takes it back, by whether anything stands in line after a trip found no room for it.
func (b *handBack) arm() {
	b.d.p.mu.Lock()
	parked := b.d.rota.parked() && !b.d.p.stopping
	b.d.p.mu.Unlock()
	switch {
	case !parked:
		b.wait = 0
		b.keep(false, 0)
	case !b.set:
		b.wait = min(max(2*b.wait, handBackFirst), handBackMost)
		b.keep(true, max(b.wait, time.Until(b.until)))
	}
}

// ring hands back some of what stands in line; it stays hot here.
func (b *handBack) ring(ctx context.Context) {
	b.set = false
	b.d.p.mu.Lock()
	var queues []job.Queue
	for _, l := range b.d.rota.some(handBackMany) {
		queues = append(queues, l.queue)
	}
	b.d.p.mu.Unlock()
	b.send(ctx, queues)
}

// all hands everything hot back, for good.
func (b *handBack) all(ctx context.Context) {
	b.d.p.mu.Lock()
	var queues []job.Queue
	for _, l := range b.d.p.lanes {
		if l.desk == b.d && l.hot {
			queues = append(queues, l.queue)
		}
	}
	b.d.p.mu.Unlock()
	for len(queues) > 0 {
		n := min(len(queues), store.MaxBatch)
		b.send(ctx, queues[:n])
		queues = queues[n:]
	}
}

// send rings; what fails is rung by the carrier within a second.
func (b *handBack) send(ctx context.Context, queues []job.Queue) {
	if len(queues) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, tripTimeout)
	defer cancel()
	err := b.d.p.opts.Store.Notify(ctx, b.d.shard, queues)
	if err == nil {
		b.away.Reset()
		return
	}
	b.d.p.log.Log(ctx, b.away.Level(), "queues could not be handed to other processes", "shard", b.d.shard, "queues", len(queues), "err", err)
	b.until = time.Now().Add(b.away.Next())
}
