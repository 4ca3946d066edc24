package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"
)

const (
	// soakTopic has manyLanes lanes, each tenth of which goes to a receiver that answers 500.
	soakTopic  = "soak"
	failsOfTen = 1

	soakEvery   = 100 * time.Millisecond // between two batches of registrations
	soakWindows = 30                     // of the figure: values of one window each
	soakTries   = `["1s","3s"]`          // of the ladder, so that jobs of failing lanes die while the load lasts

	goroutines  = "goroutines"
	descriptors = "descriptors"
)

// burstShare is the part of the rate of a backlog that the soak has, half of what is sustained: jobs that are due one
// by one, each alone in its lane, cost up to four times as much as those of a backlog. On SQLite each also costs the
// removal of an older one, once as many are kept as retention allows.
var burstShare = map[string]float64{redisEngine: 8, sqliteEngine: 16}

// soakOn delivers to many lanes, of which a tenth fails, and looks each minute whether memory, goroutines and
// descriptors grow and whether good lanes are late.
func soakOn(engine string) func(context.Context, *bench) error {
	return func(ctx context.Context, b *bench) error {
		l := b.dueAtOnce(engine)
		l.lanes = manyLanes
		most, err := b.ringback(ours(engine), l, 1).run(ctx)
		if err != nil {
			return err
		}
		return b.soakEngine(ctx, engine, most[perSecond]/burstShare[engine])
	}
}

func (b *bench) soakEngine(ctx context.Context, engine string, rate float64) error {
	r, end, err := b.openedRingback(ctx, engine)
	if err != nil {
		return err
	}
	defer end()
	if err := r.topic(ctx, soakTopic, obj{}); err != nil {
		return err
	}
	if _, err := b.receiver.ask(ctx, order{Do: "expect", Late: true}); err != nil {
		return err
	}
	b.say("  %s: %.0f jobs a second for %s", engine, rate, b.Soak)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	sent := make(chan sending, 1)
	go func() { sent <- b.soakSend(ctx, r, rate) }()
	name := ours(engine)
	var all []reading
	for range soakWindows {
		if err := pause(ctx, b.Soak/soakWindows); err != nil {
			return err
		}
		got, err := b.soakReading(ctx, r)
		if err != nil {
			return err
		}
		all = append(all, got)
		b.fig.add(name, got)
		b.say("  %-34s %s", name, got)
	}
	b.fig.add(name, growth(all))
	done := <-sent
	if done.err != nil {
		return done.err
	}
	if err := b.soakLedger(ctx, r, done); err != nil {
		return err
	}
	text := fmt.Sprintf("%s at %.0f jobs a second over %s lanes, a tenth of which fails, %s: ",
		b.Soak, rate, number(manyLanes), engine)
	b.fig.value(text+"lateness of good lanes by window", name, p99, atMost(50, 20))
	for _, measure := range []string{megabytes, goroutines, descriptors} {
		b.fig.value(text+measure+" by window", name, measure, nil)
		b.fig.value(text+measure+", the last third ÷ the second", name, growthOf(measure), atMost(1.1, 1.02))
	}
	return nil
}

// growthOf names the growth of a measure.
func growthOf(measure string) string { return "× " + measure }

// growth returns how much more of each measure the last third of the readings has than the third before.
func growth(all []reading) reading {
	third := len(all) / 3
	got := make(reading)
	for _, measure := range []string{megabytes, goroutines, descriptors} {
		var second, last float64
		for i := range third {
			second += all[third+i][measure]
			last += all[2*third+i][measure]
		}
		got[growthOf(measure)] = last / second
	}
	return got
}

// sending is what was registered.
type sending struct {
	good, bad int
	err       error
}

// soakSend registers jobs in small batches that are due within the next second, for the duration of the soak.
func (b *bench) soakSend(ctx context.Context, r *ringback, rate float64) (s sending) {
	each := int(rate * soakEvery.Seconds())
	began := time.Now()
	for i := 0; time.Since(began) < b.Soak; i++ {
		if s.err = pause(ctx, time.Until(began.Add(time.Duration(i)*soakEvery))); s.err != nil {
			return s
		}
		due := time.Now().Add(time.Second).Truncate(time.Millisecond)
		from := i * each
		if s.err = r.batch(ctx, batchText(from, from+each, func(to []byte, k int) []byte {
			at := due.Add(time.Duration(k-from) * soakEvery / time.Duration(each)).Truncate(time.Millisecond)
			lane, path := k%manyLanes, ""
			if lane%10 < failsOfTen {
				path = failing
				s.bad++
			} else {
				s.good++
			}
			return fmt.Appendf(to,
				`{"topic":%q,"lane":"lane-%d","url":%q,"run_at":%q,"ladder":%s,"expires_in":60,"body":%s}`,
				soakTopic, lane, b.sink+path, at.UTC().Format("2006-01-02T15:04:05.000Z07:00"), soakTries, body(at))
		})); s.err != nil {
			return s
		}
	}
	return s
}

var goroutineCount = regexp.MustCompile(`(?m)^go_goroutines (\S+)$`)

// soakReading reads what must not grow, and the lateness of what came since the last reading.
func (b *bench) soakReading(ctx context.Context, r *ringback) (reading, error) {
	came, err := b.receiver.ask(ctx, order{Do: "take"})
	if err != nil {
		return nil, err
	}
	if len(came.Late) == 0 {
		return nil, fmt.Errorf("nothing came for %s", b.Soak/soakWindows)
	}
	slices.Sort(came.Late)
	mb, err := r.rss()
	if err != nil {
		return nil, err
	}
	files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", r.pid()))
	if err != nil {
		return nil, fmt.Errorf("count descriptors: %w", err)
	}
	var text []byte
	if err := r.call(ctx, http.MethodGet, "/metrics", nil, http.StatusOK, &text); err != nil {
		return nil, err
	}
	got := reading{
		p99: quantile(came.Late, 0.99), p50: quantile(came.Late, 0.5), megabytes: mb, descriptors: float64(len(files)),
	}
	if found := goroutineCount.FindSubmatch(text); found != nil {
		got[goroutines], _ = strconv.ParseFloat(string(found[1]), 64) // a number, as Prometheus writes it
	}
	return got, nil
}

// soakLedger waits until every job has ended, and requires that each of a good lane was delivered and no other.
func (b *bench) soakLedger(ctx context.Context, r *ringback, s sending) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	for {
		var counts struct{ Delivered, Dead, Registered int }
		const path = "/v1/topics/" + soakTopic + "/stats?limit=1"
		if err := r.call(ctx, http.MethodGet, path, nil, http.StatusOK, &counts); err != nil {
			return err
		}
		if counts.Registered == s.good+s.bad && counts.Delivered == s.good && counts.Dead == s.bad {
			b.say("  %d jobs: %d delivered, %d dead, none lost", counts.Registered, counts.Delivered, counts.Dead)
			return nil
		}
		if err := pause(ctx, time.Second); err != nil {
			return fmt.Errorf("of %+v jobs, %+v are recorded", s, counts)
		}
	}
}
