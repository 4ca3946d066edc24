package response

import (
	"errors"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// LeasedJob writes a job with a client's lease.
func (o *Buffer) LeasedJob(j *store.LeasedJob) {
	o.Text("id", j.ID)
	o.Text("topic", j.Topic)
	o.Text("lane", j.Lane)
	o.Number("attempt", int64(j.Attempts)+1)
	o.headersOrNull("headers", j.Header)
	o.TextOrNull("content_type", j.ContentType)
	o.Body(j.BodyKind, j.Body)
	o.labelsOrNull("labels", j.Labels)
	o.Time("created_at", j.CreatedAt)
	o.Time("due_at", j.DueAt)
	o.Time("expires_at", j.ExpiresAt)
	o.Text("lease", j.ClientLease.String())
	o.Time("lease_until", j.Until)
	o.leaseRequest(j.Request)
}

// leaseRequest writes the request that a push would make now, or null if none can be made.
func (o *Buffer) leaseRequest(r *job.Request) {
	if r == nil {
		o.Null("request")
		return
	}
	header, err := r.HeaderAt(time.Now())
	o.objectOrNull("request", err == nil, func() {
		o.Text("method", r.Method)
		o.TextOrNull("url", r.URL)
		o.Object("headers") // the signature is one, and the job's secrets are not there
		for _, key := range sortedKeys(header) {
			o.Key(key)
			o.headerValues(header[key])
		}
		o.Close()
	})
}

// LeaseResult writes what came of a report about a lease; err is nil, store.ErrLeaseLost, store.ErrCancelRequested, or
// why the report was not recorded.
func (o *Buffer) LeaseResult(index int, report *store.LeaseReport, err error) {
	toCancel := errors.Is(err, store.ErrCancelRequested)
	o.Open()
	o.Number("index", int64(index))
	o.Text("id", report.Lease.ID)
	switch {
	case err == nil, toCancel:
		o.Text("result", "ok")
	case errors.Is(err, store.ErrLeaseLost):
		o.Text("result", "lost")
	default:
		o.Text("result", "unavailable")
	}
	if report.Result == store.LeaseExtend {
		o.Bool("cancel_requested", toCancel)
	}
	o.Close()
}
