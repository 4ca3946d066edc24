package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A batch is one under way, as JSON or as a stream.
type batch struct {
	*api
	out *out
	now time.Time
	// written is called after each result.
	written func()
	// index counts the results of jobs.
	index int
	// failed is what the store failed with last, at failedAt: what follows is not tried for storeRest.
	failed   error
	failedAt time.Time
}

// storeRest is how long a store that failed is not asked: a batch of thousands must not wait for it part after part, and
// a stream that goes on for minutes must not be refused for good.
const storeRest = time.Second

// An entry is one job of a batch as it came.
type entry struct {
	text []byte
	// line is where in a stream it stands; zero: in no stream.
	line int
	// problem says what is wrong with it already.
	problem *problem
}

// judge reads a job, or says what is wrong with it. Of a refused one the id at least is given, where it can be read.
func (b *batch) judge(e entry) (job.New, *problem) {
	if e.problem != nil {
		return job.New{}, e.problem
	}
	n, p := decodeNew(e.text, b.now, b.maxBody)
	if p != nil && p.status == http.StatusBadRequest {
		n.ID = "" // the JSON may hold two
		if e.line > 0 {
			p.detail = fmt.Sprintf("line %d: %s", e.line, p.detail)
		}
	}
	return n, p
}

// take registers a part of the batch, at most store.MaxBatch jobs, and writes its results.
func (b *batch) take(ctx context.Context, part []entry) {
	problems := make([]*problem, len(part))
	ids := make([]string, len(part))
	good := make([]job.New, 0, len(part))
	for i, e := range part {
		n, p := b.judge(e)
		ids[i] = n.ID
		if problems[i] = p; p == nil {
			good = append(good, n)
		}
	}
	routed := b.register(ctx, good)
	for i, p := range problems {
		if p != nil {
			b.answer(result{id: ids[i], status: p.status, problem: p})
			continue
		}
		one := &routed[0]
		routed = routed[1:]
		status, p := settled(one)
		if p != nil {
			status = p.status
		}
		if status == http.StatusInternalServerError {
			b.log.Error("a job of a batch failed", "err", one.Err)
		}
		b.answer(result{id: cmp.Or(one.Job.ID, ids[i]), status: status, reached: one.Job.Durability, problem: p})
	}
}

// register is Register, but for a while after the store failed for all jobs of a part.
func (b *batch) register(ctx context.Context, good []job.New) []store.RoutedResult {
	if len(good) == 0 {
		return nil
	}
	if b.failed != nil && time.Since(b.failedAt) < storeRest {
		return slices.Repeat([]store.RoutedResult{{Err: b.failed}}, len(good))
	}
	results := b.service.Register(ctx, good)
	b.failed = nil
	if !slices.ContainsFunc(results, func(r store.RoutedResult) bool { return !unavailable(r.Err) }) {
		b.failed, b.failedAt = results[0].Err, time.Now()
	}
	return results
}

func unavailable(err error) bool {
	return err != nil && problemOf(err).status == http.StatusServiceUnavailable
}

// A result is what came of one job of a batch.
type result struct {
	id      string
	status  int
	reached *job.Durability
	problem *problem
}

// longestShown is the longest id that a result shows, in bytes. That of a refused job is shown as it was sent.
const longestShown = 128

// answer writes the result of the next job.
func (b *batch) answer(r result) {
	b.out.open()
	b.out.number("index", int64(b.index))
	b.index++
	if r.id != "" && len(r.id) <= longestShown {
		b.out.text("id", r.id)
	} else {
		b.out.none("id")
	}
	b.write(r)
}

// end writes what ended the batch before its end, in place of a result: it is of no job.
func (b *batch) end(p *problem) {
	b.out.open()
	b.out.none("index")
	b.out.none("id")
	b.write(result{status: p.status, problem: p})
}

// write writes the rest of a result.
func (b *batch) write(r result) {
	b.out.number("status", int64(r.status))
	if r.problem != nil {
		b.out.key("error")
		r.problem.into(b.out)
	} else {
		b.out.durability(r.reached)
	}
	b.out.close()
	b.written()
}
