package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/api/request"
	"github.com/ringback/ringback/api/response"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A registration registers the jobs of a batch and writes a result for each, in one JSON text or in a stream.
type registration struct {
	*batchHandler
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

// An item is one job of a batch.
type item struct {
	text []byte
	// line is its number in a stream; 0 in JSON.
	line int
	// problem is set when the item is already refused.
	problem *response.Problem
}

// decode reads a job, or returns its problem, and then the id if it can be read.
func (g *registration) decode(e item) (job.New, *response.Problem) {
	if e.problem != nil {
		return job.New{}, e.problem
	}
	n, p := request.DecodeJob(e.text, nil, g.now, g.maxBody)
	if p != nil && p.Code == response.InvalidJSON {
		n.ID = "" // there may be two
		if e.line > 0 {
			p.Detail = fmt.Sprintf("line %d: %s", e.line, p.Detail)
		}
	}
	return n, p
}

// register registers at most store.MaxBatch jobs and writes their results.
func (g *registration) register(ctx context.Context, part []item) {
	problems := make([]*response.Problem, len(part))
	ids := make([]string, len(part))
	good := make([]job.New, 0, len(part))
	for i, e := range part {
		n, p := g.decode(e)
		if p == nil {
			if err := admit(ctx, &n); err != nil {
				p = response.FromError(err)
			}
		}
		ids[i] = n.ID
		if problems[i] = p; p == nil {
			good = append(good, n)
		}
	}
	routed := g.registerUnlessFailing(ctx, good)
	for i, p := range problems {
		if p != nil {
			g.answer(itemResult{id: ids[i], status: p.Status, problem: p})
			continue
		}
		one := &routed[0]
		routed = routed[1:]
		status, p := batchStatus(one)
		if p != nil {
			status = p.Status
		}
		if status == http.StatusInternalServerError {
			g.log.Error("registration of a job in a batch failed", "err", one.Err)
		}
		g.answer(itemResult{
			id: cmp.Or(one.Job.ID, ids[i]), status: status, problem: p,
			state: one.Job.State, reached: one.Job.Durability,
		})
	}
}

// registerUnlessFailing calls Register, or returns the last error of a store that has just failed for all jobs.
func (g *registration) registerUnlessFailing(ctx context.Context, good []job.New) []store.RoutedResult {
	if len(good) == 0 {
		return nil
	}
	if g.storeErr != nil && time.Since(g.storeErrAt) < storeRetryAfter {
		return slices.Repeat([]store.RoutedResult{{Err: g.storeErr}}, len(good))
	}
	results := g.registerAll(ctx, good)
	g.storeErr = nil
	if !slices.ContainsFunc(results, func(r store.RoutedResult) bool { return !unavailable(r.Err) }) {
		g.storeErr, g.storeErrAt = results[0].Err, time.Now()
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
	state   job.State // of a job that is registered
	reached *job.Durability
	problem *response.Problem
}

// maxIDShown is the longest id in a result, in bytes. Ids of refused jobs are shown as they were sent.
const maxIDShown = 128

// answer writes the result of the next job.
func (g *registration) answer(r itemResult) {
	g.out.Open()
	g.out.Number("index", int64(g.index))
	g.index++
	if r.id != "" && len(r.id) <= maxIDShown {
		g.out.Text("id", r.id)
	} else {
		g.out.Null("id")
	}
	g.write(r)
}

// end writes a result that belongs to no job: why the batch ended early.
func (g *registration) end(p *response.Problem) {
	g.out.Open()
	g.out.Null("index")
	g.out.Null("id")
	g.write(itemResult{status: p.Status, problem: p})
}

// write writes the rest of a result.
func (g *registration) write(r itemResult) {
	g.out.Number("status", int64(r.status))
	if r.problem != nil {
		g.out.Null("state")
		g.out.Null("durability")
		g.out.Problem("error", r.problem)
	} else {
		g.out.Text("state", string(r.state))
		g.out.Durability(r.reached)
		g.out.Null("error")
	}
	g.out.Close()
	g.written()
}
