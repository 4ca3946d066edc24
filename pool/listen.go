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
		queues, err := s.store.Wait(ctx, store.WaitOptions{Groups: s.p.groups})
		if len(queues) > 0 {
			s.markRunnable(queues)
		}
		switch {
		case ctx.Err() != nil:
			return
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

// crowded reports whether too many lanes are queued.
func (p *Pool) crowded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.scheduler.Crowded()
}
