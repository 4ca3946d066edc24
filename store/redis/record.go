package redis

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/ringback/ringback/job"
	"github.com/ringback/ringback/policy"
)

// A record is what a job asks for, as bytes. Scripts read its fixed head:
//
//	1      form: 2 when the URL may be written without what its lane says of it; else 1
//	1      flags: 1 its id has a print, 2 the content type is that of its kind of body, 4 and 8 the kind of body
//	4      number of the queue
//	3      timeout in ms, rounded up; 0 none
//	3      length of the body
//	6      first due moment in ms
//
// then come the body and any number of tagged fields: a tag, the length as a uvarint, and the bytes. Numbers are big
// endian. Fields with an unknown tag are carried through a rewrite, so that an older process does not lose what a newer
// one wrote.
const (
	formWhole   = 1
	formShort   = 2
	headLength  = 12
	fixedLength = 18

	flagPrint       = 1
	flagUsualType   = 2
	flagKindShift   = 2
	maxTimeoutMS    = 1<<24 - 1
	tagCreated      = 1 // ms from registration to the first due moment; absent: none
	tagExpires      = 2 // ms
	tagURL          = 3
	tagMethod       = 4 // absent: POST
	tagType         = 5 // content type
	tagHeader       = 6
	tagLabels       = 7
	tagLadder       = 8 // a uvarint of nanoseconds for each rung
	tagRetries      = 9
	tagKind         = 10
	tagOrigin       = 11
	tagTimeoutExact = 12 // in ns, when it is no whole ms
	tagCallbacks    = 13 // of the job itself, as JSON
	tagMaxAge       = 18 // of its topic when it was registered, in ms (6 bytes): for scripts alone
	tagLaneURL      = 14 // and those up to 17, see url.go; in place of tagURL
)

var errRecord = errors.New("redis: a job's record cannot be read")

// usualType is the content type that a kind of body mostly has.
func usualType(k job.BodyKind) string {
	switch k {
	case job.BodyJSON:
		return "application/json"
	case job.BodyText:
		return "text/plain; charset=utf-8"
	case job.BodyBase64:
		return "application/octet-stream"
	default:
		return ""
	}
}

// callbacks are those that a job names itself, as they are kept.
type callbacks struct {
	OnDelivered *policy.Callback `json:"on_delivered,omitempty"`
	OnDead      *policy.Callback `json:"on_dead,omitempty"`
}

// A record as it was read.
type record struct {
	spec    job.Spec // without id and queue
	print   bool
	due     int64 // first due moment, ms
	created int64
	expires int64  // 0: never
	extra   []byte // fields with an unknown tag, as they were
}

// encode writes the record of a spec of a queue: its head, and what follows the due moment. The scripts put in the due
// moment, the expiry and, for a new job, the time from registration to the due moment; of a record that was read, that
// is delta in ms, and extra its unknown fields.
func encode(spec *job.Spec, q *queue, printed bool, delta int64, extra []byte) (head, rest []byte, err error) {
	if len(spec.Body) > job.MaxBody { // its length is written in three bytes
		return nil, nil, fmt.Errorf("redis: a body of %d bytes is larger than %d", len(spec.Body), job.MaxBody)
	}
	head = make([]byte, headLength)
	head[0] = formWhole
	if q.short {
		head[0] = formShort
	}
	head[1] = byte(spec.BodyKind&3) << flagKindShift
	if printed {
		head[1] |= flagPrint
	}
	usual := spec.ContentType == usualType(spec.BodyKind)
	if usual {
		head[1] |= flagUsualType
	}
	binary.BigEndian.PutUint32(head[2:], uint32(num(q.number)))
	putUint24(head[6:], uint32(min(millisUp(spec.Timeout), maxTimeoutMS)))
	putUint24(head[9:], uint32(len(spec.Body)))

	rest = make([]byte, 0, len(spec.Body)+len(spec.URL)+16)
	rest = append(rest, spec.Body...)
	rest = appendURL(rest, spec.URL, q)
	if spec.Method != http.MethodPost {
		rest = appendField(rest, tagMethod, []byte(spec.Method))
	}
	if !usual {
		rest = appendField(rest, tagType, []byte(spec.ContentType))
	}
	rest = appendHeader(rest, spec.Header)
	rest = appendLabels(rest, spec.Labels)
	if len(spec.Ladder) > 0 {
		var rungs []byte
		for _, rung := range spec.Ladder {
			rungs = binary.AppendUvarint(rungs, uint64(rung))
		}
		rest = appendField(rest, tagLadder, rungs)
	}
	if spec.Retries != nil {
		rest = appendField(rest, tagRetries, binary.AppendUvarint(nil, uint64(*spec.Retries)))
	}
	if spec.Timeout%time.Millisecond != 0 {
		rest = appendField(rest, tagTimeoutExact, binary.AppendUvarint(nil, uint64(spec.Timeout)))
	}
	if spec.OnDelivered != nil || spec.OnDead != nil {
		value, err := json.Marshal(callbacks{spec.OnDelivered, spec.OnDead})
		if err != nil {
			return nil, nil, fmt.Errorf("write a job's callbacks: %w", err)
		}
		rest = appendField(rest, tagCallbacks, value)
	}
	rest = appendText(rest, tagKind, spec.Kind)
	rest = appendText(rest, tagOrigin, spec.Origin)
	if delta > 0 {
		var raw [8]byte
		binary.BigEndian.PutUint64(raw[:], uint64(delta))
		rest = appendField(rest, tagCreated, slices.Clone(raw[:])[leadingZeros(raw[:]):])
	}
	return head, append(rest, extra...), nil
}

