package dispatcher

import (
	"context"
	"time"

	"github.com/ringback/ringback/job"
)

// WaitForEnd returns a job as Get does, once it has ended, or after limit, or when Run's context ends; when that has ended,
// it waits for up to a second. It returns within milliseconds when this process ends the job, and within about a quarter of a second otherwise, for which Run must
// have been called. When ctx ends, it returns the cause. Errors are those of Get.
func (d *Dispatcher) WaitForEnd(ctx context.Context, ref job.Ref, limit time.Duration) (job.Job, error) {
	return d.ends.Wait(ctx, ref, limit, func(ctx context.Context) (job.Job, error) { return d.Get(ctx, ref) })
}

// Waiting returns the number of callers of WaitForEnd.
func (d *Dispatcher) Waiting() int { return d.ends.Waiting() }
