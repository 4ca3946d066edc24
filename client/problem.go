package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Sentinels, which errors.Is compares with the status of a Problem.
var (
	// ErrInvalid: the request is refused for what it says: 400, 413, 415 or 422. Problem.Errors names the fields.
	ErrInvalid = errors.New("invalid request")
	// ErrUnauthorized: the token is missing, mistyped, unknown or expired: 401.
	ErrUnauthorized = errors.New("unauthorized")
	// ErrForbidden: the token does not allow the request: 403.
	ErrForbidden = errors.New("forbidden")
	// ErrNotFound: there is no such job, topic, lane or path: 404.
	ErrNotFound = errors.New("not found")
	// ErrConflict: the id is taken by another job, or the state does not allow the change: 409.
	ErrConflict = errors.New("conflict")
	// ErrRevision: a condition such as IfRevision does not hold: 412.
	ErrRevision = errors.New("another revision")
	// ErrTooManyRequests: a quota is used up, or too many requests wait: 429.
	ErrTooManyRequests = errors.New("too many requests")
	// ErrUnavailable: the server, its store or a proxy in front of it does not answer: 502 to 504, or 520 to 530, 598
	// or 599 of a CDN.
	ErrUnavailable = errors.New("unavailable")
)

// Problem is an error of the server.
type Problem struct { //nolint:errname // the word of RFC 9457, and of the API
	// Type is the path of the problem's description on the server.
	Type string `json:"type"`
	// Code is a stable word, such as id_taken; empty if the answer was not Ringback's, but perhaps that of a proxy.
	Code   string `json:"code"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is a sentence for people.
	Detail string `json:"detail"`
	// RetryAfterMS says when to repeat the request, in milliseconds.
	RetryAfterMS *int64 `json:"retry_after_ms"`
	// Errors are the invalid fields; of an id_taken, the fields that differ from the stored job.
	Errors []FieldError `json:"errors"`
}

// FieldError is a problem of a field.
type FieldError struct {
	// Field is a JSON pointer into the request, ? and the name of a parameter, or the name of a header.
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

// Error returns the code, the detail and the fields.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d", p.Status)
	for _, text := range []string{p.Code, p.Detail} {
		if text != "" {
			b.WriteString(" " + text)
		}
		if text == p.Code && p.Code != "" && p.Detail != "" {
			b.WriteByte(':')
		}
	}
	for i, e := range p.Errors {
		b.WriteString([]string{": ", "; "}[min(i, 1)] + e.Field + " " + e.Detail)
	}
	return b.String()
}

// RetryAfter is the wait before a repeat; zero: unknown.
func (p *Problem) RetryAfter() time.Duration {
	if p.RetryAfterMS == nil {
		return 0
	}
	return time.Duration(*p.RetryAfterMS) * time.Millisecond
}

// Is reports whether the problem is of a sentinel's kind.
func (p *Problem) Is(target error) bool {
	switch p.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return target == ErrInvalid
	case http.StatusUnauthorized:
		return target == ErrUnauthorized
	case http.StatusForbidden:
		return target == ErrForbidden
	case http.StatusNotFound:
		return target == ErrNotFound
	case http.StatusConflict:
		return target == ErrConflict
	case http.StatusPreconditionFailed:
		return target == ErrRevision
	case http.StatusTooManyRequests:
		return target == ErrTooManyRequests
	}
	return target == ErrUnavailable && isUnavailable(p.Status)
}

// isUnavailable reports whether a status is of a server that does not answer: 502 to 504, and those of CDNs.
func isUnavailable(status int) bool {
	return status >= 502 && status <= 504 || status >= 520 && status <= 530 || status == 598 || status == 599
}
