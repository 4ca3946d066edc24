package main

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"time"
)

const (
	bareName        = "bare loop"
	asynqName       = "asynq"
	riverSQLiteName = "River, SQLite"
	riverPGName     = "River, PostgreSQL"

	perSecond = "/s"
	// arriveSeconds bounds the wait for the last of many jobs.
	arriveSeconds = 300
)

// A load is a number of jobs that are due at once, with the settings of their delivery.
type load struct {
	engine      string
	jobs        int
	concurrency int
	lanes       int
	https       bool
	// policy is the policy of Ringback's topic; nil: concurrency workers and a lane_concurrency of
	// laneLimit(concurrency).
	policy obj
}

// sinkOf returns the receiver's URL for a load.
func (b *bench) sinkOf(l load) string {
	if l.https {
		return b.secureSink
	}
	return b.sink
}

// topicPolicy returns the policy of Ringback's topic.
func (l load) topicPolicy() obj {
	if l.policy != nil {
		return l.policy
	}
	return obj{"workers": l.concurrency, "lane_concurrency": laneLimit(l.concurrency)}
}

// expect resets the receiver's counts.
func (b *bench) expect(ctx context.Context, jobs int, late bool) error {
	_, err := b.receiver.ask(ctx, order{Do: "expect", Jobs: jobs, Late: late})
	return err
}

// rate measures the time from the call of release until the last expected job has arrived.
func (b *bench) rate(ctx context.Context, jobs int, release func(context.Context) error) (reading, error) {
	if err := b.expect(ctx, jobs, false); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := release(ctx); err != nil {
		return nil, err
	}
	last, err := b.receiver.ask(ctx, order{Do: "wait", Seconds: arriveSeconds})
	if err != nil {
		return nil, err
	}
	return reading{perSecond: float64(jobs) / time.Unix(0, last.Last).Sub(began).Seconds()}, nil
}

// ringback is a contestant that delivers a load from an empty store with a number of processes.
func (b *bench) ringback(name string, l load, processes int) contestant {
	return contestant{name, func(ctx context.Context) (reading, error) {
		s, err := b.newStore(ctx, l.engine)
		if err != nil {
			return nil, err
		}
		defer s.end()
		var first *ringback
		for range processes {
			r, err := b.startRingback(ctx, s)
			if err != nil {
				return nil, err
			}
			defer r.kill()
			if first == nil {
				first = r
			}
		}
		watched := make(map[string]*process)
		if processes == 1 {
			watched[ringbackCost], watched[receiverCost] = first.process, b.receiver.process
			if s.redis != nil {
				watched[redisCost] = s.redis.process
			}
		}
		return b.deliver(ctx, first, "bench", l, watched)
	}}
}

// laneLimit returns a lane_concurrency for a number of workers that is too high to limit them.
func laneLimit(concurrency int) int { return 8 * concurrency }

// deliver registers a load in a paused topic and resumes it. Each job must arrive once, signed, and be recorded. It
// also returns the processor time of some processes.
func (b *bench) deliver(
	ctx context.Context, r *ringback, topic string, l load, watched map[string]*process,
) (reading, error) {
	if err := r.topic(ctx, topic, l.topicPolicy()); err != nil {
		return nil, err
	}
	if err := r.call(ctx, http.MethodPost, "/v1/topics/"+topic+"/pause", nil, http.StatusOK, nil); err != nil {
		return nil, err
	}
	text := string(body(time.Now()))
	if err := r.fill(ctx, l.jobs, func(to []byte, i int) []byte {
		return fmt.Appendf(to, `{"topic":%q,"lane":"lane-%d","url":%q,"body":%s}`, topic, i%l.lanes, b.sinkOf(l), text)
	}); err != nil {
		return nil, err
	}
	got, err := costs(l.jobs, watched, func() (reading, error) {
		got, err := b.rate(ctx, l.jobs, func(ctx context.Context) error {
			return r.call(ctx, http.MethodPost, "/v1/topics/"+topic+"/resume", nil, http.StatusOK, nil)
		})
		if err != nil {
			return nil, err
		}
		return got, r.delivered(ctx, topic, l.jobs)
	})
	if err != nil {
		return nil, err
	}
	came, err := b.receiver.ask(ctx, order{Do: "count"})
	if err == nil && (came.Count != int64(l.jobs) || came.Signed != came.Count) {
		err = fmt.Errorf("%d requests came of %d jobs, %d of them signed", came.Count, l.jobs, came.Signed)
	}
	return got, err
}

