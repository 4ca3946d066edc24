package main

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// manySchedules is as many as a namespace may have.
const manySchedules = 1000

// schedules observes processes whose schedules begin in a year beside processes without any.
func schedules(ctx context.Context, b *bench) error {
	begin := time.Now().AddDate(1, 0, 0)
	var all []contestant
	for _, engine := range engines {
		for _, name := range []string{withSchedules(engine), ours(engine)} {
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
			if name == withSchedules(engine) {
				if err := spread(ctx, workers, manySchedules, func(ctx context.Context, i int) error {
					return r.call(ctx, http.MethodPut, fmt.Sprintf("/v1/schedules/idle-%d", i),
						obj{"every": "15m", "starts_at": begin, "job": obj{"url": waitingURL}}, http.StatusOK, nil)
				}); err != nil {
					return err
				}
			}
			all = append(all,
				contestant{name, func(ctx context.Context) (reading, error) { return b.watch(ctx, r, s) }})
		}
	}
	if err := pause(ctx, b.Settle); err != nil {
		return err
	}
	err := b.interleave(ctx, min(b.Rounds, 3), all...)
	text := "idle with " + number(manySchedules) + " schedules, "
	for _, engine := range engines {
		b.fig.compare(text+engine+": processor", withSchedules(engine), ours(engine), percentOfCore, nil)
	}
	b.fig.compare(text+"client calls to Redis a shard", withSchedules(redisEngine),
		ours(redisEngine), callsPerSecond, nil)
	return err
}

func withSchedules(engine string) string { return ours(engine) + ", 1,000 schedules" }
