package intake

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/api/scope"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A batch registers jobs and writes a result for each, in one JSON text or in a stream.
type batch struct {
	*Intake
	out *response.Buffer
	now time.Time
	// written is called after each result.
	written func()
	// index is that of the next result.
	index int
	// storeErr is the store's last error, at storeErrAt. For storeRetryAfter it is the result of further jobs.
	storeErr   error
	storeErrAt time.Time
}

// storeRetryAfter is how long a failed store is not called: short, because a stream may last for minutes.
const storeRetryAfter = time.Second

// A batchItem is one job of a batch.
type batchItem struct {
	text []byte
	// line is its number in a stream; 0 in JSON.
	line int
	// problem is set when the item is already refused.
	problem *response.Problem
}

// decode reads a job, or returns its problem, and then the id if it can be read.
func (b *batch) decode(e batchItem) (job.New, *response.Problem) {
	if e.problem != nil {
		return job.New{}, e.problem
	}
	n, p := request.DecodeJob(e.text, nil, b.now, b.maxBody)
	if p != nil && p.Code == response.InvalidJSON {
		n.ID = "" // there may be two
		if e.line > 0 {
			p.Detail = fmt.Sprintf("line %d: %s", e.line, p.Detail)
		}
	}
	return n, p
}

// register registers at most store.MaxBatch jobs and writes their results.
func (b *batch) register(ctx context.Context, part []batchItem) {
	problems := make([]*response.Problem, len(part))
	ids := make([]string, len(part))
	good := make([]job.New, 0, len(part))
	for i, e := range part {
		n, p := b.decode(e)
		if p == nil {
			if err := scope.Admit(ctx, &n); err != nil {
				p = response.FromError(err)
			}
		}
		ids[i] = n.ID
		if problems[i] = p; p == nil {
			good = append(good, n)
		}
	}
	routed := b.registerUnlessFailing(ctx, good)
	for i, p := range problems {
		if p != nil {
			b.answer(itemResult{id: ids[i], status: p.Status, problem: p})
			continue
		}
		one := &routed[0]
		routed = routed[1:]
		status, p := Status(one)
		if p != nil {
			status = p.Status
		}
		if status == http.StatusInternalServerError {
			b.log.Error("registration of a job in a batch failed", "err", one.Err)
		}
		b.answer(itemResult{id: cmp.Or(one.Job.ID, ids[i]), status: status, reached: one.Job.Durability, problem: p})
	}
}

// registerUnlessFailing calls Register, or returns the last error of a store that has just failed for all jobs.
func (b *batch) registerUnlessFailing(ctx context.Context, good []job.New) []store.RoutedResult {
	if len(good) == 0 {
		return nil
	}
	if b.storeErr != nil && time.Since(b.storeErrAt) < storeRetryAfter {
		return slices.Repeat([]store.RoutedResult{{Err: b.storeErr}}, len(good))
	}
	results := b.registrar.Register(ctx, good)
	b.storeErr = nil
	if !slices.ContainsFunc(results, func(r store.RoutedResult) bool { return !unavailable(r.Err) }) {
		b.storeErr, b.storeErrAt = results[0].Err, time.Now()
	}
	return results
}

func unavailable(err error) bool {
	return err != nil && response.FromError(err).Status == http.StatusServiceUnavailable
}

// An itemResult is the result of one job.
type itemResult struct {
	id      string
	status  int
	reached *job.Durability
	problem *response.Problem
}

// maxIDShown is the longest id in a result, in bytes. Ids of refused jobs are shown as they were sent.
const maxIDShown = 128

// answer writes the result of the next job.
func (b *batch) answer(r itemResult) {
	b.out.Open()
	b.out.Number("index", int64(b.index))
	b.index++
	if r.id != "" && len(r.id) <= maxIDShown {
		b.out.Text("id", r.id)
	} else {
		b.out.Null("id")
	}
	b.write(r)
}

// end writes a result that belongs to no job: why the batch ended early.
func (b *batch) end(p *response.Problem) {
	b.out.Open()
	b.out.Null("index")
	b.out.Null("id")
	b.write(itemResult{status: p.Status, problem: p})
}

// write writes the rest of a result.
func (b *batch) write(r itemResult) {
	b.out.Number("status", int64(r.status))
	if r.problem != nil {
		b.out.Null("durability")
		b.out.Problem("error", r.problem)
	} else {
		b.out.Durability(r.reached)
		b.out.Null("error")
	}
	b.out.Close()
	b.written()
}
