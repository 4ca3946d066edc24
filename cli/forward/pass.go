package forward

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ringback/ringback/client"
)

// maxError bounds the errors that are reported.
const maxError = 1 << 10

// pass sends a leased job and reports the answer. It returns true if no connection could be made.
func (f *forwarder) pass(j *client.LeasedJob, target *url.URL) (refused bool) {
	ctx, cancel := context.WithCancelCause(f.working)
	defer cancel(nil)
	d := Delivery{
		At: time.Now().UTC(), ID: j.ID, Topic: j.Topic, Lane: j.Lane,
		Attempt: j.Attempt, URL: target.String(),
	}
	if j.Request == nil {
		d.Error = "no request can be made of this job"
		f.finish(&d, client.Settlement{Retry: []client.LeaseRetry{{Lease: j.Lease, Error: d.Error}}})
		return false
	}
	d.URL = address(target, j.Request.URL, f.opts.KeepPath)
	go f.extend(ctx, j.Lease, cancel)
	got, err := f.send(ctx, j.Request.Method, d.URL, f.headerOf(j.Request.Headers, j.ID, j.Body), j.Body)
	d.DurationMS = float64(time.Since(d.At).Microseconds()) / 1000
	cause := context.Cause(ctx)
	release := client.Settlement{Release: []client.LeaseRelease{{Lease: j.Lease}}}
	switch {
	case err == nil:
		answered := client.LeaseAnswered{
			Lease: j.Lease, Status: got.status, Response: got.body, NonRetryable: got.nonretryable,
		}
		if got.after > 0 {
			answered.After = &got.after
		}
		d.Status = got.status
		f.finish(&d, client.Settlement{Answered: []client.LeaseAnswered{answered}})
	case errors.Is(cause, errLost):
		d.Error = errLost.Error()
		f.opts.Report(d)
	case errors.Is(cause, errStopped):
		d.Error = "stopped: given back"
		f.finish(&d, release)
	case errors.As(err, new(unsentError)):
		f.noteListener(target, err)
		f.settle(release)
		return true
	default:
		if errors.Is(cause, errCancelled) {
			err = errCancelled
		}
		d.Error = err.Error()
		text := strings.ToValidUTF8(d.Error[:min(len(d.Error), maxError)], "")
		f.finish(&d, client.Settlement{Retry: []client.LeaseRetry{{Lease: j.Lease, Error: cmp.Or(text, "failed")}}})
	}
	return false
}

// finish reports what became of a job to the server, and to the output.
func (f *forwarder) finish(d *Delivery, s client.Settlement) {
	if problem := f.settle(s); problem != "" {
		d.Error = strings.TrimPrefix(d.Error+"; "+problem, "; ")
	}
	f.opts.Report(*d)
}

// settle reports to the server, and returns why it was not recorded. It goes on for as long as Run does: leases are
// extended meanwhile.
func (f *forwarder) settle(s client.Settlement) (problem string) {
	for {
		ctx, cancel := context.WithTimeout(f.reporting, answerTime)
		settled, err := f.opts.Client.Settle(ctx, s)
		cancel()
		switch {
		case isRefused(err):
			return "not reported, so it comes again: " + err.Error()
		case err != nil:
			problem = "not reported, so it comes again: " + err.Error()
			if f.reporting.Err() == nil {
				f.noteServer(err)
			}
		default:
			f.noteServer(nil)
			r := slices.Concat(settled.Answered, settled.Retry, settled.Release)
			if len(r) == 0 || r[0].Result == "ok" {
				return ""
			}
			if r[0].Result == "lost" {
				return errLost.Error()
			}
			problem = "not recorded, so it comes again: the store is unavailable"
		}
		if !sleep(f.reporting, time.Second) {
			return problem
		}
	}
}

// extend extends a lease until ctx ends. It ends ctx when the lease is lost, or the job was cancelled.
func (f *forwarder) extend(ctx context.Context, lease string, end context.CancelCauseFunc) {
	for wait := firstExtend; sleep(ctx, wait); {
		limited, cancel := context.WithTimeout(ctx, answerTime)
		settled, err := f.opts.Client.Settle(limited,
			client.Settlement{Extend: []client.LeaseExtend{{Lease: lease, For: leaseFor}}})
		cancel()
		if wait = leaseFor / 3; err != nil || len(settled.Extend) == 0 {
			wait = firstExtend
			continue
		}
		switch r := settled.Extend[0]; {
		case r.Result == "lost":
			end(errLost)
		case r.CancelRequested:
			end(errCancelled)
		}
	}
}
