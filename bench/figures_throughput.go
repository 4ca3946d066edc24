package main

import (
	"context"
	"fmt"
)

// manyLanes is the number of lanes of the figure lanes.
const manyLanes = 1000

func (b *bench) dueAtOnce(engine string) load {
	return load{engine: engine, jobs: b.Jobs, concurrency: workers, lanes: 1}
}

func throughputRedis(ctx context.Context, b *bench) error {
	l := b.dueAtOnce(redisEngine)
	name := ours(redisEngine)
	err := b.interleave(ctx, b.Rounds, b.ringback(name, l, 1), b.asynq(l), b.bare(l))
	text := "deliveries a second, Redis, " + number(float64(l.jobs)) + " due at once"
	b.fig.compare(text, name, bareName, perSecond, atLeast(0.60, 0.80))
	b.fig.compare(text, name, asynqName, perSecond, atLeast(4, 5))
	b.costRows(name, ringbackCost, redisCost, receiverCost)
	b.costRows(bareName, clientCost, receiverCost)
	return err
}

func throughputSQLite(ctx context.Context, b *bench) error {
	l := b.dueAtOnce(sqliteEngine)
	slow := l
	slow.jobs = b.SlowJobs
	name := ours(sqliteEngine)
	err := b.interleave(ctx, b.Rounds,
		b.ringback(name, l, 1), b.river(riverSQLiteName, slow), b.river(riverPGName, l), b.bare(l))
	text := "deliveries a second, SQLite, " + number(float64(l.jobs)) + " due at once"
	b.fig.compare(text, name, bareName, perSecond, atLeast(0.35, 0.55))
	b.fig.compare(fmt.Sprintf("%s (River: %s)", text, number(float64(slow.jobs))), name,
		riverSQLiteName, perSecond, nil)
	b.fig.compare(text, name, riverPGName, perSecond, nil)
	b.costRows(name, ringbackCost, receiverCost)
	return err
}

// defaultLane is the default lane_concurrency.
const defaultLane = 32

// defaultPolicy delivers to one lane with the default policy, and with a lane_concurrency equal to the workers. Each is
// compared with a bare loop with as many requests in flight.
func defaultPolicy(ctx context.Context, b *bench) error {
	l := b.dueAtOnce("")
	few := l
	few.concurrency = defaultLane
	bare, bareFew := b.bare(l), b.bare(few)
	bareFew.name = fmt.Sprintf("%s, %d at a time", bareName, defaultLane)
	var names, tight []string
	var all []contestant
	for _, engine := range engines {
		l.engine, l.policy = engine, obj{}
		all = append(all, b.ringback(ours(engine)+", default policy", l, 1))
		names = append(names, all[len(all)-1].name)
		l.policy = obj{"workers": workers, "lane_concurrency": workers}
		all = append(all, b.ringback(fmt.Sprintf("%s, lane_concurrency %d", ours(engine), workers), l, 1))
		tight = append(tight, all[len(all)-1].name)
	}
	err := b.interleave(ctx, b.Rounds, append(all, bareFew, bare)...)
	for i, engine := range engines {
		b.fig.compare("deliveries a second to one lane, default policy, "+engine, names[i],
			bareFew.name, perSecond, nil)
		b.fig.compare(fmt.Sprintf("the same with %d workers and a lane_concurrency of %d, %s",
			workers, workers, engine),
			tight[i], bareName, perSecond, nil)
	}
	return err
}

// overHTTPS measures throughput over TLS. Ringback and the bare loop both use net/http's client there.
func overHTTPS(ctx context.Context, b *bench) error {
	l := b.dueAtOnce("")
	l.https = true
	var all []contestant
	for _, engine := range engines {
		l.engine = engine
		all = append(all, b.ringback(ours(engine), l, 1))
	}
	err := b.interleave(ctx, b.Rounds, append(all, b.bare(l))...)
	for _, engine := range engines {
		b.fig.compare("deliveries a second over https, "+engine, ours(engine), bareName, perSecond, nil)
	}
	return err
}

// costRows adds rows with the processor time of a delivery in some processes.
func (b *bench) costRows(contestant string, processes ...string) {
	for _, p := range processes {
		b.fig.value("processor time of a delivery, "+contestant+": "+p, contestant, costOf(p), nil)
	}
}

func lanes(ctx context.Context, b *bench) error {
	return b.spreadOver(ctx, manyLanes, atLeast(0.7, 0.9))
}

func tenThousandLanes(ctx context.Context, b *bench) error {
	return b.spreadOver(ctx, 10*manyLanes, atLeast(0.6, 0.8))
}

// spreadOver compares deliveries to n lanes with those to one.
func (b *bench) spreadOver(ctx context.Context, n int, wanted *goal) error {
	var all []contestant
	for _, engine := range engines {
		one := b.dueAtOnce(engine)
		many := one
		many.lanes = n
		all = append(all, b.ringback(fmt.Sprintf("%s, %s lanes", ours(engine), number(float64(n))), many, 1),
			b.ringback(ours(engine)+", one lane", one, 1))
	}
	one, many := b.dueAtOnce(""), b.dueAtOnce("")
	many.lanes = n
	bare, bareMany := b.bare(one), b.bare(many)
	bareMany.name = fmt.Sprintf("%s, %s lanes", bareName, number(float64(n)))
	err := b.interleave(ctx, b.Rounds, append(all, bareMany, bare)...)
	b.fig.compare("the same without a queue", bareMany.name, bareName, perSecond, nil)
	for i, engine := range engines {
		b.fig.compare(fmt.Sprintf("the same spread over %s lanes, %s", number(float64(n)), engine),
			all[2*i].name, all[2*i+1].name, perSecond, wanted)
	}
	return err
}

// processes compares processes on the same cores, each with 64 workers, over 100 lanes.
func processes(ctx context.Context, b *bench) error {
	l := b.dueAtOnce(redisEngine)
	l.lanes = 100
	four, one := "Ringback, 4 processes", "Ringback, 1 process"
	err := b.interleave(ctx, b.Rounds, b.ringback(four, l, 4), b.ringback(one, l, 1))
	b.fig.compare("four processes on one Redis, same cores", four, one, perSecond, atLeast(0.9, 1))
	return err
}

// concurrency measures the curves of a plot, with one run at each level.
func concurrency(ctx context.Context, b *bench) error {
	points := make(map[string]*curve)
	var order []string
	for _, level := range b.Levels {
		l := load{jobs: b.LevelJobs, concurrency: level, lanes: 1}
		var all []contestant
		for _, engine := range engines {
			l.engine = engine
			all = append(all, b.ringback(ours(engine), l, 1))
		}
		for _, c := range append(all, b.asynq(l), b.bare(l)) {
			got, err := c.run(ctx)
			if err != nil {
				return fmt.Errorf("%s at %d: %w", c.name, level, err)
			}
			if points[c.name] == nil {
				points[c.name] = &curve{Name: c.name}
				order = append(order, c.name)
			}
			points[c.name].X = append(points[c.name].X, float64(level))
			points[c.name].Y = append(points[c.name].Y, got[perSecond])
			b.say("  %d at a time  %-20s %s", level, c.name, got)
		}
	}
	for _, name := range order {
		b.fig.Curves = append(b.fig.Curves, *points[name])
	}
	return nil
}
