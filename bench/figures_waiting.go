package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"time"
)

const (
	bytesPerJob  = "B"
	megabytes    = "MB"
	freshMB      = "MB fresh"
	milliseconds = "ms"
	lmstfyName   = "lmstfy's layout"
	programName  = "Ringback, the program"
)

// memoryOfJobs fills a Redis for each contestant, once, since the memory hardly varies.
func memoryOfJobs(ctx context.Context, b *bench) error {
	fills := map[string]func(context.Context) (filled, error){
		ours(redisEngine): func(ctx context.Context) (filled, error) {
			m, err := b.million(ctx, redisEngine)
			if err != nil {
				return filled{}, err
			}
			return m.memory, nil
		},
		asynqName: b.asynqMemory, lmstfyName: b.lmstfyMemory,
	}
	var all []contestant
	for _, name := range []string{ours(redisEngine), asynqName, lmstfyName} {
		all = append(all, contestant{name, func(ctx context.Context) (reading, error) {
			f, err := fills[name](ctx)
			if err == nil {
				b.fig.Curves = append(b.fig.Curves, f.steps)
			}
			return reading{bytesPerJob: f.perJob}, err
		}})
	}
	err := b.interleave(ctx, 1, all...)
	text := "Redis memory a pending job at " + number(float64(b.Pending)) + " (36 B URL, 64 B body)"
	b.fig.value(text, ours(redisEngine), bytesPerJob, atMost(330, 265))
	b.fig.compare(text, ours(redisEngine), asynqName, bytesPerJob, atMost(0.52, 0.52))
	b.fig.compare(text, ours(redisEngine), lmstfyName, bytesPerJob, atMost(0.80, 0.80))
	return err
}

// residentMemory measures the process that registered the jobs.
func residentMemory(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			m, err := b.million(ctx, engine)
			if err != nil {
				return nil, err
			}
			if err := pause(ctx, b.Settle); err != nil {
				return nil, err
			}
			mb, err := m.r.rss()
			return reading{megabytes: mb}, err
		}})
	}
	err := b.interleave(ctx, 1, all...)
	for _, engine := range engines {
		b.fig.value(fmt.Sprintf("process RSS with %s pending jobs, %s", number(float64(b.Pending)), engine),
			ours(engine), megabytes, atMost(150, 80))
	}
	return err
}

// beside delivers from a store with many waiting jobs and from an empty one. Both processes run through all rounds.
func beside(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		m, err := b.million(ctx, engine)
		if err != nil {
			return err
		}
		empty, end, err := b.openedRingback(ctx, engine)
		if err != nil {
			return err
		}
		defer end()
		for _, c := range []struct {
			name string
			r    *ringback
		}{{ours(engine) + ", others wait", m.r}, {ours(engine) + ", empty store", empty}} {
			all = append(all, contestant{c.name, func(ctx context.Context) (reading, error) {
				return b.deliver(ctx, c.r, fmt.Sprintf("beside-%d", b.serial()), b.dueAtOnce(engine), nil)
			}})
		}
	}
	err := b.interleave(ctx, b.Rounds, all...)
	for i, engine := range engines {
		b.fig.compare(fmt.Sprintf("deliveries a second while %s other jobs wait, %s",
			number(float64(b.Pending)), engine),
			all[2*i].name, all[2*i+1].name, perSecond, atLeast(0.9, 0.98))
	}
	return err
}

// pages reads lists of 50 jobs, and registers jobs at a pace, while many others wait.
func pages(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		m, err := b.million(ctx, engine)
		if err != nil {
			return err
		}
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			return b.pageReading(ctx, m.r)
		}})
	}
	err := b.interleave(ctx, b.Rounds, all...)
	for _, engine := range engines {
		text := fmt.Sprintf("while %s jobs wait, %s: ", number(float64(b.Pending)), engine)
		b.fig.value(text+"the slowest of ten lists of 50 jobs", ours(engine), milliseconds, atMost(100, 20))
		b.fig.value(text+fmt.Sprintf("lateness at %d jobs a second", lateRate), ours(engine), p99, atMost(15, 5))
	}
	return err
}

func (b *bench) pageReading(ctx context.Context, r *ringback) (reading, error) {
	var slowest time.Duration
	next := ""
	for range 10 {
		var page struct{ Next string }
		began := time.Now()
		if err := r.call(ctx, http.MethodGet, "/v1/jobs?topic=wait&state=scheduled&limit=50"+next, nil, http.StatusOK,
			&page); err != nil {
			return nil, err
		}
		slowest = max(slowest, time.Since(began))
		next = "&cursor=" + url.QueryEscape(page.Next)
	}
	late, err := b.lateOn(ctx, r)
	if err != nil {
		return nil, err
	}
	slices.Sort(late)
	return reading{milliseconds: float64(slowest.Microseconds()) / 1000, p99: quantile(late, 0.99)}, nil
}

// starts stops the processes and starts them again on the waiting jobs.
func starts(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range []string{sqliteEngine, redisEngine} {
		m, err := b.million(ctx, engine)
		if err != nil {
			return err
		}
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			m.r.end()
			r, err := b.onMany(ctx, m.store)
			if err != nil {
				return nil, err
			}
			m.r = r
			if err := pause(ctx, b.Settle/5); err != nil {
				return nil, err
			}
			mb, err := r.rss()
			return reading{milliseconds: float64(r.took.Microseconds()) / 1000, freshMB: mb}, err
		}})
	}
	err := b.interleave(ctx, b.Rounds, all...)
	pending := number(float64(b.Pending))
	b.fig.value("start with "+pending+" pending in SQLite", ours(sqliteEngine), milliseconds, atMost(1000, 300))
	b.fig.value("start with "+pending+" pending in Redis", ours(redisEngine), milliseconds, nil)
	for _, engine := range engines {
		b.fig.value("process RSS with "+pending+" pending jobs, freshly started, "+engine, ours(engine),
			freshMB, atMost(150, 80))
	}
	info, statErr := os.Stat(b.program)
	if statErr != nil {
		return fmt.Errorf("measure the program: %w", statErr)
	}
	b.fig.add(programName, reading{megabytes: float64(info.Size()) / 1e6})
	b.fig.value("binary size", programName, megabytes, atMost(40, 25))
	return err
}

// pause waits for d, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
