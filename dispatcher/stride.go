package dispatcher

import (
	"context"
	"sync"

	"github.com/ringback/ringback/job"
)

const (
	// strideFirst and strideMost are the fewest letters that a walk begins with, and the most that it works with at once.
	strideFirst = 16
	strideMost  = 500
	// strideBytes is about how many bytes of bodies are worked with at once: a store may do nothing else meanwhile, and
	// moves some hundred bytes in a microsecond. strideFirst of the largest bodies that are taken by default are as many.
	strideBytes = 4 << 20
	// sampled is how many letters of a portion are read to tell how large they are: a list leaves bodies out.
	sampled = 4
	// readAtOnce is how many letters are read at once.
	readAtOnce = 32
)

// A stride is how many letters a walk works with at once. It grows for as long as they are small.
type stride int

// learn takes in how many bytes the bodies of some letters have.
func (s *stride) learn(bytes, of int) {
	if of == 0 {
		return
	}
	fit := strideMost
	if bytes > 0 {
		fit = min(strideBytes/max(bytes/of, 1), strideMost)
	}
	*s = stride(max(min(fit, 2*int(*s)), 1))
}

// sample tells how many bytes the bodies of a few letters have, and of how many. What cannot be read is left out: whoever
// works with it hears why.
func (d *Dispatcher) sample(ctx context.Context, jobs []job.Job) (bytes, of int) {
	few := make([]job.Job, 0, sampled)
	for i := range min(sampled, len(jobs)) {
		few = append(few, jobs[i*len(jobs)/min(sampled, len(jobs))])
	}
	for _, found := range d.read(ctx, few) {
		if found.err == nil {
			bytes, of = bytes+len(found.Body), of+1
		}
	}
	return bytes, of
}

// bodies is how many bytes the bodies of some have.
func bodies(jobs []job.Job) (bytes int) {
	for i := range jobs {
		bytes += len(jobs[i].Body)
	}
	return bytes
}

// A reading is a job, or why it could not be read.
type reading struct {
	job.Job
	err error
}

// read reads jobs, all at once, at most readAtOnce.
func (d *Dispatcher) read(ctx context.Context, jobs []job.Job) []reading {
	found := make([]reading, len(jobs))
	var all sync.WaitGroup
	for i := range jobs {
		all.Go(func() { found[i].Job, found[i].err = d.store.Get(ctx, jobs[i].Ref()) })
	}
	all.Wait()
	return found
}
