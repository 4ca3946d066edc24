package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"
)

const (
	lateRate = 500 // registrations a second

	asynqTunedName   = "asynq, looks every 10 ms"
	asynqDefaultName = "asynq, defaults"

	p50, p99, earliest, latest = "ms p50", "ms p99", "ms at the earliest", "ms at the latest"
)

// lateness registers jobs at a pace, each due at a random millisecond, and measures how late they arrive.
func lateness(ctx context.Context, b *bench) error {
	all := make(map[string][]float64)
	late := func(name string, run func(context.Context) ([]float64, error)) contestant {
		return contestant{name, func(ctx context.Context) (reading, error) {
			values, err := run(ctx)
			if err != nil {
				return nil, err
			}
			all[name] = append(all[name], values...)
			slices.Sort(values)
			return reading{
				p50: quantile(values, 0.5), p99: quantile(values, 0.99),
				earliest: values[0], latest: values[len(values)-1],
			}, nil
		}}
	}
	contestants := []contestant{
		late(ours(redisEngine), b.lateRingback(redisEngine)), late(ours(sqliteEngine), b.lateRingback(sqliteEngine)),
		late(asynqTunedName, b.lateAsynq(true)), late(asynqDefaultName, b.lateAsynq(false)),
	}
	err := b.interleave(ctx, b.Rounds, contestants...)
	for _, c := range contestants {
		if len(all[c.name]) > 0 {
			b.fig.Curves = append(b.fig.Curves, distribution(c.name, all[c.name]))
		}
	}
	for _, engine := range engines {
		text := fmt.Sprintf("lateness at %d jobs a second, %s: ", lateRate, engine)
		b.fig.value(text+"p99", ours(engine), p99, atMost(10, 3))
		b.fig.value(text+"none early", ours(engine), earliest, atLeast(0, 0))
		b.fig.compare(text+"p50", ours(engine), asynqDefaultName, p50, nil)
		b.fig.compare(text+"p99", ours(engine), asynqDefaultName, p99, nil)
		b.fig.compare(text+"p99", ours(engine), asynqTunedName, p99, nil)
	}
	b.fig.compare("the earliest arrival, where asynq looks often: it keeps due moments in whole seconds",
		ours(redisEngine), asynqTunedName, earliest, nil)
	return err
}

// distribution returns the distribution of values as a curve of 200 quantiles.
func distribution(name string, values []float64) curve {
	const points = 200
	c := curve{Name: name}
	slices.Sort(values)
	for i := range points + 1 {
		share := float64(i) / points
		c.X, c.Y = append(c.X, quantile(values, share)), append(c.Y, share)
	}
	return c
}

// late calls register and returns the lateness of each of its jobs in ms.
func (b *bench) late(ctx context.Context, register func(context.Context) error) ([]float64, error) {
	if err := b.expect(ctx, lateRate*b.LateSeconds, true); err != nil {
		return nil, err
	}
	if err := register(ctx); err != nil {
		return nil, err
	}
	a, err := b.receiver.ask(ctx, order{Do: "wait", Seconds: arriveSeconds})
	return a.Late, err
}

func (b *bench) lateRingback(engine string) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		r, end, err := b.openedRingback(ctx, engine)
		if err != nil {
			return nil, err
		}
		defer end()
		return b.lateOn(ctx, r)
	}
}

// lateOn returns the lateness of jobs that are registered at a pace, in ms.
func (b *bench) lateOn(ctx context.Context, r *ringback) ([]float64, error) {
	if err := r.topic(ctx, "late", obj{"workers": workers, "lane_concurrency": laneLimit(workers)}); err != nil {
		return nil, err
	}
	return b.late(ctx, func(ctx context.Context) error {
		return pace(ctx, lateRate, lateRate*b.LateSeconds, func(ctx context.Context, due time.Time) error {
			job := fmt.Appendf(nil, `{"topic":"late","url":%q,"run_at":%q,"body":%s}`,
				b.sink, due.UTC().Format("2006-01-02T15:04:05.000Z07:00"), body(due))
			return r.call(ctx, http.MethodPost, "/v1/jobs", job, http.StatusCreated, nil)
		})
	})
}

func (b *bench) lateAsynq(tuned bool) func(context.Context) ([]float64, error) {
	return func(ctx context.Context) ([]float64, error) {
		p, end, err := b.openedAsynq(ctx, order{Concurrency: workers})
		if err != nil {
			return nil, err
		}
		defer end()
		o := order{Do: "start", Concurrency: workers, URL: b.sink, Tuned: tuned}
		if _, err := p.ask(ctx, o); err != nil {
			return nil, err
		}
		return b.late(ctx, func(ctx context.Context) error {
			_, err := p.ask(ctx, order{Do: "pace", Rate: lateRate, Seconds: b.LateSeconds})
			return err
		})
	}
}
