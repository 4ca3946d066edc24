package layout

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/job/codec"
)

// A job's record is a head that scripts read at fixed places (record.lua):
//
//	1      RecordFormat
//	1      flags: 1 if the id has a fingerprint
//	4      number of the queue
//	3      timeout in ms, rounded up; 0 none
//	3      length of the body
//	6      first due time in ms
//
// then the body, the fields of its job.Spec (package codec), and those of the tags below. Numbers are big endian.
// Scripts append creation time and expiry.
const (
	RecordFormat = 1
	headSize     = 12 // what Go writes of the head; scripts add the due time
	minRecord    = 18 // where the body begins

	flagFingerprint = 1
	maxTimeoutMS    = 1<<24 - 1

	// Tags of the URL and the first URL of a job.Spec.
	TagURL      = codec.TagURL
	TagFirstURL = codec.TagFirstURL

	// Tags of fields that a record adds to those of a job.Spec.
	TagCreated = codec.FirstOwnTag     // ms from registration to the first due time; absent: 0
	TagExpiry  = codec.FirstOwnTag + 1 // ms, 6 bytes
	TagMaxAge  = codec.FirstOwnTag + 2 // ms, 6 bytes: the topic's max_age at registration; only scripts use it
	// of a job that was registered in an ordered queue, see ordered.lua; absent: 0; only scripts use it
	TagOrder = codec.FirstOwnTag + 3
)

// OrderNumbers is how many numbers of the order of registration a millisecond has (ordered.lua).
const OrderNumbers = 1024

// ErrRecord reports a record that cannot be decoded.
var ErrRecord = errors.New("redis: malformed record of a job")

// A Record is a decoded job record. Times are in ms.
type Record struct {
	Spec        job.Spec // without its id
	Fingerprint bool
	Due         int64 // first due time
	Created     int64
	Expires     int64 // 0: never
	MaxAge      int64 // 0: none
	Order       int64
}

// Encode returns the record's head and the rest after the due time. Scripts add due time, creation time and expiry.
// number is that of the job's queue.
func (r *Record) Encode(number string) (head, rest []byte, err error) {
	spec := &r.Spec
	if len(spec.Body) > job.MaxBody { // its length is written in three bytes
		return nil, nil, fmt.Errorf("redis: a body of %d bytes is larger than %d", len(spec.Body), job.MaxBody)
	}
	head = make([]byte, headSize)
	head[0] = RecordFormat
	if r.Fingerprint {
		head[1] = flagFingerprint
	}
	binary.BigEndian.PutUint32(head[2:], uint32(Int(number)))
	putUint24(head[6:], uint32(min(Millis(spec.Timeout), maxTimeoutMS)))
	putUint24(head[9:], uint32(len(spec.Body)))

	rest = make([]byte, 0, len(spec.Body)+len(spec.URL)+32)
	rest = codec.AppendSpec(append(rest, spec.Body...), spec)
	var ms [8]byte
	if r.MaxAge > 0 {
		binary.BigEndian.PutUint64(ms[:], uint64(r.MaxAge))
		rest = codec.AppendField(rest, TagMaxAge, ms[2:])
	}
	for _, f := range []struct {
		tag byte
		n   int64
	}{{TagCreated, r.Due - r.Created}, {TagOrder, r.Order}} {
		if f.n > 0 {
			binary.BigEndian.PutUint64(ms[:], uint64(f.n))
			rest = codec.AppendField(rest, f.tag, bytes.TrimLeft(ms[:], "\x00"))
		}
	}
	return head, rest, nil
}

// EncodeWhole returns the record with all its times. number is that of the job's queue.
func (r *Record) EncodeWhole(number string) ([]byte, error) {
	head, rest, err := r.Encode(number)
	if err != nil {
		return nil, err
	}
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(r.Due))
	whole := slices.Concat(head, ms[2:], rest)
	if r.Expires > 0 {
		binary.BigEndian.PutUint64(ms[:], uint64(r.Expires))
		whole = codec.AppendField(whole, TagExpiry, ms[2:])
	}
	return whole, nil
}

// DecodeRecord decodes the record of a job of a queue. bodyless says that a script has left out the body.
func DecodeRecord(text string, q job.Queue, bodyless bool) (*Record, error) {
	b := []byte(text)
	if len(b) < minRecord || b[0] != RecordFormat {
		return nil, ErrRecord
	}
	r := &Record{
		Fingerprint: b[1]&flagFingerprint != 0, Due: bigEndian(b[headSize:minRecord]),
		Spec: job.Spec{Queue: q},
	}
	r.Created = r.Due
	size := int(bigEndian(b[9:headSize]))
	b = b[minRecord:]
	var body []byte
	if !bodyless {
		if len(b) < size {
			return nil, ErrRecord
		}
		body, b = b[:size:size], b[size:]
	}
	if err := codec.DecodeSpec(b, &r.Spec, r.field); err != nil {
		return nil, errors.Join(ErrRecord, err)
	}
	if size > 0 || r.Spec.BodyKind != job.BodyNone {
		r.Spec.Body = body
	}
	return r, nil
}

// field decodes a field of the tags above.
func (r *Record) field(tag byte, value []byte) error {
	switch tag {
	case TagCreated:
		r.Created = r.Due - bigEndian(value)
	case TagExpiry:
		r.Expires = bigEndian(value)
	case TagMaxAge:
		r.MaxAge = bigEndian(value)
	case TagOrder:
		r.Order = bigEndian(value)
	default:
		return fmt.Errorf("unknown tag %d", tag)
	}
	return nil
}

// QueueNumber returns the number of the queue that a record names; false when it has no complete head.
func QueueNumber(record string) (string, bool) {
	if len(record) < minRecord {
		return "", false
	}
	return strconv.FormatInt(bigEndian([]byte(record[2:6])), 10), true
}

func putUint24(b []byte, n uint32) { b[0], b[1], b[2] = byte(n>>16), byte(n>>8), byte(n) }

func bigEndian(b []byte) int64 {
	var n int64
	for _, c := range b {
		n = n<<8 | int64(c)
	}
	return n
}
