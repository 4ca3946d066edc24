package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	pullClients = 8
	pullBatch   = 32 // leases of a request
)

// pull leases and reports a backlog, compared with requests to the receiver.
func pull(ctx context.Context, b *bench) error {
	var all []contestant
	for _, engine := range engines {
		all = append(all, contestant{ours(engine) + ", pull", func(ctx context.Context) (reading, error) {
			r, end, err := b.openedRingback(ctx, engine)
			if err != nil {
				return nil, err
			}
			defer end()
			return b.pulls(ctx, r)
		}}, b.ringback(ours(engine)+", push", b.dueAtOnce(engine), 1))
	}
	err := b.interleave(ctx, b.Rounds, all...)
	for i, engine := range engines {
		b.fig.compare(fmt.Sprintf("jobs pulled a second by %d clients, %d at a time, %s",
			pullClients, pullBatch, engine),
			all[2*i].name, all[2*i+1].name, perSecond, atLeast(0.5, 0.5))
	}
	return err
}

// pulls measures the time until b.Jobs of a larger backlog are reported as done: so no client waits for a job.
func (b *bench) pulls(ctx context.Context, r *ringback) (reading, error) {
	if err := r.call(ctx, http.MethodPut, "/v1/topics/pull",
		obj{"deliver": "pull", "lane_concurrency": laneLimit(workers)}, http.StatusOK, nil); err != nil {
		return nil, err
	}
	text := string(body(time.Now()))
	if err := r.fill(ctx, b.Jobs+2*pullClients*pullBatch, func(to []byte, _ int) []byte {
		return fmt.Appendf(to, `{"topic":"pull","lane":"lane-0","body":%s}`, text)
	}); err != nil {
		return nil, err
	}
	next := obj{"max": pullBatch, "wait": "1s", "lease": "1m"}
	var done, took atomic.Int64
	began := time.Now()
	err := spread(ctx, pullClients, pullClients, func(ctx context.Context, _ int) error {
		var got struct {
			Items []struct{ Lease string }
			Done  []struct{ Result string }
		}
		err := r.call(ctx, http.MethodPost, "/v1/topics/pull/lease", next, http.StatusOK, &got)
		for err == nil && took.Load() == 0 {
			report := make([]obj, len(got.Items))
			for i, job := range got.Items {
				report[i] = obj{"lease": job.Lease}
			}
			got.Items, got.Done = nil, nil
			err = r.call(ctx, http.MethodPost, "/v1/leases", obj{"done": report, "next": next}, http.StatusOK, &got)
			for _, job := range got.Done {
				if job.Result != "ok" {
					return fmt.Errorf("a report was answered %q", job.Result)
				}
			}
			if err == nil && done.Add(int64(len(got.Done))) >= int64(b.Jobs) {
				took.CompareAndSwap(0, int64(time.Since(began)))
			}
		}
		return err
	})
	return reading{perSecond: float64(b.Jobs) / time.Duration(took.Load()).Seconds()}, err
}
