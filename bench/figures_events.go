package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"
)

const (
	eventTopic = "events"
	fewLanes   = 3
	// eventsOfBatch is the number of events of a request.
	eventsOfBatch = 1000
)

// events compares deliveries of events, from the first request that sends them on, and their registration, with those of
// jobs for the same lanes.
func events(ctx context.Context, b *bench) error {
	var all []contestant
	n, many := b.Jobs/5, min(10*manyLanes, b.Jobs)
	for _, engine := range engines {
		of := ours(engine)
		all = append(all,
			b.lanesOf(of+", events", engine, fewLanes, func(ctx context.Context, r *ringback) (reading, error) {
				return b.rate(ctx, n*fewLanes, func(ctx context.Context) error { return r.sendEvents(ctx, n) })
			}),
			b.lanesOf(of+", jobs", engine, fewLanes, func(ctx context.Context, r *ringback) (reading, error) {
				text := string(body(time.Now()))
				return b.rate(ctx, n*fewLanes, func(ctx context.Context) error {
					return r.fill(ctx, n*fewLanes, func(to []byte, i int) []byte {
						return fmt.Appendf(to, `{"topic":%q,"lane":"lane-%d","body":%s}`, eventTopic, i%fewLanes, text)
					})
				})
			}),
			b.lanesOf(of+", one event", engine, many, func(ctx context.Context, r *ringback) (reading, error) {
				return b.rate(ctx, many, func(ctx context.Context) error { return r.sendEvents(ctx, 1) })
			}),
			b.lanesOf(of+", events sent", engine, fewLanes, func(ctx context.Context, r *ringback) (reading, error) {
				text := fmt.Sprintf(`{"topic":%q,"type":"order.paid","body":%s}`, eventTopic, body(time.Now()))
				return r.registers(ctx, "/v1/events", text, http.StatusCreated, n)
			}),
			b.lanesOf(of+", jobs sent", engine, fewLanes, func(ctx context.Context, r *ringback) (reading, error) {
				text := batchText(0, fewLanes, func(to []byte, i int) []byte {
					return fmt.Appendf(to, `{"topic":%q,"lane":"lane-%d","body":%s}`, eventTopic, i, body(time.Now()))
				}).text
				return r.registers(ctx, "/v1/batch", string(text), http.StatusOK, n)
			}),
		)
	}
	err := b.interleave(ctx, b.Rounds, all...)
	for _, engine := range engines {
		of := ours(engine)
		b.fig.compare(fmt.Sprintf("jobs a second of %s events to %d lanes, %s", number(float64(n)), fewLanes, engine),
			of+", events", of+", jobs", perSecond, atLeast(0.8, 0.9))
		b.fig.value(fmt.Sprintf("jobs a second of one event to %s lanes, %s", number(float64(many)), engine),
			of+", one event", perSecond, nil)
		b.fig.compare(fmt.Sprintf("requests a second that send an event to %d lanes at concurrency 64, %s",
			fewLanes, engine), of+", events sent", of+", jobs sent", perSecond, nil)
	}
	return err
}

// lanesOf is a contestant with a number of lanes that subscribe to all events.
func (b *bench) lanesOf(
	name, engine string, n int, measure func(context.Context, *ringback) (reading, error),
) contestant {
	return contestant{name, func(ctx context.Context) (reading, error) {
		r, end, err := b.openedRingback(ctx, engine)
		if err != nil {
			return nil, err
		}
		defer end()
		if err := r.topic(ctx, eventTopic, obj{}); err != nil {
			return nil, err
		}
		err = spread(ctx, min(n, workers), n, func(ctx context.Context, i int) error {
			path := fmt.Sprintf("/v1/topics/%s/lanes/lane-%d", eventTopic, i)
			return r.call(ctx, http.MethodPut, path, obj{"url": b.sink, "subscribe": []string{"*"}}, http.StatusOK, nil)
		})
		if err != nil {
			return nil, err
		}
		return measure(ctx, r)
	}}
}

// sendEvents sends n events in batches.
func (r *ringback) sendEvents(ctx context.Context, n int) error {
	one := fmt.Sprintf(`{"topic":%q,"type":"order.paid","body":%s}`, eventTopic, body(time.Now()))
	return spread(ctx, batchClients, (n+eventsOfBatch-1)/eventsOfBatch, func(ctx context.Context, k int) error {
		text := []byte(`{"events":[`)
		size := min(eventsOfBatch, n-k*eventsOfBatch)
		for i := range size {
			if i > 0 {
				text = append(text, ',')
			}
			text = append(text, one...)
		}
		var got []byte
		if err := r.call(ctx, http.MethodPost, "/v1/events/batch", append(text, "]}"...), http.StatusOK, &got); err != nil {
			return err
		}
		if sent := bytes.Count(got, []byte(`"status":20`)); sent != size {
			return fmt.Errorf("%d of %d events were sent: %.300s", sent, size, got)
		}
		return nil
	})
}

// registers measures requests that send something to a paused topic, one at a time on each of 64 connections.
func (r *ringback) registers(ctx context.Context, path, text string, status, n int) (reading, error) {
	if err := r.call(ctx, http.MethodPost, "/v1/topics/"+eventTopic+"/pause", nil, http.StatusOK, nil); err != nil {
		return nil, err
	}
	began := time.Now()
	err := spread(ctx, workers, n, func(ctx context.Context, _ int) error {
		return r.call(ctx, http.MethodPost, path, []byte(text), status, nil)
	})
	return reading{perSecond: float64(n) / time.Since(began).Seconds()}, err
}
