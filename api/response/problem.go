package response

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A Problem is the answer to a request that failed (RFC 9457). Handlers return it as an error.
type Problem struct { //nolint:errname // the RFC's term
	Status     int
	Detail     string
	Fields     []job.FieldError
	RetryAfter time.Duration
	// Unread means that the client may still be sending the request.
	Unread bool
	// Overload means that a limit of this process was reached.
	Overload bool
	// Cause is logged for status 500, and never shown.
	Cause error
}

// Error formats the problem for logs.
func (p *Problem) Error() string {
	text := strconv.Itoa(p.Status) + ": " + p.Detail
	if p.Cause != nil {
		text += ": " + p.Cause.Error()
	}
	return text
}

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// NewProblem makes a problem.
func NewProblem(status int, detail string) *Problem { return &Problem{Status: status, Detail: detail} }

// Overloaded makes a problem for a limit of this process: 503, with Retry-After.
func Overloaded(detail string) *Problem {
	return &Problem{Status: http.StatusServiceUnavailable, Detail: detail, Overload: true}
}

// Invalid makes the problem of a request with invalid fields.
func Invalid(errs ...job.FieldError) *Problem {
	detail := "the request has an invalid field"
	if len(errs) > 1 {
		detail = "the request has " + strconv.Itoa(len(errs)) + " invalid fields"
	}
	return &Problem{Status: http.StatusUnprocessableEntity, Detail: detail, Fields: errs}
}

// FromError maps an error to its problem. The text of an error that it does not know is logged, never shown.
func FromError(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if e, ok := errors.AsType[*job.InvalidError](err); ok {
		return Invalid(e.Errors...)
	}
	if e, ok := errors.AsType[*job.UndeclaredTopicError](err); ok {
		return Invalid(job.FieldError{Field: "/topic", Detail: e.Error()})
	}
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return NewProblem(http.StatusConflict, e.Error())
	}
	switch {
	case errors.Is(err, store.ErrCursor):
		return Invalid(job.FieldError{Field: "?cursor", Detail: "must be the next_cursor of an earlier answer"})
	case errors.Is(err, store.ErrNotFound):
		return NewProblem(http.StatusNotFound, "no such job or topic, or its retention has ended")
	case errors.Is(err, store.ErrVersion):
		return NewProblem(http.StatusPreconditionFailed, "the version is not current: read the job again")
	case errors.Is(err, store.ErrContended):
		return NewProblem(http.StatusConflict, store.ErrContended.Error())
	case errors.Is(err, store.ErrUnreadable):
		return NewProblem(http.StatusConflict, "the stored settings are not readable: replace all of them with PUT")
	case errors.Is(err, store.ErrExpired):
		return NewProblem(http.StatusConflict, "expired: the job's expiry is before its due time, set expires_in")
	case errors.Is(err, store.ErrUnavailable):
		p := NewProblem(http.StatusServiceUnavailable, "the store is unavailable, retry")
		if e, ok := errors.AsType[*store.UnavailableError](err); ok {
			p.RetryAfter = e.RetryAfter
		}
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrTimeout):
		return NewProblem(http.StatusServiceUnavailable, "the store did not answer in time, retry")
	}
	p := NewProblem(http.StatusInternalServerError, "internal error: see the server's log")
	p.Cause = err
	return p
}

// WithHint appends the required state to the problem of a StateError.
func WithHint(err error, needed string) error {
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return NewProblem(http.StatusConflict, e.Error()+": "+needed)
	}
	return err
}

// Write answers with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if p.Status == http.StatusServiceUnavailable {
		seconds := max(int64((p.RetryAfter+time.Second-1)/time.Second), 1)
		h.Set("Retry-After", strconv.FormatInt(seconds, 10))
	}
	Answer(w, p.Status, p.appendTo)
}

// Problem writes a problem as an object.
func (o *Buffer) Problem(name string, p *Problem) {
	o.Object(name)
	p.appendTo(o)
	o.Close()
}

func (p *Problem) appendTo(o *Buffer) {
	o.Text("type", "about:blank")
	o.Text("title", http.StatusText(p.Status))
	o.Number("status", int64(p.Status))
	o.Text("detail", p.Detail)
	if len(p.Fields) > 0 {
		Objects(o, "errors", p.Fields, func(f *job.FieldError) {
			o.Text("field", f.Field)
			o.Text("detail", f.Detail)
		})
	}
}

// ErrTimeout is the cause of the context of a request that takes too long.
var ErrTimeout = errors.New("request timeout")
