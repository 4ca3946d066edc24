package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const handlerName = "bare handler"

// post registers one job per request from 64 connections, compared with a handler that only decodes and answers.
func post(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			r, end, err := b.openedRingback(ctx, engine)
			if err != nil {
				return nil, err
			}
			defer end()
			return b.posts(ctx, r.url)
		}})
	}
	all = append(all, contestant{handlerName, func(ctx context.Context) (reading, error) {
		p, err := b.again(ctx, "handler")
		if err != nil {
			return nil, err
		}
		defer p.end()
		a, err := p.ask(ctx, order{Do: "where"})
		if err != nil {
			return nil, err
		}
		return b.posts(ctx, a.URL)
	}})
	err := b.interleave(ctx, b.Rounds, all...)
	for _, engine := range engines {
		b.fig.compare("single `POST /v1/jobs` at concurrency 64, "+engine, ours(engine), handlerName,
			perSecond, atLeast(0.40, 0.60))
	}
	return err
}

// posts measures single registrations, after a few that open the connections.
func (b *bench) posts(ctx context.Context, api string) (reading, error) {
	text, err := json.Marshal(newJob{
		Topic: "post", URL: "http://127.0.0.1:9/hook",
		Body: body(time.Now()), Delay: "1h",
	})
	if err != nil {
		return nil, fmt.Errorf("make a job: %w", err)
	}
	p := newPoster(api+"/v1/jobs", workers)
	defer p.client.CloseIdleConnections()
	one := func(ctx context.Context, _ int) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("make a request: %w", err)
		}
		req.Header["Content-Type"] = []string{"application/json"}
		return p.do(req, http.StatusCreated)
	}
	if err := spread(ctx, workers, 4*workers, one); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := spread(ctx, workers, b.Posts, one); err != nil {
		return nil, err
	}
	return reading{perSecond: float64(b.Posts) / time.Since(began).Seconds()}, nil
}

// batches registers jobs in batches, and enqueues the peers' tasks and jobs in the fastest way that they offer.
func batches(ctx context.Context, b *bench) error {
	timed := func(jobs int, do func() error) (reading, error) {
		began := time.Now()
		err := do()
		return reading{perSecond: float64(jobs) / time.Since(began).Seconds()}, err
	}
	var all []contestant
	for _, engine := range engines {
		all = append(all, contestant{ours(engine), func(ctx context.Context) (reading, error) {
			r, end, err := b.openedRingback(ctx, engine)
			if err != nil {
				return nil, err
			}
			defer end()
			texts := b.batchTexts()
			return timed(b.Batched, func() error {
				return spread(ctx, batchClients, len(texts),
					func(ctx context.Context, i int) error { return r.batch(ctx, texts[i]) })
			})
		}})
	}
	all = append(all, contestant{asynqName, func(ctx context.Context) (reading, error) {
		p, end, err := b.openedAsynq(ctx, order{Concurrency: workers})
		if err != nil {
			return nil, err
		}
		defer end()
		return timed(b.Batched, func() error {
			_, err := p.ask(ctx, order{Do: "fill", Jobs: b.Batched, Concurrency: workers, Seconds: 3600})
			return err
		})
	}})
	for _, name := range []string{riverSQLiteName, riverPGName} {
		jobs := b.Batched
		if name == riverSQLiteName {
			jobs = b.SlowJobs
		}
		all = append(all, contestant{name, func(ctx context.Context) (reading, error) {
			p, end, err := b.openedRiver(ctx, name, order{Concurrency: workers, URL: b.sink})
			if err != nil {
				return nil, err
			}
			defer end()
			return timed(jobs, func() error {
				_, err := p.ask(ctx, order{Do: "fill", Jobs: jobs})
				return err
			})
		}})
	}
	err := b.interleave(ctx, b.Rounds, all...)
	text := fmt.Sprintf("batch insert (%s jobs a request, %d at a time), ", number(batchJobs), batchClients)
	b.fig.value(text+redisEngine, ours(redisEngine), perSecond, atLeast(50_000, 100_000))
	b.fig.value(text+sqliteEngine, ours(sqliteEngine), perSecond, atLeast(30_000, 60_000))
	b.fig.compare("the same, asynq one by one from 64 goroutines", ours(redisEngine), asynqName, perSecond, nil)
	b.fig.compare("the same, River in batches", ours(sqliteEngine), riverSQLiteName, perSecond, nil)
	b.fig.compare("the same, River in batches", ours(sqliteEngine), riverPGName, perSecond, nil)
	return err
}

// batchTexts returns the texts of all batches.
func (b *bench) batchTexts() []batch {
	text := string(body(time.Now()))
	var all []batch
	for from := 0; from < b.Batched; from += batchJobs {
		all = append(all, batchText(from, min(from+batchJobs, b.Batched), func(to []byte, _ int) []byte {
			return fmt.Appendf(to, `{"topic":"batch","url":"http://127.0.0.1:9/hook","delay":"1h","body":%s}`, text)
		}))
	}
	return all
}
