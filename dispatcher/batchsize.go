package dispatcher

import (
	"context"
	"sync"

	"github.com/ringback/ringback/job"
)

const (
	// firstBatch and maxBatch are the first and the largest number of dead letters that a walk processes at once.
	firstBatch = 16
	maxBatch   = 500
	// maxBatchBytes is about how many bytes of bodies are processed at once: the store may be blocked meanwhile, and moves
	// some hundred bytes in a microsecond. It is firstBatch bodies of the default --max-body.
	maxBatchBytes = 4 << 20
	// sampleSize is how many jobs of a page are read to estimate the size of their bodies, which lists leave out.
	sampleSize = 4
	// readAtOnce is how many jobs are read concurrently.
	readAtOnce = 32
)

// A batchSize is how many dead letters a walk processes at once. It doubles while their bodies are small.
type batchSize int

// adapt adjusts the size to bodies of some jobs, in bytes.
func (s *batchSize) adapt(bytes, of int) {
	if of == 0 {
		return
	}
	fit := maxBatch
	if bytes > 0 {
		fit = min(maxBatchBytes/max(bytes/of, 1), maxBatch)
	}
	*s = batchSize(max(min(fit, 2*int(*s)), 1))
}

// sampleBodies returns the size of the bodies of a few jobs, and the number of those jobs. Jobs that cannot be read are left
// out: processing them reports the error.
func (d *Dispatcher) sampleBodies(ctx context.Context, jobs []job.Job) (bytes, of int) {
	few := make([]job.Job, 0, sampleSize)
	for i := range min(sampleSize, len(jobs)) {
		few = append(few, jobs[i*len(jobs)/min(sampleSize, len(jobs))])
	}
	for _, found := range d.readJobs(ctx, few) {
		if found.err == nil {
			bytes, of = bytes+len(found.Body), of+1
		}
	}
	return bytes, of
}

// bodyBytes returns the size of the bodies of jobs.
func bodyBytes(jobs []job.Job) (bytes int) {
	for i := range jobs {
		bytes += len(jobs[i].Body)
	}
	return bytes
}

// A jobOrError is a job, or the error of reading it.
type jobOrError struct {
	job.Job
	err error
}

// readJobs reads at most readAtOnce jobs concurrently.
func (d *Dispatcher) readJobs(ctx context.Context, jobs []job.Job) []jobOrError {
	found := make([]jobOrError, len(jobs))
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() { found[i].Job, found[i].err = d.store.Get(ctx, jobs[i].Ref()) })
	}
	all.Wait()
	return found
}
