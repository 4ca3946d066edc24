package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A problem is an answer that is no success (RFC 9457). As an error it travels from where it is found to where it is
// written.
type problem struct {
	status     int
	detail     string
	faults     []job.FieldError
	retryAfter time.Duration
	// unread: the client may still be sending the request; see turnAway.
	unread bool
	// overload: the process does as much as it may at a time; see api.warnOverload.
	overload bool
	// cause is what is logged of a 500, and never shown.
	cause error
}

// Error is for logs.
func (p *problem) Error() string {
	text := strconv.Itoa(p.status) + ": " + p.detail
	if p.cause != nil {
		text += ": " + p.cause.Error()
	}
	return text
}

// Unwrap gives the cause.
func (p *problem) Unwrap() error { return p.cause }

// refuse makes a problem.
func refuse(status int, detail string) *problem { return &problem{status: status, detail: detail} }

// overloaded refuses a request because too much is under way in this process.
func overloaded(detail string) *problem {
	return &problem{status: http.StatusServiceUnavailable, detail: detail, overload: true}
}

// invalid is the problem of a request that can be read and not be taken.
func invalid(faults ...job.FieldError) *problem {
	detail := "a field of the request is not as it must be"
	if len(faults) > 1 {
		detail = strconv.Itoa(len(faults)) + " fields of the request are not as they must be"
	}
	return &problem{status: http.StatusUnprocessableEntity, detail: detail, faults: faults}
}

// problemOf is the one table from errors to statuses. What is not in it is ours to mend: it is logged, never shown.
//
//	*job.InvalidError            422, its faults
//	*job.UndeclaredTopicError    422
//	store.ErrCursor              422
//	store.ErrNotFound            404
//	*store.StateError            409, the state
//	store.ErrVersion             412
//	store.ErrContended           409
//	store.ErrExpired             409
//	store.ErrUnavailable         503, Retry-After
//	context ended                503, Retry-After
//	anything else                500
func problemOf(err error) *problem {
	if p, ok := errors.AsType[*problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*job.InvalidError](err); ok {
		return invalid(e.Errors...)
	}
	if e, ok := errors.AsType[*job.UndeclaredTopicError](err); ok {
		return invalid(job.FieldError{Field: "/topic", Detail: e.Error()})
	}
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return refuse(http.StatusConflict, e.Error())
	}
	switch {
	case errors.Is(err, store.ErrCursor):
		return invalid(job.FieldError{Field: "?cursor", Detail: "must be the next_cursor of an earlier answer"})
	case errors.Is(err, store.ErrNotFound):
		return refuse(http.StatusNotFound, "there is no such job or topic, or it is no longer kept")
	case errors.Is(err, store.ErrVersion):
		return refuse(http.StatusPreconditionFailed, "the version is not the current one: read it again")
	case errors.Is(err, store.ErrContended):
		return refuse(http.StatusConflict, store.ErrContended.Error())
	case errors.Is(err, store.ErrExpired):
		return refuse(http.StatusConflict, "expired: the job's expiry comes before it is due; name a new one (expires_in)")
	case errors.Is(err, store.ErrUnavailable):
		p := refuse(http.StatusServiceUnavailable, "the store cannot take this now: try again")
		if e, ok := errors.AsType[*store.UnavailableError](err); ok {
			p.retryAfter = e.RetryAfter
		}
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, errSlow):
		return refuse(http.StatusServiceUnavailable, "the store did not answer in time: try again")
	}
	p := refuse(http.StatusInternalServerError, "something went wrong here: the log tells what")
	p.cause = err
	return p
}

// because adds to a refusal for a job's state what would be needed.
func because(err error, needed string) error {
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return refuse(http.StatusConflict, e.Error()+": "+needed)
	}
	return err
}

// write answers with the problem.
func (p *problem) write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.status == http.StatusServiceUnavailable {
		seconds := max(int64((p.retryAfter+time.Second-1)/time.Second), 1)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	o := newOut()
	defer o.free()
	p.into(o)
	o.send(w, p.status)
}

// into writes the problem's object.
func (p *problem) into(o *out) {
	o.open()
	o.text("type", "about:blank")
	o.text("title", http.StatusText(p.status))
	o.number("status", int64(p.status))
	o.text("detail", p.detail)
	if len(p.faults) > 0 {
		o.array("errors")
		for _, f := range p.faults {
			o.open()
			o.text("field", f.Field)
			o.text("detail", f.Detail)
			o.close()
		}
		o.closeArray()
	}
	o.close()
}
