package response

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ringback/ringback/internal/capacity"
	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/store"
)

// A Problem is the answer to a request that failed (RFC 9457). Handlers return it as an error.
type Problem struct { //nolint:errname // the RFC's term
	Code       Code
	Status     int // that of the code
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
func NewProblem(code Code, detail string) *Problem {
	return &Problem{Code: code, Status: typeOf(code).Status, Detail: detail}
}

// NewOverload makes the problem of a limit of this process.
func NewOverload(detail string) *Problem {
	p := NewProblem(Overloaded, detail)
	p.Overload = true
	return p
}

// Invalid makes the problem of a request with invalid fields.
func Invalid(errs ...job.FieldError) *Problem {
	detail := "the request has an invalid field"
	if len(errs) > 1 {
		detail = "the request has " + strconv.Itoa(len(errs)) + " invalid fields"
	}
	p := NewProblem(InvalidField, detail)
	p.Fields = errs
	return p
}

// TooLargeFields makes the problem of a request with a field beyond its limit, and perhaps other invalid fields.
func TooLargeFields(errs ...job.FieldError) *Problem {
	p := Invalid(errs...)
	p.Code, p.Status = TooLarge, typeOf(TooLarge).Status
	return p
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
	if e, ok := errors.AsType[*job.QuotaError](err); ok {
		if e.RetryAfter == 0 {
			return NewProblem(LimitReached, e.Error())
		}
		p := NewProblem(Quota, e.Error())
		p.RetryAfter = e.RetryAfter
		return p
	}
	if e, ok := errors.AsType[*capacity.FullError](err); ok {
		if e.Limit == capacity.Waits || e.Limit == capacity.LeaseWaits {
			return NewProblem(TooManyWaiting, e.Error())
		}
		return NewOverload(e.Error())
	}
	if e, ok := errors.AsType[*job.LimitError](err); ok {
		return NewProblem(LimitReached, e.Error())
	}
	if e, ok := errors.AsType[*job.NamespaceInUseError](err); ok {
		if e.Purged {
			return NewProblem(InUse, e.Error()+": revoke its tokens, and repeat the request to remove the rest")
		}
		return NewProblem(InUse, e.Error()+": remove them first; purge=true removes schedules, jobs, topics and lanes")
	}
	if e, ok := errors.AsType[*job.NamespaceStoreError](err); ok {
		return NewProblem(InUse, e.Error())
	}
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return NewProblem(WrongState, e.Error())
	}
	if e, ok := errors.AsType[*store.NotPulledError](err); ok {
		return NewProblem(WrongState, e.Error())
	}
	if e, ok := errors.AsType[*job.TakenError](err); ok {
		p := NewProblem(IDTaken, e.Error())
		if e.Cancelled {
			p = NewProblem(WrongState, e.Error())
		}
		p.Fields = e.Differs
		return p
	}
	if e, ok := errors.AsType[*store.TopicInUseError](err); ok {
		return NewProblem(WrongState, e.Error())
	}
	if e, ok := errors.AsType[*store.RevisionError](err); ok {
		return revisionMismatch(e.Revision)
	}
	switch {
	case errors.Is(err, store.ErrCursor):
		return Invalid(job.FieldError{Field: "?cursor", Detail: "must be the next_cursor of an earlier answer"})
	case errors.Is(err, store.ErrNotFound):
		return NewProblem(NotFound, "no such job or topic, or its retention has ended")
	case errors.Is(err, store.ErrVersion):
		return NewProblem(RevisionMismatch, "the revision is not current: read the job again")
	case errors.Is(err, store.ErrContended):
		return NewProblem(Contended, store.ErrContended.Error())
	case errors.Is(err, store.ErrUnreadable):
		return NewProblem(Unreadable, "the stored settings are not readable: replace all of them")
	case errors.Is(err, store.ErrExpired):
		return NewProblem(Expired, "the job would expire before it is due: set expires_in")
	case errors.Is(err, store.ErrStopping):
		return NewProblem(ShuttingDown, "the server is shutting down: send the request again, on another connection")
	case errors.Is(err, store.ErrUnavailable):
		p := NewProblem(StoreUnavailable, "the store is unavailable, retry")
		if e, ok := errors.AsType[*store.UnavailableError](err); ok {
			p.RetryAfter = e.RetryAfter
		} else if e, ok := errors.AsType[*store.NotConfiguredError](err); ok {
			p.Detail = e.Error()
		}
		return p
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, ErrTimeout):
		return NewProblem(Timeout, "the store did not answer in time, retry")
	}
	p := NewProblem(Internal, "internal error: see the server's log")
	p.Cause = err
	return p
}

// revisionMismatch makes the problem of a condition that the stored settings do not meet.
func revisionMismatch(stored int64) *Problem {
	if stored == 0 {
		return NewProblem(RevisionMismatch, "no settings are stored: their revision is 0")
	}
	return NewProblem(RevisionMismatch,
		"settings are stored, with the revision "+strconv.FormatInt(stored, 10)+": read them again")
}

// WithHint appends the required state to the problem of a StateError.
func WithHint(err error, needed string) error {
	if e, ok := errors.AsType[*store.StateError](err); ok {
		return NewProblem(WrongState, e.Error()+": "+needed)
	}
	return err
}

// Write answers with the problem.
func (p *Problem) Write(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	if wait := p.retryAfter(); wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
	}
	Answer(w, p.Status, p.appendTo)
}

// retryAfter returns when to repeat a request that may succeed then; 0 for other problems.
func (p *Problem) retryAfter() time.Duration {
	if p.Status == http.StatusServiceUnavailable || p.Status == http.StatusTooManyRequests {
		return max(p.RetryAfter, time.Second)
	}
	return 0
}

// Problem writes a problem as an object.
func (o *Buffer) Problem(name string, p *Problem) {
	o.Object(name)
	p.appendTo(o)
	o.Close()
}

func (p *Problem) appendTo(o *Buffer) {
	o.Text("type", ProblemsPath+"#"+string(p.Code))
	o.Text("code", string(p.Code))
	o.Text("title", typeOf(p.Code).Title)
	o.Number("status", int64(p.Status))
	o.Text("detail", p.Detail)
	o.numberOrNull("retry_after_ms", p.retryAfter().Milliseconds())
	Objects(o, "errors", p.Fields, func(f *job.FieldError) {
		o.Text("field", f.Field)
		o.Text("detail", f.Detail)
	})
}

// ErrTimeout is the cause of the context of a request that takes too long.
var ErrTimeout = errors.New("request timeout")
