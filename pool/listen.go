package pool

import (
	"context"

	"github.com/ringback/ringback/store"
)

// listen waits for wake-ups of the shard until ctx ends, also without free workers: a later queue may belong to a topic
// with free workers, and queues that cannot be served are requeued. It pauses only when very many lanes are queued.
func (s *shardLoop) listen(ctx context.Context) {
	var pause store.Backoff
	for {
		if s.p.crowded() {
			pause.Reset()
			if !pause.Wait(ctx) {
				return
			}
			continue
		}
		wakeup, interrupted, err := s.waitOnce(ctx)
		if wakeup.AgendaMoved {
			s.p.opts.OnAgendaMoved(s.shard)
		}
		if len(wakeup.Queues) > 0 {
			s.markRunnable(wakeup.Queues)
		}
		switch {
		case ctx.Err() != nil:
			return
		case interrupted:
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

// waitOnce waits for one wake-up. interrupted reports that LeadershipChanged ended the wait.
func (s *shardLoop) waitOnce(ctx context.Context) (wakeup store.Wakeup, interrupted bool, err error) {
	ctx, interrupt := context.WithCancel(ctx)
	defer interrupt()
	s.p.mu.Lock()
	s.interruptWait = interrupt
	s.p.mu.Unlock()
	// IsLeader is read after interruptWait is set: a later change interrupts the wait.
	wakeup, err = s.store.Wait(ctx, store.WaitOptions{Group: store.GroupPush, Agenda: s.p.opts.IsLeader(s.shard)})
	return wakeup, ctx.Err() != nil, err
}

// LeadershipChanged makes the shard's listener read Options.IsLeader again, which it does otherwise only after a wake-up or
// some seconds.
func (p *Pool) LeadershipChanged(shard int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if interrupt := p.shards[shard].interruptWait; interrupt != nil {
		interrupt()
	}
}

// crowded reports whether too many lanes are queued.
func (p *Pool) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.sched.Crowded()
}