// bare is the contestant without a queue.
func (b *bench) bare(l load) contestant {
	return contestant{bareName, func(ctx context.Context) (reading, error) {
		p, err := b.again(ctx, "bare")
		if err != nil {
			return nil, err
		}
		defer p.end()
		return costs(l.jobs, map[string]*process{
			clientCost:   p.process,
			receiverCost: b.receiver.process,
		}, func() (reading, error) {
			return b.rate(ctx, l.jobs, func(ctx context.Context) error {
				_, err := p.ask(ctx, order{
					Do: "start", Jobs: l.jobs, Concurrency: l.concurrency, Lanes: l.lanes, URL: b.sinkOf(l),
				})
				return err
			})
		})
	}}
}

// asynq is the contestant on Redis.
func (b *bench) asynq(l load) contestant {
	return contestant{asynqName, func(ctx context.Context) (reading, error) {
		p, end, err := b.openedAsynq(ctx, order{Concurrency: workers})
		if err != nil {
			return nil, err
		}
		defer end()
		if _, err := p.ask(ctx, order{Do: "fill", Jobs: l.jobs, Concurrency: workers}); err != nil {
			return nil, err
		}
		return b.rate(ctx, l.jobs, func(ctx context.Context) error {
			_, err := p.ask(ctx, order{Do: "start", Concurrency: l.concurrency, URL: b.sink, Tuned: true})
			return err
		})
	}}
}

// river is the contestant on SQLite, or on PostgreSQL.
func (b *bench) river(name string, l load) contestant {
	return contestant{name, func(ctx context.Context) (reading, error) {
		p, end, err := b.openedRiver(ctx, name, order{Concurrency: l.concurrency, URL: b.sink})
		if err != nil {
			return nil, err
		}
		defer end()
		if _, err := p.ask(ctx, order{Do: "fill", Jobs: l.jobs}); err != nil {
			return nil, err
		}
		return b.rate(ctx, l.jobs, func(ctx context.Context) error {
			_, err := p.ask(ctx, order{Do: "start"})
			return err
		})
	}}
}

// openedAsynq starts asynq on a new Redis, and returns a function that ends both.
func (b *bench) openedAsynq(ctx context.Context, o order) (*peer, func(), error) {
	s, err := b.startRedis(ctx)
	if err != nil {
		return nil, nil, err
	}
	o.Store = s.addr
	return b.opened(ctx, "asynq", o, s.end)
}

// openedRiver starts River on a new store, and returns a function that ends both.
func (b *bench) openedRiver(ctx context.Context, name string, o order) (*peer, func(), error) {
	switch name {
	case riverSQLiteName:
		dir, err := b.folder("river")
		if err != nil {
			return nil, nil, err
		}
		o.Store = filepath.Join(dir, "river.db")
		return b.opened(ctx, "river", o, func() { remove(dir) })
	case riverPGName:
		server, err := b.postgresServer(ctx)
		if err != nil {
			return nil, nil, err
		}
		url, drop, err := server.database(ctx)
		if err != nil {
			return nil, nil, err
		}
		o.Store = url
		return b.opened(ctx, "river", o, drop)
	}
	return nil, nil, fmt.Errorf("no River is called %q", name)
}

// opened starts a peer on the store o.Store, and returns a function that ends it and drops the store.
func (b *bench) opened(ctx context.Context, role string, o order, drop func()) (*peer, func(), error) {
	p, err := b.again(ctx, role)
	if err != nil {
		drop()
		return nil, nil, err
	}
	end := func() {
		p.end()
		drop()
	}
	o.Do = "open"
	if _, err := p.ask(ctx, o); err != nil {
		end()
		return nil, nil, err
	}
	return p, end, nil
}
