package dispatcher

import (
	"context"
	"sync"

	"github.com/ringback/ringback/job"
)

const (
	// firstBatch and maxBatch are the fewest letters that a walk begins with, and the most that it works with at once.
	firstBatch = 16
	maxBatch   = 500
	// maxBatchBytes is about how many bytes of bodies are worked with at once: a store may do nothing else meanwhile, and
	// moves some hundred bytes in a microsecond. firstBatch of the largest bodies that are taken by default are as many.
	maxBatchBytes = 4 << 20
	// sampleSize is how many letters of a portion are read to tell how large they are: a list leaves bodies out.
	sampleSize = 4
	// readAtOnce is how many letters are read at once.
	readAtOnce = 32
)

// A batchSize is how many letters a walk works with at once. It grows for as long as they are small.
type batchSize int

// adapt takes in how many bytes the bodies of some letters have.
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

// sampleBodies tells how many bytes the bodies of a few letters have, and of how many. What cannot be read is left out: whoever
// works with it hears why.
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

// bodyBytes is how many bytes the bodies of some have.
func bodyBytes(jobs []job.Job) (bytes int) {
	for i := range jobs {
		bytes += len(jobs[i].Body)
	}
	return bytes
}

// A jobOrError is a job, or why it could not be read.
type jobOrError struct {
	job.Job
	err error
}

// readJobs reads jobs, all at once, at most readAtOnce.
func (d *Dispatcher) readJobs(ctx context.Context, jobs []job.Job) []jobOrError {
	found := make([]jobOrError, len(jobs))
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() { found[i].Job, found[i].err = d.store.Get(ctx, jobs[i].Ref()) })
	}
	all.Wait()
	return found
}
