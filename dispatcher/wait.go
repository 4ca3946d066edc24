package dispatcher

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// WaitForEnd returns a job as Get does, once it has ended, or after limit, or when Run's context ends; when that has
// ended, it waits for up to a second. It returns within milliseconds when this process ends the job, and within about a
// quarter of a second otherwise, for which Run must have been called. When ctx ends, it returns the cause. Errors are
// those of Get.
//
// last is the job as Register returned it, or a job with its Ref. A job that is removed when it ends, because its topic
// keeps none, is returned as it was last, in the state in which it ended; ErrNotFound if that is not known. It has its
// last attempt if this process made that.
func (d *Dispatcher) WaitForEnd(ctx context.Context, last job.Job, limit time.Duration) (job.Job, error) {
	return d.ends.Wait(ctx, last, limit, func(ctx context.Context) (job.Job, error) { return d.Get(ctx, last.Ref()) })
}

// Waiting returns the number of callers of WaitForEnd.
func (d *Dispatcher) Waiting() int { return d.ends.Waiting() }
