package table

import (
	"database/sql/driver"
	"errors"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
	"github.com/ringback/ringback/store/sqlite/clock"
	"github.com/ringback/ringback/store/sqlite/db"
)

// Encoded holds the columns of what a job asks for. The caller's goroutine prepares them, so that the writer only binds
// them.
type Encoded struct {
	Spec                    []byte
	Timeout, Body, External driver.Value
	BodySize                int64
}

// Encode encodes what a job asks for.
func Encode(s *job.Spec) Encoded {
	e := Encoded{
		Spec: codec.AppendSpecWithoutURL(make([]byte, 0, 128), s), Timeout: db.NullZero(clock.CeilMillis(s.Timeout)),
		BodySize: int64(len(s.Body)),
	}
	switch {
	case s.Body == nil:
		e.BodySize = -1
	case len(s.Body) > InlineBody:
		e.External = s.Body
	default:
		e.Body = s.Body
	}
	return e
}

// Size is Row.Size of a job with a URL, whose other columns are e.
func (e *Encoded) Size(url string) int64 { return size(e.BodySize, url, e.Spec) }

// An unreadableError is the error of a row, of a job or of a lane's settings, that this program cannot have written.
type unreadableError struct{ err error }

// IsUnreadable reports whether err is or contains an unreadableError.
func IsUnreadable(err error) bool {
	_, ok := errors.AsType[*unreadableError](err)
	return ok
}

func (e *unreadableError) Error() string { return e.err.Error() }
func (e *unreadableError) Unwrap() error { return e.err }

// Unreadable returns err as an unreadableError.
func Unreadable(err error) error { return &unreadableError{err} }
