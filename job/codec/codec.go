// Package codec encodes a job's specification. Both engines, the outbox and the fingerprint of a registration use it,
// so that a field of job.Spec is described once, in the table of this package.
//
// An encoded job is a list of fields: a tag, the length of the value as a uvarint, and the value. A field with its
// default (zero; POST; a JSON body) is left out, so that a new field changes neither the records nor the fingerprints
// of jobs without it. Tags and encodings of values never change. Unknown fields of job.Spec are kept in Spec.Unknown
// and written again.
//
//	tags       fields
//	1 to 63    job.Spec, except its id, queue and body, which engines store separately
//	64 to 127  job.New: id, queue, body and times
//	128 to 255 of the caller, appended with AppendField
package codec

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/ringback/ringback/job"
)

const (
	firstNewTag = 64
	// FirstOwnTag is the first of the caller's tags.
	FirstOwnTag = 128
)

// ErrMalformed is returned for bytes that are not a valid encoding.
var ErrMalformed = errors.New("codec: malformed fields")

// field describes one field: append appends its value to b (nothing for the default), read decodes it.
type field[T any] struct {
	tag    byte
	name   string // in the API; empty: clients do not set it
	append func(b []byte, of *T) []byte
	read   func(of *T, value []byte) error
}

// AppendSpec appends the fields of s, without its id, queue and body. A URL that begins with the lane's host and port
// is shortened, so the lane must be set before decoding.
func AppendSpec(b []byte, s *job.Spec) []byte {
	return append(appendFields(b, specFields, s), s.Unknown...)
}

// AppendSpecWithoutURL is AppendSpec for an engine that stores the URL separately.
func AppendSpecWithoutURL(b []byte, s *job.Spec) []byte {
	b = appendFields(b, specFields[:urlIndex], s)
	b = appendFields(b, specFields[urlIndex+1:], s)
	return append(b, s.Unknown...)
}

// DecodeSpec decodes fields into s, whose lane must be set. own is called for the caller's fields; nil: they are an
// error.
func DecodeSpec(b []byte, s *job.Spec, own func(tag byte, value []byte) error) error {
	s.Method, s.BodyKind = defaultMethod, defaultKind
	var unknown []byte
	for len(b) > 0 {
		tag, value, rest, err := next(b)
		if err != nil {
			return err
		}
		switch known, err := readField(specFields, s, tag, value); {
		case err != nil:
			return fmt.Errorf("codec: field %d: %w", tag, err)
		case known:
		case tag < firstNewTag:
			unknown = append(unknown, b[:len(b)-len(rest)]...)
		case tag < FirstOwnTag || own == nil:
			return fmt.Errorf("%w: unexpected tag %d", ErrMalformed, tag)
		default:
			if err := own(tag, value); err != nil {
				return err
			}
		}
		b = rest
	}
	s.Unknown = unknown
	s.ContentType = typeOrDefault(s)
	return nil
}

// AppendURL appends the field of a URL as AppendSpec does for a job of the lane.
func AppendURL(b []byte, lane, url string) []byte {
	return appendFields(b, []field[job.Spec]{urlField}, &job.Spec{Queue: job.Queue{Lane: lane}, URL: url})
}

// AppendHeader appends the field of headers, also of empty ones.
func AppendHeader(b []byte, header map[string][]string) []byte {
	return appendFields(b, []field[job.Spec]{headerField}, &job.Spec{Header: header})
}

// AppendNew appends all fields of n.
func AppendNew(b []byte, n *job.New) []byte {
	return AppendSpec(appendFields(b, newFields, n), &n.Spec)
}

// DecodeNew is the reverse of AppendNew. own is as for DecodeSpec.
func DecodeNew(b []byte, own func(tag byte, value []byte) error) (job.New, error) {
	var n job.New
	for len(b) > 0 { // the fields of New come first
		tag, value, rest, err := next(b)
		if err != nil {
			return job.New{}, err
		}
		known, err := readField(newFields, &n, tag, value)
		if err != nil {
			return job.New{}, fmt.Errorf("codec: field %d: %w", tag, err)
		}
		if !known {
			break
		}
		b = rest
	}
	if err := DecodeSpec(b, &n.Spec, own); err != nil {
		return job.New{}, err
	}
	if n.Body == nil && n.BodyKind != job.BodyNone {
		n.Body = []byte{}
	}
	return n, nil
}

// AppendField appends one field.
func AppendField(b []byte, tag byte, value []byte) []byte {
	b = append(b, tag)
	b = binary.AppendUvarint(b, uint64(len(value)))
	return append(b, value...)
}

// next returns the first field of b and the rest.
func next(b []byte) (tag byte, value, rest []byte, err error) {
	length, width := binary.Uvarint(b[1:])
	if width <= 0 || uint64(len(b)-1-width) < length {
		return 0, nil, nil, ErrMalformed
	}
	start := 1 + width
	end := start + int(length)
	return b[0], b[start:end:end], b[end:], nil
}

func readField[T any](fields []field[T], of *T, tag byte, value []byte) (known bool, err error) {
	for i := range fields {
		if fields[i].tag == tag {
			return true, fields[i].read(of, value)
		}
	}
	return false, nil
}

func appendFields[T any](b []byte, fields []field[T], of *T) []byte {
	for i := range fields {
		start := len(b)
		b = append(b, fields[i].tag, 0)
		b = fields[i].append(b, of)
		switch length := len(b) - start - 2; {
		case length == 0:
			b = b[:start]
		case length < 0x80:
			b[start+1] = byte(length)
		default: // the length needs more than the one byte reserved for it
			var room [binary.MaxVarintLen64]byte
			wide := binary.AppendUvarint(room[:0], uint64(length))
			b = append(b, wide[1:]...)
			copy(b[start+1+len(wide):], b[start+2:start+2+length])
			copy(b[start+1:], wide)
		}
	}
	return b
}
