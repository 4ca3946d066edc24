package main

import (
	"context"
	"time"
)

const registeredPerSecond = "/s registered"

// handlers registers and handles jobs in programs whose handlers only count.
func handlers(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		all = append(all, b.handle(ours(engine), b.Jobs, func(ctx context.Context, o order) (*peer, func(), error) {
			s, err := b.newStore(ctx, engine)
			if err != nil {
				return nil, nil, err
			}
			o.Store = s.url
			return b.opened(ctx, "library", o, s.end)
		}))
	}
	all = append(all, b.handle(asynqName, b.Jobs, b.openedAsynq))
	for _, name := range []string{riverSQLiteName, riverPGName} {
		jobs := b.Jobs
		if name == riverSQLiteName {
			jobs = b.SlowJobs
		}
		all = append(all, b.handle(name, jobs, func(ctx context.Context, o order) (*peer, func(), error) {
			return b.openedRiver(ctx, name, o)
		}))
	}
	err := b.interleave(ctx, b.Rounds, all...)
	for _, measure := range []string{perSecond, registeredPerSecond} {
		text := "jobs handled in a Go program, "
		if measure == registeredPerSecond {
			text = "the same jobs, when they are registered, "
		}
		b.fig.compare(text+redisEngine, ours(redisEngine), asynqName, measure, nil)
		b.fig.compare(text+sqliteEngine, ours(sqliteEngine), riverSQLiteName, measure, nil)
		b.fig.compare(text+sqliteEngine, ours(sqliteEngine), riverPGName, measure, nil)
	}
	return err
}

// handle is a contestant that registers jobs, and then handles them.
func (b *bench) handle(name string, jobs int, open func(context.Context, order) (*peer, func(), error)) contestant {
	return contestant{name, func(ctx context.Context) (reading, error) {
		p, end, err := open(ctx, order{Jobs: jobs, Concurrency: workers})
		if err != nil {
			return nil, err
		}
		defer end()
		got := make(reading)
		for _, step := range []struct{ do, measure string }{{"fill", registeredPerSecond}, {"start", perSecond}} {
			began := time.Now()
			if _, err := p.ask(ctx, order{Do: step.do, Jobs: jobs, Concurrency: workers, Tuned: true}); err != nil {
				return nil, err
			}
			got[step.measure] = float64(jobs) / time.Since(began).Seconds()
		}
		return got, nil
	}}
}
