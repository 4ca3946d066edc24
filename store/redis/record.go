package redis

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
)

// A job's record is a head that scripts read at fixed places (record.lua):
//
//	1      form, recordForm
//	1      flags: 1 the job's id has a fingerprint
//	4      number of the queue
//	3      timeout in ms, rounded up; 0 none
//	3      length of the body
//	6      first due time in ms
//
// then the body, the fields of its job.Spec (package codec), and those of the tags below. Numbers are big endian. Created
// and expiry of a new job, and the expiry of every changed one, are appended by scripts.
const (
	recordForm = 1
	headSize   = 12 // of what Go writes of the head
	dueEnd     = 18 // where the body begins

	flagFingerprint = 1
	maxTimeoutMS    = 1<<24 - 1

	tagCreated = codec.FirstOwnTag     // ms from registration to the first due time; absent: 0
	tagExpiry  = codec.FirstOwnTag + 1 // ms, 6 bytes
	tagMaxAge  = codec.FirstOwnTag + 2 // ms, 6 bytes: max_age of its topic when it was registered; for scripts alone
)

var errRecord = errors.New("redis: malformed record of a job")

// A record is the decoded form of a job's record.
type record struct {
	spec        job.Spec // without its id
	fingerprint bool
	due         int64 // first due time, ms
	created     int64 // ms
	expires     int64 // ms; 0: never
	maxAge      int64 // ms; 0: none
}

// encode returns what scripts put together with the due time and the expiry: the head, and what follows the due time.
// The number is that of the job's queue.
func (r *record) encode(number string) (head, rest []byte, err error) {
	spec := &r.spec
	if len(spec.Body) > job.MaxBody { // its length is written in three bytes
		return nil, nil, fmt.Errorf("redis: a body of %d bytes is larger than %d", len(spec.Body), job.MaxBody)
	}
	head = make([]byte, headSize)
	head[0] = recordForm
	if r.fingerprint {
		head[1] = flagFingerprint
	}
	binary.BigEndian.PutUint32(head[2:], uint32(num(number)))
	putUint24(head[6:], uint32(min(millisUp(spec.Timeout), maxTimeoutMS)))
	putUint24(head[9:], uint32(len(spec.Body)))

	rest = make([]byte, 0, len(spec.Body)+len(spec.URL)+32)
	rest = codec.AppendSpec(append(rest, spec.Body...), spec)
	var ms [8]byte
	if r.maxAge > 0 {
		binary.BigEndian.PutUint64(ms[:], uint64(r.maxAge))
		rest = codec.AppendField(rest, tagMaxAge, ms[2:])
	}
	if delta := r.due - r.created; delta > 0 {
		binary.BigEndian.PutUint64(ms[:], uint64(delta))
		rest = codec.AppendField(rest, tagCreated, bytes.TrimLeft(ms[:], "\x00"))
	}
	return head, rest, nil
}

// decode reads the record of a job of a queue; stripped says that its body was left out by a script.
func decode(text string, q job.Queue, stripped bool) (*record, error) {
	b := []byte(text)
	if len(b) < dueEnd || b[0] != recordForm {
		return nil, errRecord
	}
	r := &record{fingerprint: b[1]&flagFingerprint != 0, due: bigEndian(b[headSize:dueEnd]), spec: job.Spec{Queue: q}}
	r.created = r.due
	size := int(bigEndian(b[9:headSize]))
	b = b[dueEnd:]
	var body []byte
	if !stripped {
		if len(b) < size {
			return nil, errRecord
		}
		body, b = b[:size:size], b[size:]
	}
	if err := codec.DecodeSpec(b, &r.spec, r.field); err != nil {
		return nil, errors.Join(errRecord, err)
	}
	if size > 0 || r.spec.BodyKind != job.BodyNone {
		r.spec.Body = body
	}
	return r, nil
}

// field reads a field of the tags above.
func (r *record) field(tag byte, value []byte) error {
	switch tag {
	case tagCreated:
		r.created = r.due - bigEndian(value)
	case tagExpiry:
		r.expires = bigEndian(value)
	case tagMaxAge:
		r.maxAge = bigEndian(value)
	default:
		return fmt.Errorf("unknown tag %d", tag)
	}
	return nil
}

// job returns the job of the record, without progress.
func (r *record) job(ref job.Ref) job.Job {
	spec := r.spec
	spec.ID = ref.ID
	return job.Job{Spec: spec}
}

// millisUp returns a duration in whole milliseconds, rounded up: a wait is never cut short.
func millisUp(d time.Duration) int64 {
	ms := int64(d / time.Millisecond)
	if d%time.Millisecond > 0 {
		ms++
	}
	return ms
}

func putUint24(b []byte, n uint32) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) }

func bigEndian(b []byte) int64 {
	var n int64
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}
