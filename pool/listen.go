package pool

import (
	"context"

	"github.com/ringback/ringback/store"
)

// listen waits for the shard's bell until ctx ends, whether or not there is room: what is due later may be of a topic that
// has some, and what cannot be served is handed back. Only when very many lanes stand in line, tokens are left where
// they are for a while.
func (s *shardLoop) listen(ctx context.Context) {
	var pause store.Backoff
	for {
		if s.p.tooManyLanes() {
			pause.Reset()
			if !pause.Wait(ctx) {
				return
			}
			continue
		}
		rung, again, err := s.waitOnce(ctx)
		if rung.AgendaMoved {
			s.p.opts.OnAgendaMoved(s.shard)
		}
		if len(rung.Queues) > 0 {
			s.markRunnable(rung.Queues)
		}
		switch {
		case ctx.Err() != nil:
			return
		case again:
		case err != nil:
			s.p.log.Log(ctx, pause.Level(), "waiting for due queues failed, retrying", "shard", s.shard, "err", err)
			if !pause.Wait(ctx) {
				return
			}
		default:
			pause.Reset()
		}
	}
}

// waitOnce waits for the bell once. again says that Listen ended it.
func (s *shardLoop) waitOnce(ctx context.Context) (rung store.Wakeup, again bool, err error) {
	ctx, hush := context.WithCancel(ctx)
	defer hush()
	s.p.mu.Lock()
	s.interruptWait = hush
	s.p.mu.Unlock()
	// Whether this process leads is asked after hush is in place: a change from here on is told by Listen.
	rung, err = s.store.Wait(ctx, store.WaitOptions{Group: store.GroupPush, Agenda: s.p.opts.IsLeader(s.shard)})
	return rung, ctx.Err() != nil, err
}

// LeadershipChanged makes the shard's listener ask anew whether this process leads, which it does otherwise only when the bell has
// rung or some seconds have passed.
func (p *Pool) LeadershipChanged(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if hush := p.shards[shard].interruptWait; hush != nil {
		hush()
	}
}

// maxBusyLanes bounds the lanes that are in line or in flight.
const maxBusyLanes = 65_536

// tooManyLanes reports whether no more lanes are to be taken on.
func (p *Pool) tooManyLanes() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lanes)-p.idleLanes.order.Len() > maxBusyLanes
}
