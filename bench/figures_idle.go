package main

import (
	"context"
	"fmt"
	"time"
)

const (
	percentOfCore  = "% of a core"
	callsPerSecond = "calls/s"
)

// idle observes a process that has only jobs for later, in many topics. Redis counts its calls as reads of connections:
// a pipeline is one call, and commands of scripts are not counted.
func idle(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		s, err := b.newStore(ctx, engine)
		if err != nil {
			return err
		}
		defer s.end()
		r, err := b.startRingback(ctx, s)
		if err != nil {
			return err
		}
		defer r.kill()
		if err := r.fill(ctx, b.Future, func(to []byte, i int) []byte {
			return fmt.Appendf(to, `{"topic":"idle-%d","url":%q,"body":%s,"delay":%d}`,
				i%b.Topics, waitingURL, waitingBody, 3600+i%3600)
		}); err != nil {
			return err
		}
		all = append(all,
			contestant{ours(engine), func(ctx context.Context) (reading, error) { return b.watch(ctx, r, s) }})
	}
	if err := pause(ctx, b.Settle); err != nil {
		return err
	}
	err := b.interleave(ctx, min(b.Rounds, 3), all...)
	text := fmt.Sprintf("idle with %s topics and %s future jobs, ", number(float64(b.Topics)),
		number(float64(b.Future)))
	for _, engine := range engines {
		b.fig.value(text+engine+": processor", ours(engine), percentOfCore, atMost(1, 0.3))
	}
	b.fig.value(text+"client calls to Redis a shard", ours(redisEngine), callsPerSecond, atMost(5, 1.5))
	return err
}

// watch observes a process for b.Watch.
func (b *bench) watch(ctx context.Context, r *ringback, s *store) (reading, error) {
	reads := func() (float64, error) {
		if s.redis == nil {
			return 0, nil
		}
		return s.redis.info(ctx, "stats", "total_reads_processed")
	}
	calls, err := reads()
	if err != nil {
		return nil, err
	}
	used, err := r.cpu()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	if err := pause(ctx, b.Watch); err != nil {
		return nil, err
	}
	usedNow, err := r.cpu()
	if err != nil {
		return nil, err
	}
	took := time.Since(began).Seconds()
	callsNow, err := reads()
	if err != nil {
		return nil, err
	}
	got := reading{percentOfCore: 100 * (usedNow - used).Seconds() / took}
	if s.redis != nil {
		got[callsPerSecond] = max(0, callsNow-calls-1) / took // without the call by this program
	}
	return got, nil
}
