package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	waitClients   = 16
	waitingAtOnce = 1000 // requests that wait at a time: a process lets 1,334 of a namespace
	// waitPause is the longest pause of a client between requests. It spreads the ends of jobs over the intervals in
	// which a process looks for those that others end.
	waitPause = 200 * time.Millisecond
)

// wait measures how long after the receiver's answer POST /v1/jobs?wait= is answered.
func wait(ctx context.Context, b *bench) error {
	elsewhere := ours(redisEngine) + ", ended by another process"
	all := []contestant{{elsewhere, func(ctx context.Context) (reading, error) {
		s, err := b.newStore(ctx, redisEngine)
		if err != nil {
			return nil, err
		}
		defer s.end()
		other, err := b.startRingback(ctx, s)
		if err != nil {
			return nil, err
		}
		defer other.kill()
		r, err := b.startRingback(ctx, s, "--roles=api")
		if err != nil {
			return nil, err
		}
		defer r.kill()
		return b.waits(ctx, r)
	}}}
	for _, engine := range engines {
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			r, end, err := b.openedRingback(ctx, engine)
			if err != nil {
				return nil, err
			}
			defer end()
			got, err := b.waits(ctx, r)
			if err != nil {
				return nil, err
			}
			return got, b.waitAtOnce(ctx, r, got)
		}})
	}
	err := b.interleave(ctx, b.Rounds, all...)
	text := "from the receiver's answer to that of the request that waits, "
	for _, engine := range engines {
		b.fig.value(text+engine, ours(engine), p50, nil)
		b.fig.value(text+engine, ours(engine), p99, atMost(20, 20))
	}
	b.fig.value("the same, Redis, when another process ends the job", elsewhere, p50, nil)
	b.fig.value("the same, Redis, when another process ends the job", elsewhere, p99, atMost(300, 300))
	text = number(waitingAtOnce) + " requests that wait, "
	for _, engine := range engines {
		b.fig.value("process RSS with "+text+engine, ours(engine), megabytes, nil)
		b.fig.value(text+engine+": all answered after the resume", ours(engine), milliseconds, nil)
	}
	return err
}

// register registers a job, waits for its end, and returns the last answer of the receiver.
func (r *ringback) register(ctx context.Context, url string) (string, error) {
	text := fmt.Appendf(nil, `{"topic":"wait","url":%q,"body":%s}`, url, body(time.Now()))
	var got struct {
		State    string
		Attempts []struct {
			ResponseBody string `json:"response_body"`
		}
	}
	if err := r.call(ctx, http.MethodPost, "/v1/jobs?wait=60s", text, http.StatusCreated, &got); err != nil {
		return "", err
	}
	if got.State != "delivered" || len(got.Attempts) != 1 {
		return "", fmt.Errorf("a job was answered as %s, after %d attempts", got.State, len(got.Attempts))
	}
	return got.Attempts[0].ResponseBody, nil
}

// waits registers jobs, whose receiver answers with the time of its answer.
func (b *bench) waits(ctx context.Context, r *ringback) (reading, error) {
	var mu sync.Mutex
	var all []float64
	err := spread(ctx, waitClients, b.Waits, func(ctx context.Context, _ int) error {
		if err := pause(ctx, rand.N(waitPause)); err != nil {
			return err
		}
		text, err := r.register(ctx, b.sink+answerTime)
		if err != nil {
			return err
		}
		now := time.Now()
		answered, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return fmt.Errorf("read the receiver's answer: %w", err)
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, float64(now.UnixNano()-answered)/1e6)
		return nil
	})
	if err != nil {
		return nil, err
	}
	slices.Sort(all)
	return reading{p50: quantile(all, 0.5), p99: quantile(all, 0.99)}, nil
}

// waitAtOnce lets as many requests wait as a process allows, after waits, for jobs of a paused topic, and resumes it.
func (b *bench) waitAtOnce(ctx context.Context, r *ringback, into reading) error {
	const topic = "/v1/topics/wait"
	if err := r.call(ctx, http.MethodPost, topic+"/pause", nil, http.StatusOK, nil); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		answered <- spread(ctx, waitingAtOnce, waitingAtOnce, func(ctx context.Context, _ int) error {
			_, err := r.register(ctx, b.sink)
			return err
		})
	}()
	for counts := (struct{ Registered int }{}); counts.Registered < b.Waits+waitingAtOnce; {
		select {
		case err := <-answered:
			return fmt.Errorf("requests did not wait: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
		if err := r.call(ctx, http.MethodGet, topic+"/stats?limit=1", nil, http.StatusOK, &counts); err != nil {
			return err
		}
	}
	var err error
	if into[megabytes], err = r.rss(); err != nil {
		return err
	}
	began := time.Now()
	if err := r.call(ctx, http.MethodPost, topic+"/resume", nil, http.StatusOK, nil); err != nil {
		return err
	}
	err = <-answered
	into[milliseconds] = float64(time.Since(began).Microseconds()) / 1000
	return err
}
