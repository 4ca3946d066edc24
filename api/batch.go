package api

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// batch takes many jobs and answers a result for each, in order.
func (a *api) batch(w http.ResponseWriter, r *http.Request) error {
	text, err := readJSON(w, r, maxBatchBytes)
	if err != nil {
		return err
	}
	jobs, n, p := decodeBatch(text)
	if p != nil {
		return p
	}
	w.Header()["Content-Type"] = contentJSON
	o := newOut()
	defer o.free()
	o.open()
	o.array("results")
	b := batch{api: a, out: o, now: time.Now()}
	part := make([][]byte, 0, min(n, store.MaxBatch))
	for _, raw := range elements(jobs) {
		if part = append(part, raw); len(part) == store.MaxBatch {
			b.take(r.Context(), part)
			o.flush(w)
			part = part[:0]
		}
	}
	b.take(r.Context(), part)
	o.closeArray()
	o.close()
	o.end(w)
	return nil
}

// decodeBatch finds the array of jobs, and counts them.
func decodeBatch(text []byte) (jobs []byte, n int, p *problem) {
	var d decoder
	for name, value := range d.object("", text) {
		switch {
		case string(name) != "jobs":
			d.unknown("", name, "a batch")
		case value[0] != '[':
			d.mistyped("/jobs", value, "an array of jobs")
		default:
			jobs = value
		}
	}
	if jobs == nil && len(d.faults) == 0 {
		d.fault("/jobs", "must be an array of jobs")
	}
	if p := d.problem(nil); p != nil {
		return nil, 0, p
	}
	for range elements(jobs) {
		n++
	}
	if n > maxBatchJobs {
		p := invalid(job.Fault{Field: "/jobs", Detail: fmt.Sprintf("must be at most %d", maxBatchJobs)})
		p.status = http.StatusRequestEntityTooLarge
		return nil, 0, p
	}
	return jobs, n, nil
}

// A batch is one under way.
type batch struct {
	*api
	out *out
	now time.Time
	// failed is what the store failed with: what follows is not tried any more.
	failed error
}

// take registers a part of the batch and writes its results.
func (b *batch) take(ctx context.Context, part [][]byte) {
	problems := make([]*problem, len(part))
	good := make([]job.New, 0, len(part))
	for i, raw := range part {
		n, p := decodeNew(raw, b.now, b.maxBody)
		if problems[i] = p; p == nil {
			good = append(good, n)
		}
	}
	results := b.register(ctx, good)
	for _, p := range problems {
		if p != nil {
			b.write("", p.status, p)
			continue
		}
		result := results[0]
		results = results[1:]
		status, p := settled(&result)
		if p != nil {
			status = p.status
		}
		if status == http.StatusInternalServerError {
			b.log.Error("a job of a batch failed", "err", result.Err)
		}
		b.write(result.Job.ID, status, p)
	}
}

// register is Register, until the store failed for all jobs of a part.
func (b *batch) register(ctx context.Context, good []job.New) []store.Routed {
	if b.failed == nil && len(good) > 0 {
		results := b.service.Register(ctx, good)
		if !slices.ContainsFunc(results, func(r store.Routed) bool { return !unavailable(r.Err) }) {
			b.failed = results[0].Err
		}
		return results
	}
	results := make([]store.Routed, len(good))
	for i := range results {
		results[i].Err = b.failed
	}
	return results
}

func unavailable(err error) bool {
	return err != nil && problemOf(err).status == http.StatusServiceUnavailable
}

// write writes one result.
func (b *batch) write(id string, status int, p *problem) {
	b.out.open()
	b.out.said("id", id)
	b.out.number("status", int64(status))
	if p != nil {
		b.out.key("error")
		p.into(b.out)
	}
	b.out.close()
}