// decode reads a record of a job of a lane; stripped says that its body was left out by a script.
func decode(text, lane string, stripped bool) (*record, error) {
	b := []byte(text)
	if len(b) < fixedLength {
		return nil, errRecord
	}
	if b[0] < formWhole || b[0] > formShort {
		return nil, fmt.Errorf("redis: a job's record has form %d, which a newer version wrote", b[0])
	}
	r := &record{
		print: b[1]&flagPrint != 0,
		due:   uint48(b[12:]),
	}
	r.created = r.due
	r.spec.BodyKind = job.BodyKind(b[1] >> flagKindShift & 3)
	r.spec.Timeout = time.Duration(uint24(b[6:])) * time.Millisecond
	r.spec.Method = http.MethodPost
	if b[1]&flagUsualType != 0 {
		r.spec.ContentType = usualType(r.spec.BodyKind)
	}
	size := int(uint24(b[9:]))
	b = b[fixedLength:]
	if !stripped {
		if len(b) < size {
			return nil, errRecord
		}
		if r.spec.BodyKind != job.BodyNone || size > 0 {
			r.spec.Body = b[:size:size]
		}
		b = b[size:]
	}
	for len(b) > 0 {
		length, width := binary.Uvarint(b[1:])
		if width <= 0 || uint64(len(b)-1-width) < length {
			return nil, errRecord
		}
		end := 1 + width + int(length)
		if err := r.field(b[0], b[1+width:end], b[:end], lane); err != nil {
			return nil, err
		}
		b = b[end:]
	}
	return r, nil
}

// field reads one tagged field of a job of a lane; raw is the whole of it.
func (r *record) field(tag byte, value, raw []byte, lane string) error {
	var err error
	switch tag {
	case tagCreated:
		r.created = r.due - bigEndian(value)
	case tagExpires:
		r.expires = bigEndian(value)
	case tagURL:
		r.spec.URL = string(value)
	case tagLaneURL, tagLaneURL + 1, tagLaneURL + 2, tagLaneURL + 3:
		r.spec.URL = origins[tag-tagLaneURL].join(lane, value)
	case tagMethod:
		r.spec.Method = string(value)
	case tagType:
		r.spec.ContentType = string(value)
	case tagHeader:
		r.spec.Header, err = readHeader(value)
	case tagLabels:
		r.spec.Labels, err = readLabels(value)
	case tagLadder:
		for len(value) > 0 {
			rung, width := binary.Uvarint(value)
			if width <= 0 {
				return errRecord
			}
			r.spec.Ladder = append(r.spec.Ladder, time.Duration(rung))
			value = value[width:]
		}
	case tagRetries:
		n, width := binary.Uvarint(value)
		if width <= 0 {
			return errRecord
		}
		r.spec.Retries = new(int(n))
	case tagKind:
		r.spec.Kind = string(value)
	case tagOrigin:
		r.spec.Origin = string(value)
	case tagTimeoutExact:
		n, width := binary.Uvarint(value)
		if width <= 0 {
			return errRecord
		}
		r.spec.Timeout = time.Duration(n)
	case tagCallbacks:
		var c callbacks
		if err = json.Unmarshal(value, &c); err == nil {
			r.spec.OnDelivered, r.spec.OnDead = c.OnDelivered, c.OnDead
		}
	default:
		r.extra = append(r.extra, raw...)
	}
	return err
}

// job makes a job of the record, without progress.
func (r *record) job(ref job.Ref, q job.Queue) job.Job {
	spec := r.spec
	spec.ID, spec.Queue = ref.ID, q
	spec.Namespace = ref.Namespace
	return job.Job{Spec: spec}
}
