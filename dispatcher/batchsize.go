package dispatcher

import (
	"context"
	"sync"

	"github.com/ringback/ringback/job"
)

const (
	// firstBatch and maxBatch are the first and the largest number of dead letters processed at once.
	firstBatch = 16
	maxBatch   = 500
	// maxBatchBytes is the approximate number of body bytes processed at once: the store may be blocked meanwhile, and moves
	// some hundred bytes per microsecond. It is firstBatch bodies of the default --max-body.
	maxBatchBytes = 4 << 20
	// sampleSize is the number of jobs of a page that are read to estimate the size of bodies, which lists omit.
	sampleSize = 4
	// readAtOnce bounds concurrent reads.
	readAtOnce = 32
)

// batchSize is the number of dead letters processed at once. It doubles while their bodies are small.
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

// sampleBodies returns the size of the bodies of a few jobs, and the number of those jobs. It skips jobs that cannot be read:
// processing them reports the error.
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

// jobOrError is a job, or the error of reading it.
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
